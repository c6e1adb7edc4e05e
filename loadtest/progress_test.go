package loadtest

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// The line of progress gives the number of players and the figures since the last line, and omits
// figures without samples.
func TestTheProgressLineOmitsMissingFigures(t *testing.T) {
	w, _ := bench()
	r := w.run
	r.clock, r.workers = clock.NewSystem(), []*worker{w}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // It waits for no worker.
	p := newProgress(ctx, r)
	says := func(want string) {
		t.Helper()
		if got := p.line(ctx); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	start := r.phase().String()
	says(start + " │ 0/1 bots │ 0 snap/s")
	r.connected.Add(1)
	r.drops.Add(1)
	record(w.live.rtt, 20*time.Millisecond)
	record(w.live.interval, 17*time.Millisecond)
	w.handOver()
	says(start + " │ 1 bots │ 0 snap/s │ 1 drops │ rtt 20/20 │ gap 17")
	w.handOver()
	says(start + " │ 1 bots │ 0 snap/s │ 1 drops")
	r.away.Add(1)
	w.handOver()
	says(start + " │ 0/1 bots │ 0 snap/s │ 1 drops")
}

// The goroutine of the progress has ended when stop returns: it prints nothing afterwards.
func TestTheProgressEndsWithStop(t *testing.T) {
	w, _ := bench()
	r := w.run
	r.clock, r.workers, r.screen = clock.NewSystem(), []*worker{w}, newScreen(io.Discard, false)
	stacks := make([]byte, 1<<20)
	for range 20 {
		r.startProgress(t.Context())()
		if text := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(text, "startProgress") {
			t.Fatalf("it runs on:\n%s", text)
		}
	}
}
