package loop

import (
	"math"
	"slices"
	"time"
)

// walker is the position of the running stage in its list.
type walker struct {
	at    int   // the index of the next entry of always
	next  int   // the index of the next entry of due
	until int32 // pos of that entry: entries of always before it run first
	timed bool  // the running system is one of due
	left  int   // remaining calls of that system in this pass
}

// Step runs one tick, synchronously and without waiting. The Record belongs to the loop and is
// valid until the next Step. The error is the error of a Critical system, or names the system that
// ended its goroutine; the loop is then closed, and each later Step returns the same error. Before
// the first tick, the error names the unknown anchors.
func (l *Loop[C]) Step(in Input) (*Record, error) {
	if l.running {
		panic("loop: Step called from within a system: the tick that runs must return first")
	}
	if err := l.seal(); err != nil {
		return &l.rec, err
	}
	l.rec.begin(&in)
	if l.err != nil {
		return &l.rec, l.err
	}
	if l.ended {
		return &l.rec, errEnded
	}
	l.running = true
	start := l.clock()
	l.mark = start
	l.begin(&in)
	for _, stage := range Stages() {
		from := l.mark
		switch stage {
		case Initialization:
			l.prepare()
			l.stage(stage, &l.lists[stage.list()])
		case FixedUpdate:
			l.fixed(&in)
		default:
			l.stage(stage, &l.lists[stage.list()])
		}
		l.rec.Stages[stage.index()] = l.mark - from
		if l.err != nil {
			break
		}
	}
	l.rec.Duration = l.mark - start
	l.running = false
	return &l.rec, l.err
}

// begin writes the state that all calls of the tick see.
func (l *Loop[C]) begin(in *Input) {
	*l.now = Now{
		Delta:     in.Delta,
		Wall:      in.Wall,
		FixedStep: max(in.FirstFixedStep, 1) - 1,
		Fraction:  in.Fraction,
	}
	l.count++
	l.beginScale()
	l.delta = moment{in.Delta, l.kinds[perTick].advance(in.Delta)}
	l.showTick(in.Tick, in.GameTime)
	l.now.ScaledDelta = l.delta[scaled]
	l.now.ScaleNum, l.now.ScaleDen = l.scale.Num, l.scale.Den
	l.tickPasses(in)
}

// prepare runs before the first system of a tick: requests take effect, quarantines end, and due
// systems are collected.
func (l *Loop[C]) prepare() {
	l.endContexts()
	l.release()
	settled := l.settle()
	if l.replan() || settled {
		l.mark = l.clock()
	}
	l.collect(perTick)
}

// endContexts removes the systems with an ended context.
func (l *Loop[C]) endContexts() {
	l.contexts = slices.DeleteFunc(l.contexts, func(s *System[C]) bool {
		s.watched = s.spec.Context != nil && !s.Removed()
		return !s.watched
	})
	for _, list := range [...][]*System[C]{l.contexts, l.pending, l.changed} {
		for _, s := range list {
			if s.spec.Context != nil && s.spec.Context.Err() != nil && !s.Removed() {
				l.rec.Cancelled = append(l.rec.Cancelled, s.spec.Name)
				l.guard(s, func() { s.Remove() })
			}
		}
	}
}

// show sets Now.Delta and Now.ScaledDelta for the systems without a period.
func (l *Loop[C]) show(delta moment) {
	l.delta = delta
	l.now.Delta, l.now.ScaledDelta = delta[game], delta[scaled]
}

// stage runs a list to its end; after a panic it continues with the next system.
func (l *Loop[C]) stage(stage Stage, list *list[C]) {
	if len(list.always)+len(list.due) == 0 || l.err != nil {
		return
	}
	l.now.Stage = stage
	l.pass++
	l.walker = walker{until: list.dueAt(0)}
	for done := false; !done && l.err == nil; {
		done = l.walk(stage, list)
	}
	l.now.Stage, l.now.System = 0, ""
	list.due = list.due[:0]
}

// dueAt returns the pos of the n-th due entry, or a value above all positions.
func (x *list[C]) dueAt(n int) int32 {
	if n >= len(x.due) {
		return math.MaxInt32
	}
	return x.timed[x.due[n]].pos
}

// walk calls the systems of the list from the walker on and reports whether it has reached the end.
// A panic ends it early, with the walker after the system that panicked, so that one deferred call
// suffices for the whole list.
func (l *Loop[C]) walk(stage Stage, list *list[C]) (done bool) {
	defer l.isolate(list, &done)
	if l.timed {
		l.runDue(stage, list)
	}
	for {
		for l.at < len(list.always) {
			e := &list.always[l.at]
			if e.pos > l.until {
				break
			}
			l.at++
			if e.checked || e.sys.flags != 0 {
				l.callChecked(stage, list, e)
				continue
			}
			row := l.row(list, e)
			l.now.System = row.Name
			e.fn(l.c)
			l.charge(e, row)
		}
		if l.next == len(list.due) {
			return true
		}
		l.next++
		l.until = list.dueAt(l.next)
		if e := list.last(&l.walker); l.may(stage, e) {
			l.timed, l.left = true, e.sys.timers[kindOf(stage)].calls
			l.runDue(stage, list)
		}
	}
}

// last returns the entry that the walker has reached.
func (x *list[C]) last(w *walker) *entry[C] {
	if w.at == 0 || w.next > 0 && x.timed[x.due[w.next-1]].pos > x.always[w.at-1].pos {
		return &x.timed[x.due[w.next-1]]
	}
	return &x.always[w.at-1]
}

// callChecked calls a system that has flags, a condition or a period of 0.
func (l *Loop[C]) callChecked(stage Stage, list *list[C], e *entry[C]) {
	if !l.may(stage, e) {
		return
	}
	kind := kindOf(stage)
	if t := &e.sys.timers[kind]; t.on {
		l.account(t, kind, true)
	}
	l.call(stage, list, e)
}

