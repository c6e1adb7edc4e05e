package netloop

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Loop is the tree of a room's or client's systems and groups, as a value: get it with [Room.Loop],
// change it, and call Set. Before Set, changes have no effect. Set checks the whole tree. The tree
// takes effect at the next Initialization or, after an error, not at all. Set also reports the
// errors of earlier method calls.
//
// Use it to rearrange systems that other code has registered. For all other purposes use [Room.On].
type Loop struct {
	owner  *loop.Loop[*Tick]
	reject func(error)
	tree   loop.Tree[*Tick]
	added  []*System // to be registered by Set; their tree.Items have a nil System
	errs   []error
}

// Loop returns the present tree, including all changes that take effect at the next Initialization.
func (r *Room) Loop() *Loop { return r.systems.Loop() }

// Loop implements Room.Loop and a client's.
func (r *registry) Loop() *Loop { return newLoop(r.loop, r.reject) }

func newLoop(owner *loop.Loop[*Tick], reject func(error)) *Loop {
	return &Loop{owner: owner, reject: reject, tree: owner.Tree()}
}

// Group registers a group, to which other systems are added with [InSystemGroup], as [Loop.Group]
// does in a tree.
func (r *Room) Group(name string, o ...SystemOption) *System { return r.systems.Group(name, o...) }

// Group implements Room.Group and a client's.
func (r *registry) Group(name string, o ...SystemOption) *System {
	return r.register(groupSpec(name, o))
}

func groupSpec(name string, o []SystemOption) loop.Spec[*Tick] {
	return changed(loop.Spec[*Tick]{Name: name, IsGroup: true}, o)
}

// NewSystem makes a system for a [Loop], as [Room.On] makes one for a room. Except for Name, its
// methods have no effect until Set has been called on the tree.
func NewSystem(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return &System{spec: onSpec(s, name, fn, o)}
}

// Default returns the initial tree of a room, or client: only the built-in systems. Its Set removes
// all other systems.
func (l *Loop) Default() *Loop {
	d := newLoop(l.owner, l.reject)
	d.tree.Items = slices.DeleteFunc(d.tree.Items, func(it loop.Item[*Tick]) bool { return it.Spec.BuiltIn == "" })
	return d
}

// Append adds systems after the existing ones. The systems' options determine their order.
func (l *Loop) Append(s ...*System) {
	for _, one := range s {
		l.insert(len(l.tree.Items), one, one.spec)
	}
}

// InsertBefore adds a system to the group of a named system, before that system in every stage that
// they share.
func (l *Loop) InsertBefore(name string, s *System) {
	if i := l.index("insert before", name); i >= 0 {
		spec := s.spec
		spec.Before = append([]string{name}, spec.Before...)
		spec.Group = l.tree.Items[i].Spec.Group
		l.insert(i, s, spec)
	}
}

// InsertAfter adds a system to the group of a named system, after that system in every stage that
// they share.
func (l *Loop) InsertAfter(name string, s *System) {
	if i := l.index("insert after", name); i >= 0 {
		spec := s.spec
		spec.After = append([]string{name}, spec.After...)
		spec.Group = l.tree.Items[i].Spec.Group
		l.insert(i+1, s, spec)
	}
}

// Replace replaces a named system. The new system gets the group, the anchors and the priority of
// the old system, unless it has its own. The old system is removed when the tree takes effect. The
// new system may have the same name.
func (l *Loop) Replace(name string, s *System) {
	i := l.index("replace", name)
	if i < 0 {
		return
	}
	old, spec := &l.tree.Items[i].Spec, s.spec
	if spec.Before == nil && spec.After == nil {
		spec.Before, spec.After = old.Before, old.After
	}
	if spec.Priority == 0 {
		spec.Priority = old.Priority
	}
	if spec.Group == "" {
		spec.Group = old.Group
	}
	l.drop(i)
	l.insert(i, s, spec)
}

// Remove removes systems from the tree, and groups with all their members.
func (l *Loop) Remove(names ...string) {
	for _, name := range names {
		i := l.index("remove", name)
		if i < 0 {
			continue
		}
		spec := l.tree.Items[i].Spec
		l.drop(i)
		if !spec.IsGroup {
			continue
		}
		var members []string
		for _, it := range l.tree.Items {
			if it.Spec.Group == name {
				members = append(members, it.Spec.Name)
			}
		}
		l.Remove(members...)
	}
}

// Change gives a named system or group other options, as [System.Change] does.
func (l *Loop) Change(name string, o ...SystemOption) {
	if i := l.index("change", name); i >= 0 {
		it := &l.tree.Items[i]
		it.Spec, it.Changed = changed(it.Spec, o), true
	}
}

// Move moves a system, or a group with all its members: [Before] or [After] other systems, into the
// group of the first named system, or into a group with [InSystemGroup]. InSystemGroup("") moves it
// out of all groups. Its former anchors are removed. Other options change it as [Loop.Change] does.
func (l *Loop) Move(name string, to ...SystemOption) {
	i := l.index("move", name)
	if i < 0 {
		return
	}
	const unset = "\x00"
	it := l.tree.Items[i]
	spec := it.Spec
	spec.Before, spec.After, spec.Group = []string{}, []string{}, unset
	for _, one := range to {
		one.apply(&spec)
	}
	at := len(l.tree.Items) // A system that is moved into a group becomes its last member.
	if anchor, offset := anchorOf(&spec); anchor != "" {
		if at = l.index("move "+strconv.Quote(name)+" beside", anchor); at < 0 {
			return
		}
		if spec.Group == unset {
			spec.Group = l.tree.Items[at].Spec.Group
		}
		at += offset
	}
	if spec.Group == unset {
		spec.Group = it.Spec.Group
	}
	it.Spec, it.Changed = spec, true
	l.tree.Items = slices.Insert(l.tree.Items, at, it)
	if at <= i {
		i++
	}
	l.tree.Items = slices.Delete(l.tree.Items, i, i+1)
}

