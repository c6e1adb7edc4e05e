package e2e_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// defaultingGame is a game with defaults for its room.
type defaultingGame struct {
	script
	spec netloop.RoomSpec
}

func (s defaultingGame) RoomDefaults() netloop.RoomSpec { return s.spec }

// A game has defaults for its room, and each field of the configuration overrides one
// field of it. Other rooms have the spec of their OpenRoom call, and replay with it.
func TestAGameHasDefaultsForItsRoom(t *testing.T) {
	seen := map[string]netloop.RoomSpec{}
	defaults := netloop.RoomSpec{Kind: "lobby", Rate: netloop.Hz(20), MaxClients: 12, Duplicate: netloop.DuplicateRefuse, CloseEmpty: time.Minute}
	g := defaultingGame{func(r *netloop.Room) { seen[r.Spec().Name] = r.Spec() }, defaults}
	recorded := new(memoryFile)
	w := netlooptest.New(t, g, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), Duplicate: netloop.DuplicateTakeOver}),
		netlooptest.RecordRoom(func(netloop.RoomInfo) (io.WriteCloser, error) { return recorded, nil }))
	main := seen[""]
	if main.Kind != "lobby" || main.Rate != netloop.Hz(30) || main.FixedRate != netloop.Hz(30) || main.MaxClients != 12 ||
		main.Duplicate != netloop.DuplicateTakeOver || main.CloseEmpty != time.Minute {
		t.Errorf("the default room is %+v", main)
	}
	openRoom(t, w, netloop.RoomSpec{Name: "a"})
	other := seen["a"]
	if other.Kind != "" || other.Rate != netloop.Hz(60) || other.CloseEmpty != 30*time.Second {
		t.Errorf("another room is %+v", other)
	}
	w.Step(3)
	if _, err := netloop.NewReplay(netloop.Config{}, g, recorded); err != nil {
		t.Fatal(err)
	}
	if seen["a"] != other {
		t.Errorf("it replays as %+v, and was %+v", seen["a"], other)
	}

	bad := defaultingGame{func(*netloop.Room) {}, netloop.RoomSpec{MaxClients: -1}}
	if _, err := netloop.New(netloop.Config{Room: netloop.RoomSpec{MaxClients: 4}}, bad); err == nil || !strings.Contains(err.Error(), "the game's RoomDefaults: Room.MaxClients") {
		t.Errorf("a proposal that cannot be used: %v", err)
	}
}
