package loop

import (
	"math"
	"slices"
	"time"
)

// Systems of FixedUpdate measure periods in fixed steps, all others in ticks. A system that runs in
// both has two timers.
const (
	perTick = iota
	perStep
	numKinds
)

func kindOf(stage Stage) int {
	if stage == FixedUpdate {
		return perStep
	}
	return perTick
}

// The passes of ticks and the passes of fixed steps each have two clocks, game time and scaled
// time. So periods are measured in one of four flows of time.
const (
	game = iota
	scaled
	numClocks
)

const numFlows = numKinds * numClocks

func flowOf(kind, clock int) int { return kind + numKinds*clock }

// flow is the time of ticks or of fixed steps by one clock, with the timers that wait for it.
type flow[C any] struct {
	flowTime
	heap   []waiting[C] // a binary heap, the earliest first
	pushed int          // timers pushed since the last sweep
	swept  int          // timers left by the last sweep
}

// waiting is a timer in a heap. It contains the time, so that the code can check or move a timer
// without reading the system.
type waiting[C any] struct {
	at  time.Duration
	sys *System[C]
	gen uint32 // if it differs from timer.gen, the timer was planned again
}

// timer is the state of a system with a period in one kind of pass.
type timer struct {
	on      bool
	gap     bool   // Spec.Gap
	clock   int    // of period and at
	gen     uint32 // counts the plans: only the newest entry in the heap is valid
	period  time.Duration
	catchUp int
	at      time.Duration // time at which it is next due
	ran     moment        // time of the last run
	fresh   bool          // it has never run
	calls   int           // number of calls in this pass
	turn    uint64        // the pass to which delta belongs
	delta   moment
}

// moment is a point in time, or a length, by both clocks.
type moment [numClocks]time.Duration

func (m moment) plus(o moment) moment  { return moment{m[game] + o[game], m[scaled] + o[scaled]} }
func (m moment) minus(o moment) moment { return moment{m[game] - o[game], m[scaled] - o[scaled]} }

// timing records whether a system's timers were planned, and whether they are queued to be planned.
type timing struct {
	planned bool // timers were planned before: the system has been in effect
	queued  bool // the system is in unplanned
}

// pass advances the time to now, at the start of a tick or a fixed step.
func (c *flowTime) pass(now time.Duration) {
	c.done, c.now = c.now, now
	c.turn++
}

// account records that a system runs, and sets the time since its last run, which is the same in
// all stages of the pass. Each catch-up call covers one period of its own clock; the time that has
// passed on the other clock belongs to the first call.
func (l *Loop[C]) account(t *timer, kind int, first bool) {
	if turn := l.flows[kind].turn; t.turn != turn {
		now := l.moment(kind)
		t.delta = now.minus(t.ran)
		if t.fresh && t.catchUp == 0 {
			t.delta = l.delta
		}
		t.ran, t.turn, t.fresh = now, turn, false
		if t.gap {
			t.at = later(now[t.clock], t.period)
		}
	}
	d := t.delta
	if t.catchUp > 0 {
		if !first {
			d = moment{}
		}
		d[t.clock] = t.period
	}
	l.now.Delta, l.now.ScaledDelta = d[game], d[scaled]
}

// moment returns the game time and scaled time of the ticks, or with perStep of the fixed steps.
func (l *Loop[C]) moment(kind int) moment {
	return moment{l.flows[kind].now, l.flows[flowOf(kind, scaled)].now}
}

// passed returns the game time and scaled time that had passed before the running tick. The fixed
// steps of that tick have not run, and its length belongs to the systems that run in it.
func (l *Loop[C]) passed(kind int) moment {
	if kind == perStep {
		return l.moment(perStep)
	}
	return moment{l.flows[perTick].done, l.flows[flowOf(perTick, scaled)].done}
}

// missable returns the number of calls that count as missed if n due calls are not made: n with
// CatchUp, and otherwise 0.
func (t *timer) missable(n int) int {
	if t.catchUp == 0 {
		return 0
	}
	return n
}