// anchorOf returns the first anchor of a system's spec, or "", and an offset: 0 if the system runs
// before the anchor, 1 if after it.
func anchorOf(s *loop.Spec[*Tick]) (name string, offset int) {
	switch {
	case len(s.Before) > 0:
		return s.Before[0], 0
	case len(s.After) > 0:
		return s.After[0], 1
	}
	return "", 0
}

// Disable disables named systems or groups, as [System.Disable] does.
func (l *Loop) Disable(names ...string) {
	for _, name := range names {
		l.Change(name, Disabled(true))
	}
}

// Enable lets named systems or groups run again.
func (l *Loop) Enable(names ...string) {
	for _, name := range names {
		l.Change(name, Disabled(false))
	}
}

// Group adds a group. The systems of a group are ordered among themselves, have one position in
// every stage, and run only while the [RunIf] of the group returns true. A group may have anchors
// and a priority like a system, and may be in another group.
func (l *Loop) Group(name string, o ...SystemOption) *SystemGroup {
	l.Append(&System{spec: groupSpec(name, o)})
	return &SystemGroup{l, name}
}

// SystemGroup adds systems to a group of a [Loop]: see [Loop.Group].
type SystemGroup struct {
	loop *Loop
	name string
}

// Append adds systems to the group.
func (g *SystemGroup) Append(s ...*System) *SystemGroup {
	for _, one := range s {
		one.spec.Group = g.name
		g.loop.Append(one)
	}
	return g
}

// Group adds a group inside the group.
func (g *SystemGroup) Group(name string, o ...SystemOption) *SystemGroup {
	return g.loop.Group(name, append(o[:len(o):len(o)], InSystemGroup(g.name))...)
}

// Set checks the tree. A valid tree takes effect at the next Initialization. For an invalid tree
// the running loop is not changed, and the error names all problems: unknown anchors, cycles,
// duplicate names, a built-in system that was changed, or another change of the loop since this
// tree was taken. While [Game] Open runs, Set considers only the systems that were registered
// before.
func (l *Loop) Set() error {
	err := errors.Join(l.errs...)
	if err == nil {
		err = l.owner.Set(l.tree)
	}
	if err != nil {
		return fmt.Errorf("netloop: the tree cannot be set: %w", err)
	}
	for _, s := range l.added {
		// From now on the caller's *System refers to the registered system.
		s.s, s.reject = l.owner.Find(s.spec.Name), l.reject
	}
	return nil
}

// insert inserts a new system into the tree at index i. If the system is already registered or
// added, Set reports an error.
func (l *Loop) insert(i int, s *System, spec loop.Spec[*Tick]) {
	if s.s != nil || slices.Contains(l.added, s) {
		l.errs = append(l.errs, fmt.Errorf("system %q is registered: change it by its name, or make another", s.Name()))
		return
	}
	s.spec = spec
	l.added = append(l.added, s)
	l.tree.Items = slices.Insert(l.tree.Items, i, loop.Item[*Tick]{Spec: spec})
}

// drop removes the item at i.
func (l *Loop) drop(i int) {
	name := l.tree.Items[i].Spec.Name
	if l.tree.Items[i].System == nil {
		l.added = slices.DeleteFunc(l.added, func(s *System) bool { return s.spec.Name == name })
	}
	l.tree.Items = slices.Delete(l.tree.Items, i, i+1)
}

// index returns the index of the item with the name, or −1 for an unknown name, which Set reports.
func (l *Loop) index(what, name string) int {
	i := slices.IndexFunc(l.tree.Items, func(it loop.Item[*Tick]) bool { return it.Spec.Name == name })
	if i < 0 {
		l.errs = append(l.errs, fmt.Errorf("%s %q: the loop has no such system", what, name))
	}
	return i
}

// String lists the systems of each stage in the order in which they would run after Set, as the
// command loop print does. Systems without a known order are last: systems of [Room.Add] with
// unknown stages, and systems that Set would reject.
func (l *Loop) String() string { return loop.Table(l.owner.Preview(l.tree), false) }

// Node describes a system or group of a [Loop].
type Node struct {
	Name string
	// Group is the name of the group that it is in, or "".
	Group   string
	IsGroup bool
	// BuiltIn systems may only be used as anchors.
	BuiltIn  bool
	Disabled bool
	Priority int
	// Before and After are its anchors.
	Before, After []string
	// Stages are the stages for which it has a function; an empty list means all stages.
	Stages []Stage
	// A Periodic system runs when Period has passed. CatchUp is the number of calls per tick by
	// which it may catch up; 0 means none. Scaled means that the period is in scaled time, and Gap
	// that it is a [MinGap].
	Periodic bool
	Period   time.Duration
	CatchUp  int
	Scaled   bool
	Gap      bool
	// Conditional means that the system or group has a RunIf.
	Conditional bool
	Critical    bool

	// System is the handle with which to change or remove it; nil for a built-in system.
	System *System
	// Pending means that the system, or a change of it, takes effect at the next Initialization; a
	// system that was added to the tree takes effect after Set.
	Pending bool
	// Quarantine is the number of ticks for which the system is still disabled because it panicked
	// repeatedly, and Panics is the number of its panics since it was registered.
	Quarantine uint64
	Panics     uint64
	// Costs are the durations of its calls, for each stage at which it was called.
	Costs []StageCost
}

// StageCost is the cost of a system's calls at a stage since it was registered. P50 and P99 are
// accurate to 12.5 %.
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
