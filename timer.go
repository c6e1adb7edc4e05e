package netloop

import (
	"container/heap"
	"math"
	"time"
)

// Timer is a call that [Tick.After] or [Tick.AfterScaled] has put off.
type Timer struct{ t *timer }

// Stop keeps the call from happening. It reports whether it was in time.
func (t Timer) Stop() bool {
	if t.t == nil || t.t.in == nil {
		return false
	}
	// It is taken out at once: who sets and stops a long timer again and again,
	// perhaps because a client makes it, shall not fill the memory.
	heap.Remove(&t.t.in.heaps[t.t.clock], t.t.index)
	return true
}

type timer struct {
	clock int           // that of at
	at    time.Duration // when it is due
	seq   uint64        // order of registration, among equal times
	fn    func(*Tick)
	in    *timers // nil: stopped or done
	index int     // in the heap
}

// The clocks that a call may be put off by, in the order in which they are served.
const (
	gameClock = iota
	scaledClock
	numClocks
)

// timers holds the put-off calls: a heap for each clock, in the order (time,
// registration). The room's goroutine owns it.
type timers struct {
	heaps [numClocks]timerHeap
	seq   uint64
}

// add puts a call off until at, which must be later than now: what a running
// timer adds waits for the next tick, however short.
func (ts *timers) add(clock int, at time.Duration, fn func(*Tick)) Timer {
	ts.seq++
	t := &timer{clock: clock, at: at, seq: ts.seq, fn: fn, in: ts}
	heap.Push(&ts.heaps[clock], t)
	return Timer{t}
}

// run calls what is due. When one call panics, the rest is called in the next
// tick.
func (ts *timers) run(t *Tick) {
	for clock, now := range [numClocks]time.Duration{t.now.GameTime, t.now.ScaledTime} {
		for h := &ts.heaps[clock]; len(*h) > 0 && (*h)[0].at <= now; {
			heap.Pop(h).(*timer).fn(t)
		}
	}
}

// ahead is the time that lies d after now, at least 0. It saturates, after 292
// years.
func ahead(now, d time.Duration) time.Duration {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return max(now+d, 0)
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
