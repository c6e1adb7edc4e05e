package loadtest_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/netloop/netloop/loadtest"
)

// TestAFloodDelaysCallsOfOthersByOneTick measures with real programs the effect of one flooding
// client on the calls of 99 others: the 99th percentile of their round trips grows by a tick at
// most. The server has a core of its own, and the bots run at 20 frames per second, the maximum
// for the other core.
func TestAFloodDelaysCallsOfOthersByOneTick(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip(err)
	}
	const tick = 1000.0 / 60
	p := build(t)
	run := func(attack string) (r loadtest.Result, said string) {
		addr, admin, stop := p.serve(t, true)
		defer stop()
		if attack != "" {
			end := flood(t, addr, attack, 1)
			defer func() { said = end() }()
		}
		return p.play(t, addr, admin, 99, 8*time.Second, "--frame-rate", "20"), ""
	}
	calm, _ := run("")
	if calm.RPC.RTT.P99 == nil || calm.RPC.Answered < 1000 {
		t.Fatalf("%d calls were answered", calm.RPC.Answered)
	}
	t.Logf("without a flood: %d calls, p50 %.1f ms, p99 %.1f ms; generator late p99 %.2f ms",
		calm.RPC.Answered, *calm.RPC.RTT.P50, *calm.RPC.RTT.P99, *calm.Generator.Lateness.P99)
	for _, attack := range []string{"standings", "say", "large"} {
		r, said := run(attack)
		if r.RPC.RTT.P99 == nil {
			t.Errorf("%s: no call was answered", attack)
			continue
		}
		t.Logf("%s: %d calls, p50 %.1f ms, p99 %.1f ms (%+.1f); generator late p99 %.2f ms | %s", attack, r.RPC.Answered,
			*r.RPC.RTT.P50, *r.RPC.RTT.P99, *r.RPC.RTT.P99-*calm.RPC.RTT.P99, *r.Generator.Lateness.P99, said)
		switch {
		case r.Clients.Failed+r.Clients.Disconnected > 0:
			t.Errorf("%s: %d clients were lost", attack, r.Clients.Failed+r.Clients.Disconnected)
		case *r.Generator.Lateness.P99 >= 5 || *calm.Generator.Lateness.P99 >= 5:
			t.Logf("%s: not judged: the healthy clients were late", attack)
		case *r.RPC.RTT.P99 > *calm.RPC.RTT.P99+tick:
			t.Errorf("%s: calls take longer by more than a tick", attack)
		}
	}
}
