package loop

import (
	"runtime/debug"
	"slices"
)

// settle lets the requests since the last call take effect, drops removed systems, and brings the
// lists up to date. It reports whether there were any requests.
func (l *Loop[C]) settle() bool {
	if len(l.touched)+len(l.pending)+len(l.changed)+len(l.leaving) == 0 {
		return false
	}
	// Ask and OnRemove are code of the game: systems that they add wait for the next settle, and
	// systems that they remove are left out below.
	leaving := l.leaving
	l.settling = slices.Concat(l.pending, l.changed)
	l.leaving, l.pending, l.changed = nil, nil, nil
	for _, s := range leaving {
		if !s.Removed() {
			l.guard(s, s.forget)
		}
	}
	for _, s := range l.settling {
		if s.asked != s.stages {
			l.answer(s)
		}
		if s.pending, s.changed = false, s.asked != s.stages; s.changed { // By its own Ask.
			l.changed = append(l.changed, s)
		}
		l.queue(s)
		l.touch(s)
	}
	l.settling = nil
	l.shaped = slices.DeleteFunc(l.shaped, func(s *System[C]) bool { return !s.shaped() || s.Removed() })
	l.replace()
	return true
}

// answer calls Ask of a system for each of its stages.
func (l *Loop[C]) answer(s *System[C]) {
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

// ask calls Ask of a system for a stage; if it panics, the system does not run there.
func (l *Loop[C]) ask(s *System[C], stage Stage) {
	finished := false
	defer l.asked(s, stage, &finished)
	s.fns[stage.index()] = s.spec.Ask(stage)
	finished = true
}

// asked is deferred around Ask. It records a panic, which does not count for a quarantine, because
// later calls of the system may succeed. It closes the loop for a critical system, and after
// Goexit.
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

// reshape collects the systems through which a cycle in the order could run.
func (l *Loop[C]) reshape() {
	l.shaped = l.shaped[:0]
	for _, s := range l.registered() {
		if s.shaped() {
			l.shaped = append(l.shaped, s)
		}
	}
}

// touch makes the next settle compute the position of a system again.
func (l *Loop[C]) touch(s *System[C]) {
	if !s.touched {
		s.touched = true
		l.touched = append(l.touched, s)
	}
}

// replace removes touched systems from the lists and inserts them at their new positions. Its cost
// is proportional to the touched systems; the others only move in memory.
func (l *Loop[C]) replace() {
	for i := 0; i < len(l.touched); i++ { // If a group is touched, all its members are touched too.
		for _, s := range l.touched[i].inside {
			l.touch(s)
		}
	}
	l.cut(l.touched)
	for _, s := range l.touched {
		l.leave(s)
	}
	for _, s := range l.touched {
		l.enter(s)
	}
	for _, s := range l.touched {
		l.arrive(s)
	}
	if l.rebind {
		l.rebind = false
		l.bind()
	}
	l.put(l.touched)
	for _, s := range l.touched {
		s.touched = false
	}
	clear(l.touched)
	l.touched = l.touched[:0]
}

// leave subtracts a system from the member counts of its groups and clears the set of its lists. It
// keeps its id and its group.
func (l *Loop[C]) leave(s *System[C]) {
	l.tally(s, -1)
	s.member = 0
}

// tally adds by, 1 or -1, to the number of members of each group around the system, in each of its
// lists. With the first member a group is inserted into a list, and with the last one it is
// removed.
func (l *Loop[C]) tally(s *System[C], by int32) {
	l.rebind = l.rebind || l.tied(s)
	for g := s.group; g != nil && s.member != 0; g = g.group {
		for k := range g.counts {
			if !s.member.has(k) {
				continue
			}
			was := g.counts[k]
			g.counts[k] += by
			l.rebind = l.rebind || (was == 0 || was+by == 0) && l.tied(g)
		}
	}
}

// enter copies the requested description into the state in effect, or frees the id of a removed
// system.
func (l *Loop[C]) enter(s *System[C]) {
	around := l.parent(s)
	if s.Removed() {
		around = nil
		if s.id >= 0 {
			l.systems[s.id] = nil
			l.free = append(l.free, s.id)
			s.id = -1
		}
	} else if s.id < 0 {
		l.identify(s)
	}
	if s.group != around {
		if s.group != nil {
			s.group.release(s)
		}
		if around != nil {
			around.take(s)
		}
		s.group = around
	}
	s.own = s.key()
	s.cond = condition[C]{ask: s.spec.RunIf}
	s.before, s.after = s.spec.Before, s.spec.After
	if anchored := s.anchored() && !s.Removed(); anchored && !s.anchors {
		s.anchors = true
		l.anchored = append(l.anchored, s)
	}
	if s.spec.Context != nil && !s.watched && !s.Removed() {
		l.contexts = append(l.contexts, s) // endContexts marks it as watched.
	}
}

// identify gives a system an id: a small number that no other system in effect has.
func (l *Loop[C]) identify(s *System[C]) {
	if n := len(l.free); n > 0 {
		s.id = l.free[n-1]
		l.free = l.free[:n-1]
		l.systems[s.id] = s
		return
	}
	s.id = int32(len(l.systems))
	l.systems = append(l.systems, s)
}

// take and release maintain inside.
func (g *System[C]) take(s *System[C]) {
	s.nth = len(g.inside)
	g.inside = append(g.inside, s)
}

func (g *System[C]) release(s *System[C]) {
	last := len(g.inside) - 1
	g.inside[s.nth] = g.inside[last]
	g.inside[s.nth].nth = s.nth
	g.inside[last] = nil
	g.inside = g.inside[:last]
}

// arrive computes whether a system is removed or disabled, and its lists, when all groups are
// known.
func (l *Loop[C]) arrive(s *System[C]) {
	off := s.Removed()
	for at := s; at != nil; at = at.group {
		off = off || at.spec.Disabled
	}
	if off {
		s.unplan()
	}
	if s.off != off {
		l.queue(s)
	}
	s.off = off
	s.member = s.places()
	l.tally(s, 1)
}

// places returns the lists of a system.
func (s *System[C]) places() (x listSet) {
	for _, stage := range Stages() {
		switch {
		case !s.in(stage):
		case stage == FixedUpdate && s.spec.Once:
			x |= 1 << onceList
		default:
			x |= 1 << stage.list()
		}
	}
	return x
}

// conditional reports whether the system may be skipped in single passes: because of a condition,
// or because of the quarantine of a group whose condition panics.
func (s *System[C]) conditional() bool {
	for at := s; at != nil; at = at.group {
		if at.cond.ask != nil {
			return true
		}
	}
	return false
}
