package netloop

import (
	"iter"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Node describes a system or group of a [Loop].
type Node struct {
	Name string
	// Group is the name of its group, if any.
	Group   string
	IsGroup bool
	// BuiltIn systems may only be used as anchors.
	BuiltIn  bool
	Disabled bool
	Priority int
	// Before and After are its anchors.
	Before, After []string
	// Stages are those for which it provides a function; none means all.
	Stages []Stage
	// Periodic systems run once Period has passed; CatchUp is how often in a tick they may catch
	// up, and 0 means never. Scaled means that the period is in scaled time, and Gap that it is a
	// [MinGap].
	Periodic bool
	Period   time.Duration
	CatchUp  int
	Scaled   bool
	Gap      bool
	// Conditional means that it has a RunIf.
	Conditional bool
	Critical    bool

	// System is its handle, to change or remove it; nil for one that is built in.
	System *System
	// Pending means that the system, or a change of it, takes effect at the next Initialization; a
	// system that was added to the tree does so when the tree is Set.
	Pending bool
	// Quarantine is the number of ticks for which the system is still disabled because it panicked
	// repeatedly, and Panics the number of its panics since it was registered.
	Quarantine uint64
	Panics     uint64
	// Costs are the durations of its calls, for each stage with any.
	Costs []StageCost
}

// StageCost is the cost of a system's calls at a stage since it was registered. The quantiles are
// right within 12.5 % of themselves.
type StageCost struct {
	Stage          Stage
	Calls          uint64
	Mean, P50, P99 time.Duration
}

// All iterates over the tree in the order of registration.
func (l *Loop) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := range l.tree.Items {
			if !yield(l.node(i)) {
				return
			}
		}
	}
}

// Find returns the system or group with the name, if there is one.
func (l *Loop) Find(name string) (Node, bool) {
	for i := range l.tree.Items {
		if l.tree.Items[i].Spec.Name == name {
			return l.node(i), true
		}
	}
	return Node{}, false
}

// node returns the description of the i-th item of the tree.
func (l *Loop) node(i int) Node {
	it := &l.tree.Items[i]
	s := &it.Spec
	n := Node{
		Name: s.Name, Group: s.Group, IsGroup: s.IsGroup, BuiltIn: s.BuiltIn != "", Disabled: s.Disabled, Priority: s.Priority,
		Before: slices.Clone(s.Before), After: slices.Clone(s.After), Stages: slices.Clone(s.Stages),
		Periodic: s.Periodic, Period: s.Period, CatchUp: s.CatchUp, Scaled: s.Periodic && s.Scaled, Gap: s.Gap, Conditional: s.RunIf != nil, Critical: s.Critical,
	}
	if it.System == nil {
		n.Pending = true
		if k := slices.IndexFunc(l.added, func(a *System) bool { return a.spec.Name == s.Name }); k >= 0 {
			n.System = l.added[k]
		}
		return n
	}
	if !n.BuiltIn {
		n.System = &System{s: it.System, reject: l.reject}
	}
	state := it.System.Dump(0)
	n.Pending, n.Quarantine, n.Panics = state.Pending || it.Changed, state.Quarantine, state.Panics
	for _, stage := range loop.Stages() {
		if c := it.System.Dump(stage).Cost; c != nil {
			n.Costs = append(n.Costs, StageCost{Stage: stage, Calls: c.Runs, Mean: c.Mean, P50: c.P50, P99: c.P99})
		}
	}
	return n
}
