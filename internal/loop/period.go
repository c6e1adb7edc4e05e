package loop

import (
	"math"
	"slices"
	"time"
)

// Periods are measured in one of two flows of time: systems of FixedUpdate count
// fixed steps, and the others ticks. A system that is in both has two timers.
const (
	perTick = iota
	perStep
	numFlows
)

func flowOf(stage Stage) int {
	if stage == FixedUpdate {
		return perStep
	}
	return perTick
}

// flow is one of them with the timers that wait in it.
type flow[C any] struct {
	passage
	heap []waiting[C] // a binary heap, the earliest first
}

// waiting is a timer in a heap. Its time stands in it, so that finding out that
// nobody is due, or sifting, touches no system.
type waiting[C any] struct {
	at  time.Duration
	sys *System[C]
}

// timer is what a system with a period knows of one flow.
type timer struct {
	on      bool
	period  time.Duration
	catchUp int
	at      time.Duration // when it is due next
	ran     time.Duration // when it ran last
	fresh   bool          // never
	calls   int           // in this pass
	turn    uint64        // the pass that delta belongs to
	delta   time.Duration
}

// timing is what a settled system tells the timers.
type timing struct {
	planned bool // it has been in effect, so its time has run
	queued  bool // it is in unplanned
	woken   bool // it was disabled
}

// pass moves on by a tick or by a step.
func (c *passage) pass(now time.Duration) {
	c.done, c.now = c.now, now
	c.turn++
}

// begin notes that the system runs and returns the time since it last did,
// which is the same for all its calls of the pass.
func (t *timer) begin(c *passage, plain time.Duration) time.Duration {
	if t.turn != c.turn {
		t.delta = c.now - t.ran
		if t.fresh {
			t.delta, t.fresh = plain, false
		}
		t.ran, t.turn = c.now, c.turn
	}
	return t.delta
}

// missable is how many of n calls that are not made count as missed: a timer
// without CatchUp owes nothing.
func (t *timer) missable(n int) int {
	if t.catchUp == 0 {
		return 0
	}
	return n
}

// collect finds who is due in the pass that begins and puts it into the lists of
// its stages, in their order. It costs the number of those times the depth of
// the heap, however many wait.
func (l *Loop[C]) collect(kind int) {
	f := &l.flows[kind]
	var stages stageSet
	for len(f.heap) > 0 && f.heap[0].at <= f.now && f.heap[0].at < never {
		s := f.heap[0].sys
		stages |= l.expire(s, kind)
		f.heap[0].at = s.timers[kind].at
		sift(f.heap, 0)
	}
	if stages == 0 {
		return
	}
	for _, stage := range Stages() {
		if stages.has(stage) {
			slices.Sort(l.lists[stage.index()].due)
		}
	}
}

// expire plans the calls of a system that is due, and when it is due again. Its
// periods keep their phase: late or early by a part of a tick does not add up.
func (l *Loop[C]) expire(s *System[C], kind int) (stages stageSet) {
	t, now := &s.timers[kind], l.flows[kind].now
	if t.fresh && t.catchUp == 0 {
		t.at = now
	}
	owed := 1 + int((now-t.at)/t.period)
	t.at = later(t.at+t.period*time.Duration(owed-1), t.period)
	t.calls = 1
	if t.catchUp > 0 {
		t.calls = min(owed, t.catchUp)
	}
	if s.flags&quarantined != 0 {
		t.calls = 0
	}
	missed := t.missable(owed - t.calls)
	for i, slot := range s.slots {
		stage := Stage(i + 1)
		if slot < 0 || flowOf(stage) != kind || s.gone.has(stage) {
			continue
		}
		list := &l.lists[i]
		l.rec.Systems[list.timed[slot].row].Missed += missed
		missed = 0 // A turn that was missed counts once, not in every stage.
		if t.calls > 0 {
			list.due = append(list.due, slot)
			stages |= stage.bit()
		}
	}
	return stages
}

// never is where time ends, after 292 years.
const never = time.Duration(math.MaxInt64)

// later adds and saturates.
func later(at, d time.Duration) time.Duration {
	if at > never-d {
		return never
	}
	return at + d
}

// sift puts the element at i, which has become later, into its place.
func sift[C any](heap []waiting[C], i int) {
	x := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].at < heap[child].at {
			child++
		}
		if heap[child].at >= x.at {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = x
}

// queue lets the system's timers be planned when the next tick begins: what is
// settled before the first tick has no time yet.
func (l *Loop[C]) queue(s *System[C]) {
	if !s.timing.queued {
		s.timing.queued = true
		l.unplanned = append(l.unplanned, s)
	}
}

// replan sets the timers of what has been settled and makes the heaps anew. It
// reports whether there was anything to do.
func (l *Loop[C]) replan() bool {
	if !l.refill {
		return false
	}
	l.refill = false
	for _, s := range l.unplanned {
		l.plan(s)
		s.timing = timing{planned: true}
	}
	clear(l.unplanned)
	l.unplanned = l.unplanned[:0]
	for kind := range l.flows {
		f := &l.flows[kind]
		f.heap = f.heap[:0]
		for _, s := range l.systems {
			if t := &s.timers[kind]; t.on && t.period > 0 && !s.off && !s.Removed() {
				f.heap = append(f.heap, waiting[C]{t.at, s})
			}
		}
		for i := len(f.heap)/2 - 1; i >= 0; i-- {
			sift(f.heap, i)
		}
	}
	return true
}

// plan sets the timers of a system that has taken effect or was changed. One
// that ran before keeps the time that has passed since.
func (l *Loop[C]) plan(s *System[C]) {
	old := s.timers
	for kind := range s.timers {
		other := 1 - kind
		c := &l.flows[kind].passage
		t := timer{on: s.spec.Periodic && s.inFlow(kind), period: s.spec.Period, catchUp: s.spec.CatchUp}
		done := c.done
		if kind == perStep {
			done = c.now // The steps of the tick that begins are yet to come.
		}
		var since time.Duration // when the period that runs began
		switch {
		case !t.on:
		case old[kind].on:
			t.ran, t.fresh, t.turn, t.delta = old[kind].ran, old[kind].fresh, old[kind].turn, old[kind].delta
			since = old[kind].since()
		case old[other].on: // It has moved between FixedUpdate and the other stages.
			from := l.flows[other].done
			if other == perStep {
				from = l.flows[other].now
			}
			t.ran, t.fresh = done-(from-old[other].ran), old[other].fresh
			since = done - (from - old[other].since())
		case s.timing.planned: // It has run in every pass.
			t.ran, since = done, done
		default:
			t.fresh = true
			since = c.now
			if t.catchUp == 0 {
				since -= t.period
			}
		}
		if t.on && t.period > 0 {
			if s.timing.woken && t.catchUp > 0 && c.now-since >= t.period {
				since = c.now - (c.now-since)%t.period // What passed while it was off is not owed.
			}
			t.at = max(later(since, t.period), c.now)
		}
		s.timers[kind] = t
	}
}

// since is when the period that runs began.
func (t *timer) since() time.Duration {
	if t.period == 0 {
		return t.ran
	}
	return t.at - t.period
}

// inFlow reports whether the system runs in a stage of the flow.
func (s *System[C]) inFlow(kind int) bool {
	for _, stage := range Stages() {
		if flowOf(stage) == kind && s.in(stage) {
			return true
		}
	}
	return false
}
