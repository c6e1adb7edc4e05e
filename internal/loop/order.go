package loop

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The bands of a stage in their order.
const (
	placeHead = iota
	placeBody
	placeTail
)

// key is the place of a system in the order of a stage, most significant first.
type key struct {
	place    int
	priority int
	seq      uint64
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.place, o.place), cmp.Compare(k.priority, o.priority), cmp.Compare(k.seq, o.seq))
}

func (s *System[C]) key() key {
	place := placeBody
	switch s.spec.Place {
	case Head:
		place = placeHead
	case Tail:
		place = placeTail
	case Body:
	}
	return key{place: place, priority: s.spec.Priority, seq: s.seq}
}

// node is a system while the order of a stage is being found.
type node[C any] struct {
	sys *System[C]
	own key
	// eff is own, or the key of what the system must precede if that is earlier.
	eff     key
	solved  bool
	next    []edge
	waiting int // systems that must come first and have not been placed
}

// edge leads to a node that must come later.
type edge struct {
	to int
	// pulls says that the earlier of the two asked for it, and so moves.
	pulls bool
}

// arrange puts the members of one stage, given in order of registration, in the
// order of the package comment. The anchors among them hold no cycle: Add has
// refused it.
//
// It is a topological sort that always takes the ready system with the least
// effective key, so that where no anchor speaks, place, priority and
// registration decide.
func arrange[C any](members []*System[C]) {
	if !slices.ContainsFunc(members, (*System[C]).anchored) {
		slices.SortFunc(members, func(a, b *System[C]) int { return a.key().compare(b.key()) })
		return
	}
	nodes := connect(members)
	for i := range nodes {
		solve(nodes, i)
	}
	ready := readyHeap[C]{nodes: nodes}
	for i := range nodes {
		if nodes[i].waiting == 0 {
			ready.index = append(ready.index, i)
		}
	}
	heap.Init(&ready)
	members = members[:0]
	for len(ready.index) > 0 {
		n := &nodes[heap.Pop(&ready).(int)]
		members = append(members, n.sys)
		for _, e := range n.next {
			nodes[e.to].waiting--
			if nodes[e.to].waiting == 0 {
				heap.Push(&ready, e.to)
			}
		}
	}
}

// connect makes the graph of a stage from the anchors that are both in it.
func connect[C any](members []*System[C]) []node[C] {
	nodes := make([]node[C], len(members))
	index := make(map[string]int, len(members))
	for i, s := range members {
		nodes[i] = node[C]{sys: s, own: s.key(), eff: s.key()}
		index[s.spec.Name] = i
	}
	link := func(from, to int, pulls bool) {
		nodes[from].next = append(nodes[from].next, edge{to: to, pulls: pulls})
		nodes[to].waiting++
	}
	for i, s := range members {
		for _, name := range s.spec.Before {
			if j, ok := index[name]; ok {
				link(i, j, true)
			}
		}
		for _, name := range s.spec.After {
			if j, ok := index[name]; ok {
				link(j, i, false)
			}
		}
	}
	return nodes
}

// solve finds the effective key: a system that asked to be before another takes
// its key if that is earlier, and so does whatever must come before a system
// that moved so. A system of the tail keeps its place: nothing pulls the flush
// to the front, rather what must follow it waits.
func solve[C any](nodes []node[C], i int) {
	n := &nodes[i]
	if n.solved {
		return
	}
	n.solved = true
	for _, e := range n.next {
		solve(nodes, e.to)
		to := &nodes[e.to]
		moved := to.eff.compare(to.own) < 0
		leavesTail := n.own.place == placeTail && to.eff.place != placeTail
		if (e.pulls || moved) && !leavesTail && to.eff.compare(n.eff) < 0 {
			n.eff = to.eff
		}
	}
}

// readyHeap holds the nodes that nothing precedes any more, least key first.
type readyHeap[C any] struct {
	nodes []node[C]
	index []int
}

func (h *readyHeap[C]) Len() int { return len(h.index) }

func (h *readyHeap[C]) Less(a, b int) bool {
	x, y := &h.nodes[h.index[a]], &h.nodes[h.index[b]]
	return cmp.Or(x.eff.compare(y.eff), cmp.Compare(x.own.seq, y.own.seq)) < 0
}

func (h *readyHeap[C]) Swap(a, b int) { h.index[a], h.index[b] = h.index[b], h.index[a] }

func (h *readyHeap[C]) Push(x any) { h.index = append(h.index, x.(int)) }

func (h *readyHeap[C]) Pop() any {
	last := h.index[len(h.index)-1]
	h.index = h.index[:len(h.index)-1]
	return last
}

// anchored reports whether the system names any other.
func (s *System[C]) anchored() bool { return len(s.spec.Before)+len(s.spec.After) > 0 }

// shaped reports whether the system bears on whether an order exists at all.
func (s *System[C]) shaped() bool { return s.anchored() || s.spec.Place != Body }

// unknownAnchors names every anchor of the system that is not registered.
func (l *Loop[C]) unknownAnchors(spec *Spec[C]) error {
	var errs []error
	for _, name := range spec.Before {
		if l.names[name] == nil && name != spec.Name {
			errs = append(errs, fmt.Errorf("loop: system %q is to run before %q, which is not registered", spec.Name, name))
		}
	}
	for _, name := range spec.After {
		if l.names[name] == nil && name != spec.Name {
			errs = append(errs, fmt.Errorf("loop: system %q is to run after %q, which is not registered", spec.Name, name))
		}
	}
	return errors.Join(errs...)
}

// cycle returns an error if the anchors of the system, with those of everybody
// else, ask it to run before itself. It looks at names, whatever the stages:
// which stages a system is in may change, whether its anchors make sense may
// not. That the head of a stage comes before its tail counts as an anchor too.
func (l *Loop[C]) cycle(s *System[C]) error {
	if !s.shaped() {
		return nil // it adds no step to any way
	}
	later := make(map[string][]string)
	var heads, tails []string
	for _, o := range append(l.shaped, s) {
		name := o.spec.Name
		if o.Removed() {
			continue
		}
		later[name] = append(later[name], o.spec.Before...)
		for _, a := range o.spec.After {
			later[a] = append(later[a], name)
		}
		switch o.spec.Place {
		case Head:
			heads = append(heads, name)
		case Tail:
			tails = append(tails, name)
		case Body:
		}
	}
	for _, h := range heads {
		later[h] = append(later[h], tails...)
	}
	path := findPath(later, s.spec.Name, s.spec.Name, make(map[string]bool))
	if path == nil {
		return nil
	}
	return fmt.Errorf("loop: systems %q and %q must each run before the other (%s)",
		s.spec.Name, path[len(path)-2], strings.Join(path, " before "))
}

// findPath returns the names from one to another along later, both included,
// or nil. The way has at least one step.
func findPath(later map[string][]string, from, to string, seen map[string]bool) []string {
	for _, next := range later[from] {
		if next == to {
			return []string{from, to}
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		if rest := findPath(later, next, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}
