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
	// Group is the name of the group that it is in, if any.
	Group   string
	IsGroup bool
	// BuiltIn systems may be anchored to, and nothing else.
	BuiltIn  bool
	Disabled bool
	Paused   bool
	Priority int
	// Before and After are its anchors.
	Before, After []string
	// Stages are those that it is asked for; none means all.
	Stages []Stage
	// Periodic systems run once Period has passed; CatchUp is how often in a tick
	// they may catch up, and 0 says that they do not. Scaled says that the period
	// is one of scaled time, and Gap that it is a [MinGap].
	Periodic bool
	Period   time.Duration
	CatchUp  int
	Scaled   bool
	Gap      bool
	// Conditional says that it has a RunIf.
	Conditional bool
	Critical    bool

	// System is its handle, to change or remove it; nil for one that is built in.
	System *System
	// Pending says that it, or a change of it, takes effect at the next
	// Initialization; one that the tree is to add does so when it is Set.
	Pending bool
	// Quarantine is for how many ticks it does not run yet because it panicked again
	// and again, and Panics how often it has since it was registered.
	Quarantine uint64
	Panics     uint64
	// Costs says what its calls took, for each stage in which there were any.
	Costs []StageCost
}

// StageCost is what the calls of a system took at a stage since it was registered.
// The quantiles are right within 12.5 % of themselves.
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

// node describes the i-th of the tree.
func (l *Loop) node(i int) Node {
	it := &l.tree.Items[i]
	s := &it.Spec
	n := Node{
		Name: s.Name, Group: s.Group, IsGroup: s.IsGroup, BuiltIn: s.BuiltIn != "", Disabled: s.Disabled, Paused: s.Paused, Priority: s.Priority,
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
