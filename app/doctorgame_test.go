package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
)

// costly is a game with each fault that the doctor finds.
func costly() *game {
	type ball struct {
		X, Y  float32 `net:"quant=1/8"`
		Speed float64
		Heat  float32 `net:"quant=1/256,range=0:1"`
		Spin  [4]float32
		Name  string `net:"max=200"`
		Ghost float32
	}
	type word struct{ Text string }
	sc := netloop.NewSchema("costly", 1, 0)
	netloop.NewClass[ball](sc, "ball")
	netloop.NewRPC[word](sc, "say")
	netloop.NewRPC[word](sc, "said", netloop.ServerOnly())
	netloop.NewCall[word, word](sc, "ask", netloop.Limit(1, 2))
	netloop.NewRPC[word](sc, "shout", netloop.LimitPerTick(1))
	return &game{schema: sc, config: &settingsStruct{}}
}

// Without a server the doctor names every float without a step and every message without a limit,
// as notes, which are no failure.
func TestTheDoctorLooksAtTheGame(t *testing.T) {
	r := command(t, costly(), nil, "doctor", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir())
	for _, want := range []string{
		"ok    schema      1 classes with 10 fields: an object of ball is sent in at most 2", " bytes, Name has most of them\n",
		"note  floats      without a step: ball.Speed, ball.Spin[0], ball.Spin[1], ball.Spin[2], ball.Spin[3], ball.Ghost\n                  give those that move a step",
		"note  messages    without a limit of their own: say\n                  declare them with netloop.Limit",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	if failed := strings.Count(r.stdout, "FAIL  "); (failed > 0) != (r.exit == 1) || failed > 0 && !strings.Contains(r.stderr, fmt.Sprintf(": %d of 12 checks failed", failed)) {
		t.Errorf("exit %d: %s\n%s", r.exit, r.stderr, r.stdout)
	}
	if got := firstOf(strings.Split("a b c d e f g h i j", " ")); got != "a, b, c, d, e, f, g, h and 2 more" {
		t.Errorf("ten names are %q", got)
	}
}

// In a running server only floats that were sent count, and systems are compared with the tick.
func TestTheDoctorLooksAtARunningGame(t *testing.T) {
	system := func(name string, mean, p99 time.Duration) loop.DumpSystem {
		return loop.DumpSystem{Name: name, Cost: &loop.DumpCost{Runs: 100, Mean: mean, P99: p99}}
	}
	builtIn := system("netvar.snapshot", time.Second, time.Second)
	builtIn.Place = loop.Tail
	const ms = time.Millisecond
	v := loop.View{Rate: "50 Hz", FixedRate: "100 Hz", Stages: []loop.DumpStage{
		{Stage: loop.FixedUpdate, Systems: []loop.DumpSystem{system("physics", 5*ms, 6*ms), {Name: "new"}, builtIn}},
		{Stage: loop.Update, Systems: []loop.DumpSystem{system("paths", 2*ms, 10*ms), system("cheap", ms, 9*ms)}},
	}}
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked += r.URL.String() + " "; r.URL.Path {
		case "/metrics":
			fmt.Fprint(w, "# TYPE netloop_replication_field_bytes_total counter\n"+
				`netloop_replication_field_bytes_total{class="ball",field="X"} 600`+"\n"+
				`netloop_replication_field_bytes_total{class="ball",field="Speed"} 1400`+"\n"+
				`netloop_replication_field_bytes_total{class="ball",field="Ghost"} 0`+"\n")
		case "/loop":
			_ = json.NewEncoder(w).Encode(v)
		}
	}))
	defer s.Close()
	doctor := func() result { return command(t, costly(), nil, "doctor", "--running", s.URL, "--room", "den") }
	r := doctor()
	for _, want := range []string{
		"note  floats      without a step: ball.Speed (70 % of all bytes of fields)\n",
		"FAIL  systems     physics takes 50 % of a tick on average, 60 % in one of 100\n                  make it cheaper",
		"note  systems     paths takes 10 % of a tick on average, 50 % in one of 100\n                  spread",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	if r.exit != 1 || strings.Contains(r.stdout, "cheap ") || strings.Contains(r.stdout, "snapshot") || strings.Contains(r.stdout, "listen") || asked != "/metrics /loop?room=den " {
		t.Errorf("exit %d, asked for %s:\n%s", r.exit, asked, r.stdout)
	}
	v.Stages[0].Systems[0].Cost.Mean = 4 * ms
	v.Stages[1].Systems = v.Stages[1].Systems[1:]
	if r := doctor(); r.exit != 0 || !strings.Contains(r.stdout, "note  systems     physics takes 40 %") {
		t.Errorf("exit %d: %s", r.exit, r.stdout)
	}
	v.Rate = "often"
	if r := doctor(); r.exit != 1 || !strings.Contains(r.stderr, `--running: "often" is not the rate`) {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
	s.Close()
	if r := doctor(); r.exit != 1 || !strings.Contains(r.stderr, "--running: no answer") {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
}
