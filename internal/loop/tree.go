package loop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Tree is the registry as a value: get it with Loop.Tree, change it, and pass it to Set.
type Tree[C any] struct {
	// Items are in order of registration.
	Items   []Item[C]
	version uint64
}

// Item is a system or group of a Tree.
type Item[C any] struct {
	// System is nil for an item to be added.
	System *System[C]
	Spec   Spec[C]
	// Changed reports whether Spec differs from the registered Spec of System.
	Changed bool
}

// Tree returns the contents of the registry, including requests that wait for the next
// Initialization.
func (l *Loop[C]) Tree() Tree[C] {
	t := Tree[C]{version: l.version}
	for _, s := range l.registered() {
		t.Items = append(t.Items, Item[C]{System: s, Spec: s.Spec()})
	}
	return t
}

// Set replaces the contents of the registry by the tree, from the next Initialization on: it adds,
// changes, and removes systems that are not in the tree. The order of its items is the order of
// registration from then on. The whole tree is checked first, and after an error the registry is
// unchanged. It is also an error if the registry has changed since the tree was taken.
func (l *Loop[C]) Set(t Tree[C]) error {
	if t.version != l.version {
		return errors.New("systems were added, changed or removed since this tree was taken: take it again, change it and set it in one go")
	}
	if err := l.acceptable(t.Items); err != nil {
		return err
	}
	undo := l.undo()
	l.register(t.Items)
	if err := l.checkAll(); err != nil {
		undo()
		return err
	}
	l.version++
	for _, s := range l.systems {
		if s != nil {
			l.touch(s) // The order may have changed, even if the system has not.
		}
	}
	return nil
}

// acceptable returns the errors of the single items.
func (l *Loop[C]) acceptable(items []Item[C]) error {
	if len(items) > MaxSystems {
		return fmt.Errorf("a tree of %d systems is too large: a loop holds %d", len(items), MaxSystems)
	}
	var errs []error
	names := make(map[string]bool, len(items))
	kept := make(map[*System[C]]bool, len(items))
	for i := range items {
		spec, s := &items[i].Spec, items[i].System
		errs = append(errs, spec.check())
		if names[spec.Name] {
			errs = append(errs, fmt.Errorf("the name %q is in the tree twice", spec.Name))
		}
		names[spec.Name] = true
		switch {
		case s == nil:
			continue
		case s.loop != l || s.Removed() || s.leaving || kept[s]:
			errs = append(errs, fmt.Errorf("system %q is in the tree, but not in the loop, or twice", spec.Name))
		case items[i].Changed && s.spec.BuiltIn != "":
			errs = append(errs, s.spec.keep("changed"))
		}
		kept[s] = true
	}
	for _, s := range l.registered() {
		if s.spec.BuiltIn != "" && !kept[s] {
			errs = append(errs, s.spec.keep("removed or replaced"))
		}
	}
	return errors.Join(errs...)
}

// register replaces the contents of the registry by the items.
func (l *Loop[C]) register(items []Item[C]) {
	was := l.registered()
	for _, s := range was {
		s.leaving = true
	}
	clear(l.names)
	var added []*System[C]
	for i := range items {
		it := &items[i]
		s := it.System
		switch {
		case s == nil:
			s = l.made(it.Spec)
			added = append(added, s)
		case it.Changed:
			s.describe(it.Spec.clone())
			l.wait(s)
		}
		s.leaving = false
		l.number(s)
		l.names[s.spec.Name] = s
	}
	for _, s := range was {
		if s.leaving {
			l.leaving = append(l.leaving, s)
		}
	}
	l.pending = append(l.pending, added...)
	l.reshape()
}

// undo returns a function that reverts a register.
func (l *Loop[C]) undo() func() {
	was := l.registered()
	states := make([]System[C], len(was))
	for i, s := range was {
		states[i] = *s
	}
	names, seq := maps.Clone(l.names), l.seq
	pending, changed, leaving := slices.Clone(l.pending), slices.Clone(l.changed), slices.Clone(l.leaving)
	return func() {
		for i, s := range was {
			*s = states[i]
		}
		l.names, l.seq = names, seq
		l.pending, l.changed, l.leaving = pending, changed, leaving
		l.reshape()
	}
}
