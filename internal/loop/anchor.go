package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxDepth limits the nesting of groups. A game needs only a few levels; a group that is inside
// itself exceeds any limit.
const MaxDepth = 16

// anchored reports whether the system has anchors: names of systems to run before or after.
func (s *System[C]) anchored() bool { return len(s.spec.Before)+len(s.spec.After) > 0 }

// shaped reports whether a cycle in the order could run through the system: it has anchors, or runs
// in the head or tail of a stage.
func (s *System[C]) shaped() bool { return s.anchored() || s.spec.Place != Body }

// parent returns the group around a system, or nil. A group that is not registered counts as none.
func (l *Loop[C]) parent(s *System[C]) *System[C] {
	if s.spec.Group == "" {
		return nil
	}
	return l.names[s.spec.Group]
}

// depth returns the number of groups around a system: at most MaxDepth+1.
func (l *Loop[C]) depth(s *System[C]) int { return depth(s, l.parent) }

func depth[C any](s *System[C], around func(*System[C]) *System[C]) int {
	n := 0
	for at := around(s); at != nil && n <= MaxDepth; at = around(at) {
		n++
	}
	return n
}

// beside returns the two systems, or the groups around them, that are in the same group: their
// order there decides the order of the two. It returns nils if one is inside the other. around is
// the function parent, or inEffect for the group that is in effect.
func beside[C any](a, b *System[C], around func(*System[C]) *System[C]) (_, _ *System[C]) {
	da, db := depth(a, around), depth(b, around)
	for ; da > db; da-- {
		a = around(a)
	}
	for ; db > da; db-- {
		b = around(b)
	}
	if a == b {
		return nil, nil
	}
	for around(a) != around(b) {
		a, b = around(a), around(b)
	}
	return a, b
}

// misplaced returns an error that names every invalid anchor of the system, and its group if the
// group does not exist. An anchor is invalid if it is not registered, if it contains the system, or
// if the system contains it.
func (l *Loop[C]) misplaced(s *System[C]) error {
	var errs []error
	if g := s.spec.Group; g != "" {
		if around := l.names[g]; around == nil {
			errs = append(errs, fmt.Errorf("system %q is to be in group %q, which is not registered", s.spec.Name, g))
		} else if !around.spec.IsGroup {
			errs = append(errs, fmt.Errorf("system %q is to be in group %q, which is a system", s.spec.Name, g))
		}
	}
	check := func(order string, names []string) {
		for _, name := range names {
			if name == s.spec.Name {
				continue // This is a cycle, and is reported as a cycle.
			}
			anchor := l.names[name]
			if anchor == nil {
				errs = append(errs, fmt.Errorf("system %q is to run %s %q, which is not registered", s.spec.Name, order, name))
			} else if a, _ := beside(s, anchor, l.parent); a == nil {
				errs = append(errs, fmt.Errorf("system %q is to run %s %q, but one of them is a group with the other in it", s.spec.Name, order, name))
			}
		}
	}
	check("before", s.spec.Before)
	check("after", s.spec.After)
	return errors.Join(errs...)
}

// nested returns an error if a group is inside itself, or too deep.
func (l *Loop[C]) nested(s *System[C]) error {
	if l.depth(s) > MaxDepth {
		return fmt.Errorf("%q in group %q: groups are nested more than %d deep, or in themselves", s.spec.Name, s.spec.Group, MaxDepth)
	}
	return nil
}

// cycle returns an error if anchors require a system to run before itself; s is the system that was
// added or changed. It considers anchors in all stages together, because the stages of a system may
// change, but its anchors must remain consistent. The order of the head of a stage before its tail
// counts as an anchor too. A nil s checks all systems.
func (l *Loop[C]) cycle(s *System[C]) error {
	shaped := l.shaped
	if s != nil {
		if !l.mayCloseCycle(s) {
			return nil // The system adds no edge to any path.
		}
		shaped = append(l.shaped[:len(l.shaped):len(l.shaped)], s)
	}
	path := l.findCycle(shaped)
	if path == nil {
		return nil
	}
	// The error starts with the system that was added, or the group around it.
	path = path[:len(path)-1]
	for at := s; at != nil; at = l.parent(at) {
		if i := slices.Index(path, at.spec.Name); i >= 0 {
			path = slices.Concat(path[i:], path[:i])
			break
		}
	}
	path = append(path, path[0])
	return fmt.Errorf("systems %q and %q must each run before the other (%s)",
		path[0], path[len(path)-2], strings.Join(path, " before "))
}

// mayCloseCycle reports whether a cycle in the order could run through a system that was added or
// changed.
func (l *Loop[C]) mayCloseCycle(s *System[C]) bool {
	return s.shaped() || s.spec.IsGroup || slices.ContainsFunc(l.shaped, func(o *System[C]) bool {
		return slices.Contains(o.spec.Before, s.spec.Name) || slices.Contains(o.spec.After, s.spec.Name)
	})
}

// checkAll checks every description against the others.
func (l *Loop[C]) checkAll() error {
	// nested is checked first, because misplaced iterates over the outer groups.
	for _, check := range [...]func(*System[C]) error{l.nested, l.misplaced} {
		var errs []error
		for _, s := range l.registered() {
			errs = append(errs, check(s))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return l.cycle(nil)
}

// findCycle returns a list of names in which each must run before the next, and the last is equal
// to the first, or nil if there is no cycle.
func (l *Loop[C]) findCycle(shaped []*System[C]) []string {
	later := make(map[string][]string)
	var heads, tails []string
	link := func(from, to string) {
		a, b := l.names[from], l.names[to]
		if a != nil && b != nil && a != b {
			if a, b = beside(a, b, l.parent); a == nil {
				return
			}
			from, to = a.spec.Name, b.spec.Name
		}
		later[from] = append(later[from], to)
	}
	for _, o := range shaped {
		if o.Removed() {
			continue
		}
		for _, name := range o.spec.Before {
			link(o.spec.Name, name)
		}
		for _, name := range o.spec.After {
			link(name, o.spec.Name)
		}
		switch o.spec.Place {
		case Head:
			heads = append(heads, o.spec.Name)
		case Tail:
			tails = append(tails, o.spec.Name)
		case Body:
		}
	}
	for _, h := range heads {
		later[h] = append(later[h], tails...)
	}
	w := graphSearch{later: later, state: make(map[string]int)}
	for _, o := range shaped {
		for at := o; at != nil; at = l.parent(at) {
			if w.walk(at.spec.Name) {
				return w.cycle
			}
		}
	}
	return nil
}

// graphSearch is a depth-first search of a graph.
type graphSearch struct {
	later map[string][]string
	state map[string]int // 1: on the path, 2: done
	path  []string
	cycle []string
}

// walk reports whether a cycle is reachable from this name.
func (w *graphSearch) walk(name string) bool {
	switch w.state[name] {
	case 1:
		w.cycle = append(slices.Clone(w.path[slices.Index(w.path, name):]), name)
		return true
	case 2:
		return false
	}
	w.state[name] = 1
	w.path = append(w.path, name)
	if slices.ContainsFunc(w.later[name], w.walk) {
		return true
	}
	w.path = w.path[:len(w.path)-1]
	w.state[name] = 2
	return false
}
