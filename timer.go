package netloop

import (
	"container/heap"
	"time"
)

// Timer is a call that [Tick.After] has put off.
type Timer struct{ t *timer }

// Stop keeps the call from happening. It reports whether it was in time.
func (t Timer) Stop() bool {
	if t.t == nil || t.t.in == nil {
		return false
	}
	// It is taken out at once: who sets and stops a long timer again and again,
	// perhaps because a client makes it, shall not fill the memory.
	heap.Remove(&t.t.in.heap, t.t.index)
	return true
}

type timer struct {
	at    time.Duration // game time
	seq   uint64        // order of registration, among equal times
	fn    func(*Tick)
	in    *timers // nil: stopped or done
	index int     // in the heap
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
	t := &timer{at: at, seq: ts.seq, fn: fn, in: ts}
	heap.Push(&ts.heap, t)
	return Timer{t}
}

// run calls what is due. When one call panics, the rest is called in the next
// tick.
func (ts *timers) run(t *Tick) {
	for len(ts.heap) > 0 && ts.heap[0].at <= t.now.GameTime {
		heap.Pop(&ts.heap).(*timer).fn(t)
	}
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.in = nil
	return t
}
