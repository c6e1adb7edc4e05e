package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/testing/golden"
)

// looping is a game with each feature that loop print shows.
func looping() *game {
	g := newGame()
	nothing := func(*netloop.Tick) {}
	g.open = func(r *netloop.Room) error {
		r.On(netloop.FixedUpdate, "ships", nothing)
		r.On(netloop.FixedUpdate, "hits", nothing, netloop.After("ships"), netloop.Priority(netloop.PriorityFirst))
		r.On(netloop.Update, "scores", nothing, netloop.Every(time.Second))
		r.On(netloop.Update, "weather", nothing, netloop.Every(50*time.Millisecond, netloop.CatchUp(3)), netloop.Before("scores"))
		r.On(netloop.Update, "debug", nothing, netloop.Disabled(true))
		r.Group("ai", netloop.RunIf(func(*netloop.Tick) bool { return true }), netloop.Before("weather"))
		r.On(netloop.Update, "think", nothing, netloop.InSystemGroup("ai"))
		r.On(netloop.PostLateUpdate, "audit", nothing, netloop.After("transport.flush"))
		return nil
	}
	return g
}

func TestLoopPrintShowsTheTree(t *testing.T) {
	for name, args := range map[string][]string{"loop.txt": nil, "loop.json": {"--json"}, "loop.dot": {"--dot"}} {
		r := command(t, looping(), nil, append([]string{"loop", "print", "--tick-rate", "30"}, args...)...)
		if r.exit != 0 || r.stderr != "" {
			t.Fatalf("exit %d: %s", r.exit, r.stderr)
		}
		golden.Check(t, "testdata/"+name, r.stdout)
	}
}

// The view of a running server, with all optional parts.
func TestLoopPrintShowsCostAndState(t *testing.T) {
	v := loop.View{Tick: 1234, Rate: "60 Hz", FixedRate: "60 Hz", Scale: "1/2", Quarantined: 1, Stages: []loop.DumpStage{
		{Stage: loop.Update, Systems: []loop.DumpSystem{
			{Name: "ships", Cost: &loop.DumpCost{Runs: 74040, Mean: 1234567, P50: 1100 * time.Microsecond, P99: 3500 * time.Microsecond}},
			{Name: "scores", Periodic: true, Period: time.Second, Quarantine: 12, Panics: 3, Cost: &loop.DumpCost{Runs: 3, Mean: 900}},
			{Name: "debug", Disabled: true, Pending: true},
			{Name: "waves", Groups: []string{"ai"}, Disabled: true, Periodic: true, Period: 3 * time.Second, Scaled: true, CatchUp: 2},
			{Name: "dust", Periodic: true, Period: 100 * time.Millisecond, Gap: true},
		}},
		{Systems: []loop.DumpSystem{{Name: "new", Groups: []string{"ai", "far"}, Pending: true}}},
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/loop" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	defer s.Close()
	for name, args := range map[string][]string{"loop_running.txt": nil, "loop_running.json": {"--json"}, "loop_running.dot": {"--dot"}} {
		r := command(t, newGame(), nil, append([]string{"loop", "print", "--admin", s.URL}, args...)...)
		if r.exit != 0 || r.stderr != "" {
			t.Fatalf("exit %d: %s", r.exit, r.stderr)
		}
		golden.Check(t, "testdata/"+name, r.stdout)
	}
}

func TestLoopPrintAsksARunningServer(t *testing.T) {
	g := looping()
	r := start(t, g, nil, "--admin", "127.0.0.1:0")
	banner := r.banner()
	_, at, _ := strings.Cut(banner, "http://")
	at, _, _ = strings.Cut(at, " ")
	// No scheme: the server prints it so.
	got := command(t, g, nil, "loop", "print", "--json", "--admin", at)
	var v loop.View
	if got.exit != 0 || json.Unmarshal([]byte(got.stdout), &v) != nil {
		_, log := r.stop()
		t.Fatalf("exit %d: %s%s\n%s", got.exit, got.stdout, got.stderr, log)
	}
	i := slices.IndexFunc(v.Stages, func(s loop.DumpStage) bool { return s.Stage == loop.FixedUpdate })
	ships := v.Stages[i].Systems[1]
	if v.Tick == 0 || ships.Name != "ships" || ships.Cost == nil || ships.Cost.Runs == 0 {
		t.Errorf("tick %d, %+v", v.Tick, ships)
	}
	if exit, log := r.stop(); exit != 0 {
		t.Errorf("exit %d: %s", exit, log)
	}
}

func TestLoopPrintErrors(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/stuck") {
			http.Error(w, "no tick ended meanwhile", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"hello":1}`))
	}))
	defer other.Close()
	broken := newGame()
	broken.open = func(r *netloop.Room) error {
		r.On(netloop.Update, "a", func(*netloop.Tick) {}, netloop.After("nobody"))
		return nil
	}
	for _, c := range []struct {
		game *game
		exit int
		args []string
		want string
	}{
		{newGame(), 2, []string{"loop"}, "needs a command (command: print)"},
		{newGame(), 2, []string{"loop", "prnt"}, "did you mean print?"},
		{newGame(), 2, []string{"loop", "print", "more"}, "unexpected argument"},
		{newGame(), 2, []string{"loop", "print", "--jsn"}, "--json"},
		{newGame(), 2, []string{"loop", "print", "--json", "--dot"}, "exclude each other"},
		{newGame(), 2, []string{"loop", "print", "--tick-rate", "0"}, "tick-rate"},
		{newGame(), 2, []string{"loop", "print", "--admin", "localhost"}, "use host:port or a URL"},
		{newGame(), 2, []string{"loop", "print", "--config", filepath.Join(t.TempDir(), "none")}, "config"},
		{broken, 2, []string{"loop", "print"}, "nobody"},
		{newGame(), 1, []string{"loop", "print", "--admin", "http://127.0.0.1:1"}, "no answer"},
		{newGame(), 1, []string{"loop", "print", "--admin", other.URL}, "not the loop of a netloop server of this version: it has no stages"},
		{newGame(), 2, []string{"loop", "print", "--admin", other.URL, "--admin-token-file", "none"}, "--admin-token-file"},
		{newGame(), 1, []string{"loop", "print", "--admin", other.URL + "/stuck"}, "no tick ended"},
	} {
		r := command(t, c.game, nil, c.args...)
		if r.exit != c.exit {
			t.Errorf("%q: exit %d, want %d: %s", c.args, r.exit, c.exit, r.stderr)
		}
		oneLineOf(t, r.stderr, c.want)
	}
}
