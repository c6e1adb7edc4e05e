package loop

import (
	"slices"
	"time"
)

// View is the loop of a room as the admin listener serves it.
type View struct {
	// Tick is the tick after which the view was taken.
	Tick      uint64 `json:"tick"`
	Rate      string `json:"rate"`       // tick rate
	FixedRate string `json:"fixed_rate"` // rate of fixed steps
	// Scale is the time scale of the next tick, such as "1/2"; without a pause or slow motion it is
	// empty.
	Scale       string      `json:"time_scale,omitempty"`
	Quarantined int         `json:"quarantined"` // number of systems in quarantine
	Stages      []DumpStage `json:"stages"`      // in the order of running
}

// DumpStage is one stage of the loop for printing.
type DumpStage struct {
	// Stage is 0, in JSON the empty string, for the last group: systems that have not taken effect
	// yet, so that their stages are unknown.
	Stage   Stage        `json:"stage"`
	Systems []DumpSystem `json:"systems"` // in the order of running
}

// DumpSystem is one system of a stage for printing.
type DumpSystem struct {
	Name string `json:"name"` // of the system
	// Groups are the names of the groups around the system, the outermost first.
	Groups   []string      `json:"groups,omitempty"`
	Place    Place         `json:"place"`               // body, head or tail of the stage
	Priority int           `json:"priority"`            // lower ones run first
	Before   []string      `json:"before,omitempty"`    // names that run later
	After    []string      `json:"after,omitempty"`     // names that run earlier
	Periodic bool          `json:"periodic,omitempty"`  // it runs once its period has passed
	Period   time.Duration `json:"period_ns,omitempty"` // 0: it runs in every pass
	CatchUp  int           `json:"catch_up,omitempty"`  // most runs in a pass
	Scaled   bool          `json:"scaled,omitempty"`    // its period is of scaled time
	Gap      bool          `json:"gap,omitempty"`       // its period is from one call to the next
	// Conditional is true if the system, or a group around it, has a RunIf.
	Conditional bool `json:"conditional,omitempty"`
	// Skipped is true if a RunIf of the system or of a group around it was false, or panicked, when
	// the system was last due.
	Skipped bool `json:"skipped,omitempty"`
	// Once is true if the system runs once per tick, before the first fixed step. Only in
	// FixedUpdate.
	Once     bool `json:"once,omitempty"`
	Critical bool `json:"critical,omitempty"` // a panic of it ends the room
	// Pending is true if the system, or a change of it, takes effect at the next Initialization.
	Pending    bool     `json:"pending,omitempty"`
	Disabled   bool     `json:"disabled,omitempty"`         // it does not run
	Off        []string `json:"off,omitempty"`              // it and its groups, if disabled
	Quarantine uint64   `json:"quarantine_ticks,omitempty"` // ticks left in quarantine
	Panics     uint64   `json:"panics,omitempty"`           // since it was registered
	// Cost is the time that the system's calls at this stage have taken since it was registered.
	Cost *DumpCost `json:"cost,omitempty"`
}

// DumpCost holds the times of a system's calls. The error of the quantiles is at most 12.5 %.
type DumpCost struct {
	Runs uint64        `json:"runs"`    // calls
	Mean time.Duration `json:"mean_ns"` // of a call
	P50  time.Duration `json:"p50_ns"`  // median of a call
	P99  time.Duration `json:"p99_ns"`  // 99th percentile of a call
}

// Dump returns the stages with their systems in the order of running, including disabled systems.
// Pending systems are in a last group, if there are any. The caller owns the result.
func (l *Loop[C]) Dump() []DumpStage {
	d := l.Dumper()
	d.Take(MaxSystems)
	return d.Stages()
}

// Dumper makes a Dump in parts of a few systems, between ticks, because a description of ten
// thousand systems at once would take as long as a tick. Each system is described in its state at
// the call of Take.
type Dumper interface {
	// Take describes up to n more systems, and reports whether any are left. Only the loop's
	// goroutine may call it.
	Take(n int) (left bool)
	// Stages sorts the described systems into stages. Any goroutine may call it, once.
	Stages() []DumpStage
}

type dumper[C any] struct {
	loop    *Loop[C]
	next    int // of the loop's systems, by id
	members [numLists][]member
	waiting []DumpSystem
}

// member is a system in a list, for sorting: order holds the positions of the groups around it, the
// outermost first, and then its own position. They do not change while the loop runs.
type member struct {
	order []position
	DumpSystem
}

// Dumper starts a Dump.
func (l *Loop[C]) Dumper() Dumper { return &dumper[C]{loop: l} }

// Take implements Dumper.
func (d *dumper[C]) Take(n int) (left bool) {
	l := d.loop
	end := min(d.next+n, len(l.systems))
	for ; d.next < end; d.next++ {
		if s := l.systems[d.next]; s != nil {
			d.add(s)
		}
	}
	if d.next < len(l.systems) {
		return true
	}
	for _, s := range l.pending {
		if !s.Removed() && !s.leaving {
			d.waiting = append(d.waiting, l.dump(s, 0))
		}
	}
	return false
}

// add describes a system in each of its lists.
func (d *dumper[C]) add(s *System[C]) {
	for k := range numLists {
		if !s.member.has(k) || !s.in(stageOf(k)) {
			continue
		}
		var order []position
		for at := s; at != nil; at = at.inEffect() {
			order = append(order, at.position(k))
		}
		slices.Reverse(order)
		d.members[k] = append(d.members[k], member{order, d.loop.dump(s, stageOf(k))})
	}
}

// Stages implements Dumper.
func (d *dumper[C]) Stages() []DumpStage {
	dump := make([]DumpStage, 0, NumStages+1)
	for _, stage := range Stages() {
		x := DumpStage{Stage: stage, Systems: []DumpSystem{}}
		if stage == FixedUpdate {
			x.Systems = d.inOrder(x.Systems, onceList)
		}
		x.Systems = d.inOrder(x.Systems, stage.list())
		dump = append(dump, x)
	}
	if len(d.waiting) > 0 {
		dump = append(dump, DumpStage{Systems: d.waiting})
	}
	return dump
}

// inOrder appends the systems of list k.
func (d *dumper[C]) inOrder(dump []DumpSystem, k int) []DumpSystem {
	slices.SortFunc(d.members[k], func(a, b member) int { return slices.CompareFunc(a.order, b.order, position.compare) })
	for i := range d.members[k] {
		dump = append(dump, d.members[k][i].DumpSystem)
	}
	return dump
}

// Dump describes the system at a stage; stage 0 is for a pending system.
func (s *System[C]) Dump(stage Stage) DumpSystem { return s.loop.dump(s, stage) }

// dump describes a system at a stage, or without one if it is pending.
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
		if at.spec.Disabled {
			d.Disabled, d.Off = true, append(d.Off, at.spec.Name)
		}
		if at.flags.has(quarantined) {
			d.Quarantine = max(d.Quarantine, at.fault.until-min(l.count+1, at.fault.until))
		}
	}
	slices.Reverse(d.Groups)
	d.Skipped = d.Conditional && s.cond.pass > 0 && !s.cond.open
	if stage != 0 {
		if h := s.costs[stage.index()]; h != nil && h.Count() > 0 {
			d.Cost = &DumpCost{Runs: h.Count(), Mean: h.Mean(), P50: h.Quantile(0.5), P99: h.Quantile(0.99)}
		}
	}
	return d
}
