package app

import (
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
)

// defaulter is a game with defaults for the spec of its default room.
type defaulter struct {
	*game
	spec netloop.RoomSpec
}

func (p defaulter) RoomDefaults() netloop.RoomSpec { return p.spec }

// The game's RoomDefaults are the defaults of the settings, and printed as such; the operator's
// settings take precedence, also if they equal the default without the game.
func TestTheGameHasRoomDefaults(t *testing.T) {
	spec := netloop.RoomSpec{
		Name: "hall", Kind: "lobby", Rate: netloop.Hz(20), FixedRate: netloop.Hz(50), SendEvery: 2, MaxClients: 12, Budget: 900, KeepDropped: -1,
		MaxRewind: 100 * time.Millisecond, Duplicate: netloop.DuplicateAllow, CloseEmpty: time.Minute,
	}
	room := func(env []string, args ...string) (got netloop.RoomSpec) {
		t.Helper()
		g := newGame()
		g.open = func(r *netloop.Room) error { got = r.Spec(); return nil }
		if r := command(t, defaulter{g, spec}, env, append([]string{"loop", "print"}, args...)...); r.exit != 0 {
			t.Fatalf("exit %d: %s", r.exit, r.stderr)
		}
		return got
	}
	if got := room(nil); got != spec {
		t.Errorf("the room is %+v, want %+v", got, spec)
	}
	want := spec
	want.Rate, want.FixedRate, want.KeepDropped, want.Duplicate, want.SendEvery = netloop.Hz(60), netloop.Hz(60), 20*time.Second, netloop.DuplicateTakeOver, 1
	got := room([]string{"NETLOOP_KEEP_DROPPED=20s"}, "--tick-rate", "60", "--fixed-rate", "0", "--same-player", "take-over",
		"--config", write(t, "config.yaml", "send-every: 1\n"))
	if got != want {
		t.Errorf("the room is %+v, want %+v", got, want)
	}

	r := command(t, defaulter{newGame(), spec}, nil, "config", "--tick-rate", "30")
	for _, line := range []string{
		"tick-rate: 30 # --tick-rate", "fixed-rate: 50 # the game", "send-every: 2 # the game", "max-clients: 12 # the game", "client-budget: 900 # the game",
		"keep-dropped: 0s # the game", "max-rewind: 100ms # the game", "same-player: allow # the game", "lost-after: 5s",
	} {
		if !strings.Contains(r.stdout, line+"\n") {
			t.Errorf("%q is not printed:\n%s", line, r.stdout)
		}
	}
	if r := command(t, defaulter{newGame(), spec}, nil, "--help"); !strings.Contains(r.stdout, "or a fraction such as 30000/1001 (default 20)") {
		t.Errorf("--help says nothing of it:\n%s", r.stdout)
	}
}

// Invalid RoomDefaults are the game's mistake, and the error names the game.
func TestInvalidRoomDefaultsAreTheGames(t *testing.T) {
	for name, spec := range map[string]netloop.RoomSpec{
		"send-every": {SendEvery: 61}, "keep-dropped": {KeepDropped: 2 * time.Hour}, "Room.Rate": {Rate: netloop.Hz(5000)}, "Room.Duplicate": {Duplicate: 9},
	} {
		r := command(t, defaulter{newGame(), spec}, nil)
		if r.exit != 2 {
			t.Errorf("%s: exit %d", name, r.exit)
		}
		oneLineOf(t, r.stderr, "the game's RoomDefaults: "+name)
	}
}
