package loop

import (
	"container/heap"
	"time"
)

// TimerClock is a clock for delayed calls.
type TimerClock int

// The clocks, in the order in which a tick serves them.
const (
	GameClock TimerClock = iota
	ScaledClock
	numTimerClocks
)

// Timers holds the delayed calls: a heap for each clock, in the order (time, registration). Only
// the goroutine of the loop may use it.
type Timers[C any] struct {
	// Halt, if set, is called before each due call: true ends Run, which keeps the remaining calls.
	Halt func() bool

	heaps [numTimerClocks]timerHeap[C]
	seq   uint64
}

// Timer is a delayed call.
type Timer[C any] struct {
	clock TimerClock    // clock of at
	at    time.Duration // time at which it is due
	seq   uint64        // order of registration, among equal times
	fn    func(C)
	in    *Timers[C] // nil: stopped or done
	index int        // in the heap
}

// Add delays a call until at, which must be later than now: a call that a running timer adds waits
// for the next tick, even with a short delay.
func (ts *Timers[C]) Add(clock TimerClock, at time.Duration, fn func(C)) *Timer[C] {
	ts.seq++
	t := &Timer[C]{clock: clock, at: at, seq: ts.seq, fn: fn, in: ts}
	heap.Push(&ts.heaps[clock], t)
	return t
}

// Stop cancels the call. It reports whether the call was still pending.
func (t *Timer[C]) Stop() bool {
	if t.in == nil {
		return false
	}
	// Remove it at once, so that code that sets and stops a long timer repeatedly, perhaps on a
	// client's requests, does not fill the memory.
	heap.Remove(&t.in.heaps[t.clock], t.index)
	return true
}

// Shift adds by to the due times of all calls on a clock. When the clock itself was set by the same
// amount, the remaining delays are unchanged.
func (ts *Timers[C]) Shift(clock TimerClock, by time.Duration) {
	for _, t := range ts.heaps[clock] {
		t.at += by
	}
}

// Due returns the game time at which the first call is due, or never if no call waits. scale is the
// line of scaled time.
func (ts *Timers[C]) Due(scale Scale) time.Duration {
	due := never
	if h := ts.heaps[GameClock]; len(h) > 0 {
		due = h[0].at
	}
	if h := ts.heaps[ScaledClock]; len(h) > 0 {
		due = min(due, scale.Until(h[0].at))
	}
	return due
}

// Run runs the due calls. When one call panics, the remaining ones run in the next tick.
func (ts *Timers[C]) Run(c C, n *Now) {
	for clock, now := range [numTimerClocks]time.Duration{n.GameTime, n.ScaledTime} {
		for h := &ts.heaps[clock]; len(*h) > 0 && (*h)[0].at <= now && (ts.Halt == nil || !ts.Halt()); {
			heap.Pop(h).(*Timer[C]).fn(c)
		}
	}
}

type timerHeap[C any] []*Timer[C]

func (h timerHeap[C]) Len() int { return len(h) }
func (h timerHeap[C]) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap[C]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap[C]) Push(x any) {
	t := x.(*Timer[C])
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap[C]) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.in = nil
	return t
}
