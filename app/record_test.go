package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/recording"
)

// drone is the object of the recorded game.
type drone struct{ X int32 }

var drones = netloop.NewClass[drone](shooter, "drone")

// recorded is a game with a state that depends on its setting, the seed and the time of day.
func recorded() *game {
	g := newGame()
	g.open = func(r *netloop.Room) error {
		bots := g.config.(*settingsStruct).Bots
		r.On(netloop.Update, "shooter.fly", func(t *netloop.Tick) {
			if t.Number() == 1 {
				drones.Spawn(t, drone{})
			}
			for o := range drones.All(t) {
				o.Edit(t).X += t.Rand().Int32N(9) + int32(bots) + int32(t.Time().Nanosecond())
			}
		})
		r.OnDrain(func(t *netloop.Tick, left time.Duration) {
			for o := range drones.All(t) {
				o.Edit(t).X += int32(left.Milliseconds())
			}
		})
		return nil
	}
	return g
}

// recordRun serves for a moment and returns the file, which contains some ticks: a busy machine
// gets a longer moment.
func recordRun(t *testing.T) string {
	t.Helper()
	for _, moment := range []string{"300ms", "3s", "30s"} {
		path := filepath.Join(t.TempDir(), "run.rec")
		r := command(t, recorded(), nil, "run", "--listen", "127.0.0.1:0", "--admin", "", "--for", moment, "--drain", "7s", "--record", path, "--shooter.bots", "9")
		if r.exit != 0 {
			t.Fatalf("exit %d: %s", r.exit, r.stderr)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the recording: %v, error %v", info, err)
		}
		r = command(t, recorded(), nil, "replay", "--ticks", path)
		if strings.Contains(r.stdout, "\ntick 5 ") {
			return path
		}
	}
	t.Fatal("30 s have no five ticks")
	return ""
}

func TestRecordedRunReplays(t *testing.T) {
	path := recordRun(t)
	// The settings are those of the recording, not these.
	r := command(t, recorded(), []string{"NETLOOP_SHOOTER_BOTS=3"}, "replay", "--ticks", path)
	if r.exit != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s", r.exit, r.stderr)
	}
	all := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(all) < 3 || !strings.HasPrefix(all[0], "tick 1 state ") || !strings.HasPrefix(all[len(all)-1], "identical: ") {
		t.Errorf("printed:\n%s", r.stdout)
	}

	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r = command(t, recorded(), nil, "replay", write(t, "torn.rec", string(file[:len(file)-1])))
	if r.exit != 0 || !strings.Contains(r.stdout, "identical: ") || !strings.Contains(r.stderr, `torn.rec": file is truncated after`) {
		t.Errorf("torn: exit %d: %s%s", r.exit, r.stdout, r.stderr)
	}
	file[len(file)-1] ^= 1
	r = command(t, recorded(), nil, "replay", write(t, "bad.rec", string(file)))
	if r.exit != 1 || !strings.Contains(r.stderr, "damaged") {
		t.Errorf("damaged: exit %d: %s%s", r.exit, r.stdout, r.stderr)
	}
	// Another program is another game.
	other := recorded()
	open := other.open
	other.open = func(r *netloop.Room) error {
		r.On(netloop.PreUpdate, "shooter.cheat", func(t *netloop.Tick) {
			for o := range drones.All(t) {
				if t.Number() == 4 {
					o.Edit(t).X++
				}
			}
		})
		return open(r)
	}
	r = command(t, other, nil, "replay", path)
	if r.exit != 1 || !strings.Contains(r.stderr, "diverges at tick 4: the state") {
		t.Errorf("another game: exit %d: %s%s", r.exit, r.stdout, r.stderr)
	}
}

func TestRecordAndReplayErrors(t *testing.T) {
	there := write(t, "there.rec", "not a recording")
	var foreign bytes.Buffer
	head := recording.Head{Schema: "shooter", Layout: recording.Layout(), Config: []byte("{}"), Notes: map[string]string{"shooter.lasers": "5"}}
	writeHead(t, &foreign, &head)
	var chess bytes.Buffer
	head.Schema = "chess"
	writeHead(t, &chess, &head)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--record", there}, "file exists"},
		{[]string{"run", "--record", filepath.Join(there, "below")}, "use a file in a writable folder"},
		{[]string{"replay"}, "takes one argument"},
		{[]string{"replay", "no.rec"}, "name an existing file"},
		{[]string{"replay", there}, "there.rec\": not a recording of this version of netloop"},
		{[]string{"replay", write(t, "empty.rec", "")}, "it is empty"},
		{[]string{"replay", t.TempDir()}, "is a directory"},
		{[]string{"replay", "--tick-rate", "30", there}, "--tick-rate is not a flag of server replay, but of server run (server replay --help lists them)"},
		{[]string{"replay", "--tikc-rate", "30", there}, "--tikc-rate is not a flag: did you mean --tick-rate of server run? (--help lists them)"},
		{[]string{"token", "--subjcet", "x"}, "--subjcet is not a flag: did you mean --subject of server token gen? (--help lists them)"},
		{[]string{"replay", "--tikcs", there}, "did you mean --ticks?"},
		{[]string{"replay", write(t, "chess.rec", chess.String())}, `it is of the game "chess", and this program is "shooter"`},
		{[]string{"replay", write(t, "foreign.rec", foreign.String())}, `recorded with shooter.lasers="5"`},
	} {
		r := command(t, newGame(), nil, c.args...)
		if r.exit != 2 || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d: %s", c.args, r.exit, r.stderr)
		}
	}
}

func writeHead(t *testing.T, w *bytes.Buffer, h *recording.Head) {
	t.Helper()
	b, err := h.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recording.NewWriter(w, b); err != nil {
		t.Fatal(err)
	}
}

// A server that never ran removes its recording, which would be in the way of the next try.
func TestServerThatCannotOpenLeavesNoRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	g := newGame()
	g.open = func(*netloop.Room) error { return netloop.ConfigError("shooter.bots", 65, "use 0 to 64") }
	if r := command(t, g, nil, "run", "--record", path, "--for", time.Millisecond.String()); r.exit != 2 {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
}
