package loop

import (
	"slices"
	"time"
)

// View is the loop of a room as the admin listener serves it.
type View struct {
	// Tick is the one after which it was taken.
	Tick      uint64 `json:"tick"`
	Rate      string `json:"rate"`
	FixedRate string `json:"fixed_rate"`
	// Scale is what the next tick runs at, such as "1/2"; without a pause or slow
	// motion it is empty.
	Scale       string      `json:"time_scale,omitempty"`
	Quarantined int         `json:"quarantined"`
	Stages      []DumpStage `json:"stages"`
}

// DumpStage is one stage of the loop for printing.
type DumpStage struct {
	// Stage is 0 for the last group: systems that have not taken effect yet, so
	// that nobody knows their stages.
	Stage   Stage        `json:"stage"`
	Systems []DumpSystem `json:"systems"`
}

// DumpSystem is one system of a stage for printing.
type DumpSystem struct {
	Name string `json:"name"`
	// Groups are those around it, the outermost first.
	Groups   []string `json:"groups,omitempty"`
	Place    Place    `json:"place"`
	Priority int      `json:"priority"`
	Before   []string `json:"before,omitempty"`
	After    []string `json:"after,omitempty"`
	// Periodic, Period, CatchUp, Scaled and Gap are as in Spec.
	Periodic bool          `json:"periodic,omitempty"`
	Period   time.Duration `json:"period_ns,omitempty"`
	CatchUp  int           `json:"catch_up,omitempty"`
	Scaled   bool          `json:"scaled,omitempty"`
	Gap      bool          `json:"gap,omitempty"`
	// Conditional says that it, or a group around it, has a RunIf.
	Conditional bool `json:"conditional,omitempty"`
	// Once says that it runs once per tick, before the first fixed step. Only in
	// FixedUpdate.
	Once     bool `json:"once,omitempty"`
	Critical bool `json:"critical,omitempty"`
	// Pending says that it, or a change of it, takes effect at the next
	// Initialization.
	Pending bool `json:"pending,omitempty"`
	// Disabled systems, paused ones and those in quarantine do not run; the latter
	// for so many ticks yet.
	Disabled   bool   `json:"disabled,omitempty"`
	Paused     bool   `json:"paused,omitempty"`
	Quarantine uint64 `json:"quarantine_ticks,omitempty"`
	Panics     uint64 `json:"panics,omitempty"`
	// Cost is what its calls at this stage took since it was registered.
	Cost *DumpCost `json:"cost,omitempty"`
}

// DumpCost says what the calls of a system took. The quantiles are right within
// 12.5 % of themselves.
type DumpCost struct {
	Runs uint64        `json:"runs"`
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
}

// Dump returns the stages with their systems in the order of running, disabled
// ones included, and last, if there are any, those that are pending. The caller
// owns the result.
func (l *Loop[C]) Dump() []DumpStage {
	dump := make([]DumpStage, 0, NumStages+1)
	for _, stage := range Stages() {
		d := DumpStage{Stage: stage, Systems: []DumpSystem{}}
		if stage == FixedUpdate {
			d.Systems = l.dumpList(d.Systems, onceList)
		}
		d.Systems = l.dumpList(d.Systems, stage.list())
		dump = append(dump, d)
	}
	var waiting DumpStage
	for _, s := range l.pending {
		if !s.Removed() && !s.leaving {
			waiting.Systems = append(waiting.Systems, l.dump(s, 0))
		}
	}
	if len(waiting.Systems) > 0 {
		dump = append(dump, waiting)
	}
	return dump
}

// dumpList describes the systems of list k.
func (l *Loop[C]) dumpList(dump []DumpSystem, k int) []DumpSystem {
	var members []*System[C]
	for _, s := range l.systems {
		if s != nil && s.member.has(k) && s.in(stageOf(k)) {
			members = append(members, s)
		}
	}
	slices.SortFunc(members, func(a, b *System[C]) int { return compare(a, b, k) })
	for _, s := range members {
		dump = append(dump, l.dump(s, stageOf(k)))
	}
	return dump
}

// Dump describes the system at a stage, or without one.
func (s *System[C]) Dump(stage Stage) DumpSystem { return s.loop.dump(s, stage) }

// dump describes a system at a stage, or at none if it is pending.
func (l *Loop[C]) dump(s *System[C], stage Stage) DumpSystem {
	d := DumpSystem{
		Name:     s.spec.Name,
		Place:    s.spec.Place,
		Priority: s.spec.Priority,
		Before:   slices.Clone(s.spec.Before),
		After:    slices.Clone(s.spec.After),
		Periodic: s.spec.Periodic,
		Period:   s.spec.Period,
		CatchUp:  s.spec.CatchUp,
		Scaled:   s.spec.Periodic && s.spec.Scaled,
		Gap:      s.spec.Gap,
		Once:     stage == FixedUpdate && s.spec.Once,
		Critical: s.spec.Critical,
		Pending:  s.pending || s.changed,
		Panics:   s.fault.panics,
	}
	around := (*System[C]).inEffect
	if s.pending {
		around = l.parent
	}
	for at := s; at != nil; at = around(at) {
		if at != s {
			d.Groups = append(d.Groups, at.spec.Name)
		}
		d.Conditional = d.Conditional || at.spec.RunIf != nil
		d.Disabled = d.Disabled || at.spec.Disabled
		d.Paused = d.Paused || at.spec.Paused
		if at.flags.has(quarantined) {
			d.Quarantine = max(d.Quarantine, at.fault.until-min(l.count+1, at.fault.until))
		}
	}
	slices.Reverse(d.Groups)
	if stage != 0 {
		if h := s.costs[stage.index()]; h != nil && h.Count() > 0 {
			d.Cost = &DumpCost{Runs: h.Count(), Mean: h.Mean(), P50: h.Quantile(0.5), P99: h.Quantile(0.99)}
		}
	}
	return d
}
