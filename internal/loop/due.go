package loop

import (
	"math"
	"time"
)

// Never is a tick number that is never reached.
const Never = uint64(math.MaxUint64)

// Due returns the first tick from next on in which a system with a period is due, or a request
// takes effect. It ignores systems that run in every tick, and contexts of systems that end
// meanwhile. Without a timeline it returns next. Call it between two ticks.
func (l *Loop[C]) Due(next uint64) uint64 {
	if l.timeline.Rate.Num == 0 || l.unsettled() {
		return next
	}
	due := Never
	for i := range l.flows {
		f := &l.flows[i]
		kind := i % numKinds
		for len(f.heap) > 0 && f.heap[0].gen != f.heap[0].sys.timers[kind].gen {
			f.drop() // The system of this timer was removed or changed.
		}
		if len(f.heap) == 0 {
			continue
		}
		at := f.heap[0].at
		if i >= numKinds {
			at = l.kinds[kind].flow.Until(at)
		}
		if at != never {
			due = min(due, l.tickOf(kind, at))
		}
	}
	return max(due, next)
}

// unsettled reports whether requests of the last tick take effect in the next.
func (l *Loop[C]) unsettled() bool {
	return len(l.touched)+len(l.pending)+len(l.changed)+len(l.leaving)+len(l.unplanned) > 0 || l.coming != l.scale
}

// tickOf returns the first tick at which the time of the ticks or, with perStep, of the fixed steps
// has reached at.
func (l *Loop[C]) tickOf(kind int, at time.Duration) uint64 {
	if kind == perTick {
		tick := l.timeline.TickFrom(at)
		return tick - min(l.dropped, tick)
	}
	step := Timeline{Rate: l.timeline.Fixed}.TickFrom(at)
	return l.timeline.StepTick(max(step-min(l.skipped, step), l.now.FixedStep+1))
}