// collect finds the systems due in the pass that begins and puts them into the lists of their
// stages, in order. Its cost is the number of due systems times the depth of the heap, and does not
// depend otherwise on the number of waiting systems.
func (l *Loop[C]) collect(kind int) {
	var stages stageSet
	for clock := range numClocks {
		f := &l.flows[flowOf(kind, clock)]
		for len(f.heap) > 0 && f.heap[0].at <= f.now && f.heap[0].at < never {
			s := f.heap[0].sys
			if f.heap[0].gen != s.timers[kind].gen {
				f.drop()
				continue
			}
			stages |= l.expire(s, kind)
			f.heap[0].at = s.timers[kind].at
			if s.timers[kind].gap { // A timer with a gap remains due until it has run.
				f.heap[0].at = max(f.heap[0].at, later(f.now, 1))
			}
			sift(f.heap, 0)
		}
	}
	for _, stage := range Stages() {
		if stages.has(stage) {
			slices.Sort(l.lists[stage.list()].due)
		}
	}
}

// expire plans the calls of a due system, and its next due time. Periods keep their phase, so that
// delays of a part of a tick do not accumulate.
func (l *Loop[C]) expire(s *System[C], kind int) (stages stageSet) {
	t := &s.timers[kind]
	now := l.flows[flowOf(kind, t.clock)].now
	if t.at > now {
		return 0 // The system has run since this timer was put into the heap.
	}
	if t.fresh && t.catchUp == 0 {
		t.at = now
	}
	dueCalls := 1
	if !t.gap {
		dueCalls += int((now - t.at) / t.period)
		t.at = later(t.at+t.period*time.Duration(dueCalls-1), t.period)
	}
	t.calls = 1
	if t.catchUp > 0 {
		t.calls = min(dueCalls, t.catchUp)
	}
	if s.flags.has(quarantined) {
		t.calls = 0
	}
	missed := t.missable(dueCalls - t.calls)
	for _, stage := range Stages() {
		k := stage.list()
		if !s.listed.has(k) || kindOf(stage) != kind || s.gone.has(stage) {
			continue
		}
		list := &l.lists[k]
		slot := list.slots[s.id]
		l.row(list, &list.timed[slot]).Missed += missed
		missed = 0                        // Missed calls count once, not in every stage.
		list.due = append(list.due, slot) // Also in quarantine: may skips it.
		stages |= stage.bit()
	}
	return stages
}

// never is the end of time, after 292 years.
const never = time.Duration(math.MaxInt64)

// later returns at + d, or never if the sum overflows.
func later(at, d time.Duration) time.Duration {
	if at > never-d {
		return never
	}
	return at + d
}

// sift moves the element at i to its position after its time has increased.
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

// queue adds the system to unplanned: its timers are planned when the next tick begins, because
// before the first tick there is no time yet.
func (l *Loop[C]) queue(s *System[C]) {
	if !s.timing.queued {
		s.timing.queued = true
		l.unplanned = append(l.unplanned, s)
	}
}

// drop removes the first timer from the heap.
func (f *flow[C]) drop() {
	last := len(f.heap) - 1
	f.heap[0] = f.heap[last]
	f.heap[last] = waiting[C]{}
	if f.heap = f.heap[:last]; last > 0 {
		sift(f.heap, 0)
	}
}

// push adds a timer to the heap.
func (f *flow[C]) push(w waiting[C]) {
	f.heap = append(f.heap, w)
	f.pushed++
	i := len(f.heap) - 1
	for ; i > 0 && f.heap[(i-1)/2].at > w.at; i = (i - 1) / 2 {
		f.heap[i] = f.heap[(i-1)/2]
	}
	f.heap[i] = w
}

// sweep rebuilds the heap without outdated timers. It waits until the heap may have doubled, so
// that its cost is at most that of the pushes.
func (f *flow[C]) sweep(kind int) {
	if f.pushed <= f.swept {
		return
	}
	f.heap = slices.DeleteFunc(f.heap, func(w waiting[C]) bool { return w.gen != w.sys.timers[kind].gen })
	for i := len(f.heap)/2 - 1; i >= 0; i-- {
		sift(f.heap, i)
	}
	f.pushed, f.swept = 0, max(len(f.heap), minSweep)
}

