package loadtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs an arena until the test ends, or until stop is called.
func serve(t *testing.T, cfg netloop.Config) (s *netloop.Server, stop func()) {
	t.Helper()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s, err := netloop.New(cfg, arena.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one sender, one value
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// load runs the load client and returns its exit status and what it printed.
func load(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = loadtest.Execute(ctx, append([]string{"loadclient"}, args...), &out, &err, bot.New())
	t.Logf("exit %d\n%s%s", code, &out, &err)
	return code, out.String(), err.String()
}

func TestBotsPlayARealServer(t *testing.T) {
	s, _ := serve(t, netloop.Config{})
	file := filepath.Join(t.TempDir(), "result.json")
	code, stdout, stderr := load(t, t.Context(), "run", "--addr", s.Addr().String(), "--admin", "http://"+s.AdminAddr().String(),
		"--clients", "5", "--ramp", "100ms", "--warmup", "1s", "--duration", "2s", "--out", "json="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r loadtest.Result
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if want := (loadtest.Clients{Wanted: 5, Connected: 5}); r.Clients != want {
		t.Errorf("clients %+v, want %+v", r.Clients, want)
	}
	if !r.Converged {
		t.Error("not converged")
	}
	if r.Saturated {
		t.Skip("this machine is too busy to be measured")
	}
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	// 5 clients × 2 calls a second × 2 s, each schedule at its own phase.
	if r.RPC.Sent < 15 || r.RPC.Sent > 25 || r.RPC.Answered != r.RPC.Sent {
		t.Errorf("rpc %+v", r.RPC)
	}
	// 5 clients × 60 Hz × 2 s = 600; a busy machine may lose many.
	if n := r.Snapshots.Received; n < 300 || n > 700 {
		t.Errorf("%d snapshots", n)
	}
	for name, x := range map[string]*float64{
		"rtt": r.RPC.RTT.P50, "rate": r.Snapshots.Rate.Min, "interval": r.Snapshots.Interval.P99, "age": r.Snapshots.Age.P50,
		"bytes": r.Snapshots.Bytes, "tick": r.Server.Tick.P99, "lateness": r.Server.Lateness.Max, "tick rate": r.Server.TickRate,
	} {
		if x == nil || *x <= 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if !strings.Contains(stdout, "OK: every client connected") {
		t.Errorf("the summary does not say that all is well:\n%s", stdout)
	}
	if !strings.Contains(stderr, "measuring") {
		t.Errorf("no progress on stderr:\n%s", stderr)
	}
}
