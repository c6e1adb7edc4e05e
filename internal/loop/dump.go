package loop

import "slices"

// DumpStage is one stage of the loop for printing.
type DumpStage struct {
	// Stage is 0 for the last group: systems that have not taken effect yet, so
	// that nobody knows their stages.
	Stage   Stage
	Systems []DumpSystem
}

// DumpSystem is one system of a stage for printing.
type DumpSystem struct {
	Name          string
	Place         Place
	Priority      int
	Before, After []string
	// Once says that it runs once per tick, before the first fixed step. Only in
	// FixedUpdate.
	Once     bool
	Critical bool
	// Pending says that it takes effect at the next Initialization.
	Pending bool
}

// Dump returns the stages with their systems in the order of running, and last,
// if there are any, those that are pending. The caller owns the result.
func (l *Loop[C]) Dump() []DumpStage {
	dump := make([]DumpStage, 0, NumStages+1)
	for _, stage := range Stages() {
		list := l.lists[stage.index()]
		if stage == FixedUpdate {
			list = slices.Concat(l.once, list)
		}
		d := DumpStage{Stage: stage}
		for i := range list {
			if s := list[i].sys; s.in(stage) {
				line := s.dump()
				line.Once = stage == FixedUpdate && s.spec.Once
				d.Systems = append(d.Systems, line)
			}
		}
		dump = append(dump, d)
	}
	var waiting DumpStage
	for _, s := range l.pending {
		if !s.Removed() {
			line := s.dump()
			line.Pending = true
			waiting.Systems = append(waiting.Systems, line)
		}
	}
	if len(waiting.Systems) > 0 {
		dump = append(dump, waiting)
	}
	return dump
}

func (s *System[C]) dump() DumpSystem {
	return DumpSystem{
		Name:     s.spec.Name,
		Place:    s.spec.Place,
		Priority: s.spec.Priority,
		Before:   slices.Clone(s.spec.Before),
		After:    slices.Clone(s.spec.After),
		Critical: s.spec.Critical,
	}
}
