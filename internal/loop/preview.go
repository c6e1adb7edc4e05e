package loop

import "time"

// Preview returns the stages as Dump would if the tree were in effect, without figures of past
// runs. A system is listed at the stages for which its Ask has returned a function. If its Ask has
// not run yet, it is listed at the stages of its Spec, or in the last group if the Spec names no
// stages. A system that Set would reject is in the last group too.
func (l *Loop[C]) Preview(t Tree[C]) []DumpStage {
	shown := New(l.c, new(Now), func() time.Duration { return 0 })
	var waiting []DumpSystem
	for i := range t.Items {
		spec := t.Items[i].Spec
		at, known := t.Items[i].stages()
		if !spec.IsGroup {
			spec.Ask = func(stage Stage) func(C) {
				if at.has(stage) {
					return func(C) {}
				}
				return nil
			}
		}
		if s := shown.made(spec); !known {
			waiting = append(waiting, shown.dump(s, 0))
		} else if _, err := shown.Add(spec); err != nil {
			waiting = append(waiting, shown.dump(s, 0))
		}
	}
	shown.settle()
	stages := shown.Dump()
	if len(waiting) > 0 {
		stages = append(stages, DumpStage{Systems: waiting})
	}
	return stages
}

// stages returns the stages at which an item runs, as far as they are known.
func (it *Item[C]) stages() (at stageSet, known bool) {
	s, wanted := it.System, setOf(it.Spec.Stages)
	switch {
	case it.Spec.IsGroup:
		return 0, true
	case it.Spec.BuiltIn != "": // The Ask of a built-in is not the game's code.
		for _, stage := range Stages() {
			if it.Spec.Ask(stage) != nil {
				at |= stage.bit()
			}
		}
		return at & wanted, true
	case s == nil:
		return wanted, len(it.Spec.Stages) > 0
	}
	for _, stage := range Stages() {
		if wanted.has(stage) && (!s.asked.has(stage) || s.in(stage)) {
			at |= stage.bit()
		}
	}
	return at, len(it.Spec.Stages) > 0 || wanted&^s.asked == 0
}
