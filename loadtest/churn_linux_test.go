package loadtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/loadtest"
)

// held is what a process holds.
type held struct{ goroutines, files, heap int }

// holds counts the goroutines, open files and bytes of the heap, once goroutines have had time to
// end.
func holds(t *testing.T) (h held) {
	t.Helper()
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now := held{runtime.NumGoroutine(), len(files), int(m.HeapAlloc)}
		if h.goroutines == 0 || now.goroutines < h.goroutines {
			h = now
		}
	}
	return h
}

// After 10 000 clients have joined and left, server and load client hold as much as after the first
// hundreds. NETLOOP_CHURNED is another number.
func TestChurnedClientsLeaveNothing(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes five minutes: NETLOOP_VERIFY=1 runs it")
	}
	const clients, most = 100, 20 * time.Minute
	churned := 10_000
	if text := os.Getenv("NETLOOP_CHURNED"); text != "" {
		_, _ = fmt.Sscan(text, &churned)
	}
	s, _ := serve(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(10)}}, arena.New())
	play := func(duration string) (r loadtest.Result) {
		_, stdout, _ := load(t, t.Context(), "--addr", s.Addr().String(), "--clients", fmt.Sprint(clients), "--ramp", "3s", "--warmup", "1s", "--profile", "idle", "--verify", "1",
			"--churn", "40%/s", "--duration", duration, "--ui", "quiet", "--out", "json")
		_ = json.Unmarshal([]byte(stdout), &r) // A busy server may admit no client.
		return r
	}
	play("10s")
	before := holds(t)
	joined := 0
	for end := time.Now().Add(most); joined < churned && time.Now().Before(end); {
		joined += int(play("60s").Joins.Admitted)
	}
	after := holds(t)
	t.Logf("%d clients have joined; before %+v, after %+v", joined, before, after)
	if after.goroutines > before.goroutines+2 || after.files > before.files+2 || after.heap > before.heap+before.heap/10+1<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if joined < churned {
		t.Errorf("only %d clients have joined in %v", joined, most)
	}
}