// minSweep prevents a small heap from being swept repeatedly.
const minSweep = 64

// replan plans the timers of the systems in unplanned. It reports whether there were any.
func (l *Loop[C]) replan() bool {
	if len(l.unplanned) == 0 {
		return false
	}
	for _, s := range l.unplanned {
		l.plan(s)
		s.timing = timing{planned: true}
		for kind := range s.timers {
			if t := &s.timers[kind]; t.on && t.period > 0 && !s.off {
				l.flows[flowOf(kind, t.clock)].push(waiting[C]{t.at, s, t.gen})
			}
		}
	}
	clear(l.unplanned)
	l.unplanned = l.unplanned[:0]
	for i := range l.flows {
		l.flows[i].sweep(i % numKinds)
	}
	return true
}

// unplan invalidates the entries of a system in the heaps.
func (s *System[C]) unplan() {
	for kind := range s.timers {
		s.timers[kind].gen++
	}
}

// plan sets the timers of a system that has taken effect or was changed. A system that has run
// before keeps the time since its last run, except the time in which it was disabled.
func (l *Loop[C]) plan(s *System[C]) {
	l.resume(s)
	old := s.timers
	for kind := range s.timers {
		s.timers[kind] = l.timer(s, kind, &old)
	}
	if s.off {
		s.disabledAt = &[numKinds]moment{l.passed(perTick), l.passed(perStep)}
	}
}

// timer computes a system's new timer from its previous timers.
func (l *Loop[C]) timer(s *System[C], kind int, before *[numKinds]timer) timer {
	t := timer{gen: before[kind].gen + 1, on: s.spec.Periodic && s.inKind(kind), gap: s.spec.Gap, period: s.spec.Period, catchUp: s.spec.CatchUp}
	if s.spec.Scaled {
		t.clock = scaled
	}
	if !t.on {
		return t
	}
	now, passed, other := l.moment(kind)[t.clock], l.passed(kind), &before[1-kind]
	var since time.Duration // start of the current period
	switch old := &before[kind]; {
	case old.on:
		t.ran, t.fresh, t.turn, t.delta = old.ran, old.fresh, old.turn, old.delta
		since = old.since(t.clock)
	case other.on: // The system has moved between FixedUpdate and the other stages.
		moved := passed.minus(l.passed(1 - kind))
		t.ran, t.fresh = other.ran.plus(moved), other.fresh
		since = other.since(t.clock) + moved[t.clock]
	case s.timing.planned: // It has run in every pass.
		t.ran, since = passed, passed[t.clock]
	default:
		t.ran, t.fresh, since = l.moment(kind), true, now
	}
	if t.fresh && t.catchUp == 0 {
		since = now - t.period
	}
	if t.period > 0 {
		if t.at = later(since, t.period); t.at <= passed[t.clock] {
			t.at = now // An overdue timer is due in this tick.
		}
	}
	return t
}

// since returns the start of the timer's current period, by one of the two clocks.
func (t *timer) since(clock int) time.Duration {
	if t.period == 0 || t.clock != clock {
		return t.ran[clock]
	}
	return t.at - t.period
}

// resume moves the timers of a system that is or was disabled by the time in which it was disabled,
// because that time does not count for the system.
func (l *Loop[C]) resume(s *System[C]) {
	if s.disabledAt == nil {
		return
	}
	for kind := range s.timers {
		t := &s.timers[kind]
		slept := l.passed(kind).minus(s.disabledAt[kind])
		t.ran = t.ran.plus(slept)
		t.at = later(t.at, slept[t.clock])
	}
	s.disabledAt = nil
}

// inKind reports, with perStep, whether the system runs in FixedUpdate and, with perTick, whether
// it runs in any other stage.
func (s *System[C]) inKind(kind int) bool {
	for _, stage := range Stages() {
		if kindOf(stage) == kind && s.in(stage) {
			return true
		}
	}
	return false
}
