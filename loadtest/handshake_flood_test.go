package loadtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/proctest"
)

// TestAHandshakeFloodDelaysNoTick measures with real programs the effect of a host that proves
// its address, starts 500 handshakes per second, and sends invalid data: 20 healthy clients with
// and without it, in turn, the minimum of each.
func TestAHandshakeFloodDelaysNoTick(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	p := build(t)
	flooderProgram := filepath.Join(p.dir, "flooder")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", flooderProgram, "../internal/net/quicnet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addr, admin, stop := p.serve(t, false)
	defer stop()
	var least [2]float64 // of the 99th percentiles of ticks, in milliseconds: calm, flooded
	for turn := range 6 {
		flooding := turn % 2
		end := func() string { return "no host" }
		if flooding == 1 {
			end = startHandshakeFlood(t, flooderProgram, addr)
		}
		r := p.play(t, addr, admin, 20, 5*time.Second)
		said := end()
		if r.Server.Tick.P99 == nil || r.Clients.Failed > 0 {
			t.Fatalf("beside %s: %+v", said, r)
		}
		t.Logf("tick p99 %.2f ms beside %s", *r.Server.Tick.P99, said)
		if p99 := *r.Server.Tick.P99; least[flooding] == 0 || p99 < least[flooding] {
			least[flooding] = p99
		}
	}
	if more := least[1] - least[0]; more > 1 {
		t.Errorf("the host changes the 99th percentile of ticks by %.2f ms", more)
	}
}

// startHandshakeFlood starts the flooding host, at the lowest priority.
func startHandshakeFlood(t *testing.T, program, addr string) (stop func() string) {
	t.Helper()
	cmd := proctest.Command(t, program, "TestFloodProgram")
	cmd.Env = append(os.Environ(), "NETLOOP_FLOOD="+addr, "NETLOOP_FLOOD_RATE=500", "NETLOOP_FLOOD_BYTES=0100")
	return proctest.Start(t, cmd, "BEGUN ")
}
