package loop

import (
	"runtime/debug"
	"slices"
)

// settle lets what was asked for since the last time take effect, forgets what
// was removed, and makes new lists. It reports whether there was anything to do.
func (l *Loop[C]) settle() bool {
	if !l.stale && len(l.pending)+len(l.changed)+len(l.leaving) == 0 {
		return false
	}
	// Ask and OnRemove are code of the game: what they add waits for the next
	// time, and what they remove is left out below.
	leaving, asking, changed := l.leaving, l.pending, l.changed
	l.leaving, l.pending, l.changed = nil, nil, nil
	l.stale = false
	for _, s := range leaving {
		if !s.Removed() {
			l.guard(s, s.forget)
		}
	}
	l.systems = append(l.systems, asking...)
	for _, s := range slices.Concat(asking, changed) {
		if s.asked != s.stages {
			l.answer(s)
		}
		s.pending, s.changed = false, s.asked != s.stages
		if s.changed { // By its own Ask.
			l.changed = append(l.changed, s)
		}
		l.queue(s)
	}
	systems := make([]*System[C], 0, len(l.systems))
	for _, s := range l.systems {
		if !s.Removed() {
			systems = append(systems, s)
		}
	}
	l.systems = systems
	l.reshape()
	l.enclose()
	l.relist()
	l.refill = true
	return true
}

// answer asks a system what it runs in each of its stages.
func (l *Loop[C]) answer(s *System[C]) {
	if s.Removed() {
		return
	}
	s.asked = s.stages
	if s.spec.IsGroup {
		return
	}
	s.fns = [NumStages]func(C){}
	s.gone = allStages &^ s.stages
	s.flags &^= leftStage
	for _, stage := range Stages() {
		if s.stages.has(stage) && !s.Removed() {
			l.ask(s, stage)
		}
	}
}

// ask asks a system what it runs in the stage; one that panics runs nothing.
func (l *Loop[C]) ask(s *System[C], stage Stage) {
	finished := false
	defer l.asked(s, stage, &finished)
	s.fns[stage.index()] = s.spec.Ask(stage)
	finished = true
}

// asked is deferred around Ask. That it panicked is no sign that calls will.
func (l *Loop[C]) asked(s *System[C], stage Stage, finished *bool) {
	if *finished {
		return
	}
	v := recover()
	if v == nil {
		l.exited(s.spec.Name, stage)
		return
	}
	p := Panic{System: s.spec.Name, Stage: stage, Value: v, Stack: debug.Stack(), First: true}
	l.rec.panicked(p)
	if s.spec.Critical && l.err == nil {
		l.err = &PanicError{Panic: p}
	}
}

// reshape finds those that a cycle could run through.
func (l *Loop[C]) reshape() {
	l.shaped = l.shaped[:0]
	for _, list := range [][]*System[C]{l.systems, l.pending} {
		for _, s := range list {
			if s.shaped() && !s.Removed() && !s.leaving {
				l.shaped = append(l.shaped, s)
			}
		}
	}
}

// enclose finds the group of every system, and what it and its groups keep from
// running.
func (l *Loop[C]) enclose() {
	l.contexts = l.contexts[:0]
	for _, s := range l.systems {
		s.group = l.parent(s)
		s.cond = condition[C]{ask: s.spec.RunIf}
		if s.spec.Context != nil {
			l.contexts = append(l.contexts, s)
		}
	}
	for _, s := range l.systems {
		off, paused := false, false
		for at := s; at != nil; at = at.group {
			off, paused = off || at.spec.Disabled || at.spec.Paused, paused || at.spec.Paused
		}
		if s.off && !off && !s.paused {
			s.timing.woken = true
			l.queue(s)
		}
		if s.paused != paused {
			l.queue(s)
		}
		s.off, s.paused = off, paused
	}
}

// conditional reports whether anything may keep the system from running, pass by
// pass: a condition, or the quarantine of a group whose condition panics.
func (s *System[C]) conditional() bool {
	for at := s; at != nil; at = at.group {
		if at.cond.ask != nil {
			return true
		}
	}
	return false
}

// relist makes the list of every stage and the rows of the record.
func (l *Loop[C]) relist() {
	l.rec.Systems = nil
	for _, s := range l.systems {
		for i := range s.slots {
			s.slots[i] = -1
		}
	}
	for _, stage := range Stages() {
		var once, each []*System[C]
		for _, s := range l.systems {
			switch {
			case !s.in(stage):
			case stage == FixedUpdate && s.spec.Once:
				once = append(once, s)
			default:
				each = append(each, s)
			}
		}
		if stage == FixedUpdate {
			l.once = l.list(stage, once)
		}
		l.lists[stage.index()] = l.list(stage, each)
	}
}

// list orders the members of a stage and gives each a row of the record.
func (l *Loop[C]) list(stage Stage, members []*System[C]) list[C] {
	var x list[C]
	for pos, s := range arrange(members) {
		if s.off {
			continue // It orders the others all the same.
		}
		cost := &s.costs[stage.index()]
		if *cost == nil {
			*cost = new(Histogram)
		}
		e := entry[C]{
			fn: s.fns[stage.index()], sys: s, name: s.spec.Name, row: len(l.rec.Systems), pos: int32(pos),
			careful: s.conditional() || s.spec.Periodic, cost: *cost,
		}
		l.rec.Systems = append(l.rec.Systems, SystemCost{Name: s.spec.Name, Stage: stage})
		if s.spec.Periodic && s.spec.Period > 0 {
			s.slots[stage.index()] = int32(len(x.timed))
			x.timed = append(x.timed, e)
		} else {
			x.always = append(x.always, e)
		}
	}
	x.due = make([]int32, 0, len(x.timed))
	return x
}
