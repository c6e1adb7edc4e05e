package loop

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A sweep leaves a heap of the running timers. The next one waits for as many pushes as timers
// remained.
func TestASweepLeavesAHeapOfRunningTimers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 4))
	var f flow[*Now]
	s := new(System[*Now])
	push := func(gen uint32) { f.push(waiting[*Now]{at: time.Duration(rnd.Int64N(1000)), sys: s, gen: gen}) }
	swept := func(left int) {
		t.Helper()
		if f.sweep(perTick); len(f.heap) != left {
			t.Fatalf("a sweep leaves %d, want %d", len(f.heap), left)
		}
		for i := range f.heap {
			if i > 0 && f.heap[(i-1)/2].at > f.heap[i].at {
				t.Fatalf("the heap order is violated at %d", i)
			}
		}
	}
	for i := range 200 {
		push(uint32(i % 2))
	}
	swept(100)
	for range 100 {
		push(1)
	}
	swept(200) // It waits.
	push(0)
	swept(101)
	for last := time.Duration(0); len(f.heap) > 0; f.drop() {
		if f.heap[0].at < last {
			t.Fatalf("%d follows %d", f.heap[0].at, last)
		}
		last = f.heap[0].at
	}
	f = flow[*Now]{}
	push(1)
	swept(0)
	for range minSweep {
		push(1)
	}
	swept(minSweep) // A small heap waits longer.
	push(1)
	swept(0)
}
