package loop

import (
	"runtime/debug"
	"slices"
)

// settle lets what was added since the last time take effect, forgets what was
// removed, and makes new lists. It reports whether there was anything to do.
func (l *Loop[C]) settle() bool {
	if !l.stale && len(l.pending) == 0 {
		return false
	}
	// Ask is code of the game: what it adds waits for the next time, and what it
	// removes is left out below.
	asking := l.pending
	l.pending = nil
	l.stale = false
	for _, s := range asking {
		for _, stage := range Stages() {
			if !s.gone.has(stage) {
				s.fns[stage.index()] = l.ask(s, stage)
			}
		}
		s.asked = true
	}
	systems := slices.Concat(l.systems, asking)
	l.systems = slices.DeleteFunc(systems, (*System[C]).Removed)
	l.shaped = slices.DeleteFunc(l.shaped, (*System[C]).Removed)
	l.relist()
	return true
}

// ask asks a system what it runs in the stage; one that panics runs nothing.
func (l *Loop[C]) ask(s *System[C], stage Stage) (fn func(C)) {
	defer func() {
		if v := recover(); v != nil {
			l.panicked(s, Panic{System: s.spec.Name, Stage: stage, Value: v, Stack: debug.Stack()})
		}
	}()
	return s.spec.Ask(stage)
}

// relist makes the list of every stage and the rows of the record.
func (l *Loop[C]) relist() {
	l.rec.Systems = nil
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
func (l *Loop[C]) list(stage Stage, members []*System[C]) []entry[C] {
	arrange(members)
	list := make([]entry[C], len(members))
	for i, s := range members {
		list[i] = entry[C]{fn: s.fns[stage.index()], sys: s, name: s.spec.Name, row: len(l.rec.Systems)}
		l.rec.Systems = append(l.rec.Systems, SystemCost{Name: s.spec.Name, Stage: stage})
	}
	return list
}
