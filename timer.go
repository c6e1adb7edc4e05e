package netloop

import (
	"container/heap"
	"time"
)

// Timer is a call that [Tick.After] has put off.
type Timer struct{ t *timer }

// Stop keeps the call from happening. It reports whether it was in time.
func (t Timer) Stop() bool {
	pending := t.t != nil && t.t.fn != nil
	if pending {
		t.t.fn = nil
	}
	return pending
}

type timer struct {
	at  time.Duration // game time
	seq uint64        // order of registration, among equal times
	fn  func(*Tick)   // nil: stopped or done
}

// timers is a heap of put-off calls, in the order (time, registration). The
// room's goroutine owns it.
type timers struct {
	heap timerHeap
	seq  uint64
}

// add puts a call off until at, which must be later than now: what a running
// timer adds waits for the next tick, however short.
func (ts *timers) add(at time.Duration, fn func(*Tick)) Timer {
	ts.seq++
	t := &timer{at: at, seq: ts.seq, fn: fn}
	heap.Push(&ts.heap, t)
	return Timer{t}
}

// run calls what is due. When one call panics, the rest is called in the next
// tick.
func (ts *timers) run(t *Tick) {
	for len(ts.heap) > 0 && ts.heap[0].at <= t.now.GameTime {
		next := heap.Pop(&ts.heap).(*timer)
		if fn := next.fn; fn != nil {
			next.fn = nil
			fn(t)
		}
	}
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(*timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