// runDue makes the remaining calls, in this pass, of the due system that the walker has reached.
func (l *Loop[C]) runDue(stage Stage, list *list[C]) {
	e := list.last(&l.walker)
	s, kind := e.sys, kindOf(stage)
	t := &s.timers[kind]
	for l.left > 0 && !s.gone.has(stage) {
		if s.flags.has(quarantined) {
			l.row(list, e).Missed += t.missable(l.left)
			break
		}
		l.account(t, kind, l.left == t.calls)
		l.left--
		l.call(stage, list, e)
	}
	l.timed, l.left = false, 0
}

// may reports whether the system runs in this pass: it was not removed from the stage, is not in
// quarantine, and no condition prevents it.
func (l *Loop[C]) may(stage Stage, e *entry[C]) bool {
	s := e.sys
	return !s.gone.has(stage) && !s.flags.has(quarantined) && (!e.checked || l.open(s))
}

// call runs a system that has flags, a condition or a period.
func (l *Loop[C]) call(stage Stage, list *list[C], e *entry[C]) {
	row := l.row(list, e)
	l.now.System = row.Name
	e.fn(l.c)
	l.charge(e, row)
	l.show(l.delta)
	if e.sys.flags.has(failing) {
		e.sys.succeeded(stage)
	}
}

// row returns the row of an entry in the record.
func (l *Loop[C]) row(list *list[C], e *entry[C]) *SystemCost {
	return &l.rec.Systems[list.base+int(e.pos)]
}

// charge counts a call of a system, and the time since the last boundary. It reads the clock once,
// for the end of this system and the start of the next.
func (l *Loop[C]) charge(e *entry[C], row *SystemCost) {
	now := l.clock()
	d := now - l.mark
	row.Cost += d
	row.Runs++
	e.cost.Add(d)
	l.mark = now
}

// condition is the RunIf of a system or group in effect, which is evaluated at most once in each
// pass.
type condition[C any] struct {
	ask  func(C) bool
	pass uint64 // pass in which it was evaluated
	open bool
}

// open reports whether the conditions of the system and of the groups around it are true. Outer
// conditions are evaluated first, and no condition is evaluated after the first that is false.
func (l *Loop[C]) open(s *System[C]) bool {
	if s.cond.pass != l.pass {
		s.cond.pass = l.pass
		s.cond.open = false // It remains false if the condition panics.
		s.cond.open = (s.group == nil || l.open(s.group)) && l.met(s)
	}
	return s.cond.open
}

// met evaluates the system's own condition.
func (l *Loop[C]) met(s *System[C]) (yes bool) {
	if s.flags.has(quarantined) {
		return false
	}
	if s.cond.ask == nil {
		return true
	}
	stage := l.now.Stage
	l.now.System = s.spec.Name
	l.guard(s, func() {
		yes = s.cond.ask(l.c) && !l.halted()
		if s.spec.IsGroup {
			s.succeeded(stage)
		}
	})
	if !yes {
		l.mark = l.clock() // The time of a condition counts only for the stage.
	}
	return yes
}

func (l *Loop[C]) halted() bool { return l.Halt != nil && l.Halt() }

// tickPasses and stepPasses advance the time of periods. With a timeline it is the time of all
// ticks, including dropped ticks, so it is exact. Without a timeline it is the sum of the deltas.
func (l *Loop[C]) tickPasses(in *Input) {
	now := l.flows[perTick].now + in.Delta
	if l.timeline.Rate.Num != 0 {
		if l.count == 1 { // The first tick of a loop need not be the first tick of its room.
			l.move(perTick, l.timeline.GameTime(max(in.Tick, 1)-1))
			l.move(perStep, l.stepTime(max(in.FirstFixedStep, 1)-1))
		}
		l.dropped += in.Dropped
		now = l.timeline.GameTime(in.Tick + l.dropped)
		if in.Dropped > 0 && in.Tick > 0 {
			// These are the steps that the dropped ticks would have had. The number never decreases
			// because of rounding, since time never decreases.
			before := in.Tick - 1
			l.skipped = max(l.skipped, l.timeline.FixedSteps(before+l.dropped)-l.timeline.FixedSteps(before))
		}
	}
	l.move(perTick, now)
}

func (l *Loop[C]) stepPasses(in *Input) {
	now := l.flows[perStep].now + in.FixedDelta
	if l.timeline.Fixed.Num != 0 {
		now = l.stepTime(l.now.FixedStep)
	}
	l.move(perStep, now)
}

// move advances both clocks of a kind to a time.
func (l *Loop[C]) move(kind int, now time.Duration) {
	l.flows[kind].pass(now)
	l.flows[flowOf(kind, scaled)].pass(l.kinds[kind].flow.At(now))
}

// stepTime returns the time of a fixed step, including the steps of dropped ticks.
func (l *Loop[C]) stepTime(step uint64) time.Duration {
	return Timeline{Rate: l.timeline.Fixed}.GameTime(step + l.skipped)
}

// Follow makes periods use the ticks of a timeline, including dropped ticks, in place of the sum of
// deltas. Call it before the first Step.
func (l *Loop[C]) Follow(t Timeline) { l.timeline = t }

// guard calls a function of the game that is not a system's function, and recovers its panic.
func (l *Loop[C]) guard(s *System[C], fn func()) {
	finished := false
	defer l.guarded(s, l.now.Stage, &finished)
	fn()
	finished = true
}

// flowTime is the time of a flow.
type flowTime struct {
	now  time.Duration
	done time.Duration // the time up to which a system without a period has run
	turn uint64        // number of ticks or steps
}
