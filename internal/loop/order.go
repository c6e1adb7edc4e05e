package loop

import (
	"cmp"
	"container/heap"
	"slices"
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

// node is a system or group while the order of a stage is being found.
type node[C any] struct {
	sys *System[C]
	own key
	// eff is own, or the key of what the system must precede if that is earlier.
	eff     key
	solved  bool
	next    []edge
	waiting int   // of those beside it that must come first and have not been placed
	inside  []int // of a group
}

// edge leads to a node that must come later.
type edge struct {
	to int
	// pulls says that the earlier of the two asked for it, and so moves.
	pulls bool
}

// arrange returns the members of one stage, given in order of registration, in
// the order of the package comment. The anchors among them hold no cycle: Add,
// Change and Set have refused it.
//
// Every group is ordered by itself and stands among the others as a whole.
func arrange[C any](members []*System[C]) []*System[C] {
	if !slices.ContainsFunc(members, func(s *System[C]) bool { return s.anchored() || s.group != nil }) {
		slices.SortFunc(members, func(a, b *System[C]) int { return a.key().compare(b.key()) })
		return members
	}
	nodes, top := connect(members)
	return flatten(nodes, top, make([]*System[C], 0, len(members)))
}

// flatten appends the systems of a group, or of no group, in order.
//
// It is a topological sort that always takes the ready node with the least
// effective key, so that where no anchor speaks, place, priority and
// registration decide.
func flatten[C any](nodes []node[C], inside []int, order []*System[C]) []*System[C] {
	ready := readyHeap[C]{nodes: nodes}
	for _, i := range inside {
		solve(nodes, i)
		if nodes[i].waiting == 0 {
			ready.index = append(ready.index, i)
		}
	}
	heap.Init(&ready)
	for len(ready.index) > 0 {
		n := &nodes[heap.Pop(&ready).(int)]
		if n.sys.spec.IsGroup {
			order = flatten(nodes, n.inside, order)
		} else {
			order = append(order, n.sys)
		}
		for _, e := range n.next {
			nodes[e.to].waiting--
			if nodes[e.to].waiting == 0 {
				heap.Push(&ready, e.to)
			}
		}
	}
	return order
}

// connect makes the graph of a stage from the anchors that are both in it, and
// returns it with the nodes that are in no group.
func connect[C any](members []*System[C]) (nodes []node[C], top []int) {
	index := make(map[string]int, len(members))
	var place func(s *System[C]) int
	place = func(s *System[C]) int {
		i, ok := index[s.spec.Name]
		if ok {
			return i
		}
		i = len(nodes)
		nodes = append(nodes, node[C]{sys: s, own: s.key(), eff: s.key()})
		index[s.spec.Name] = i
		if s.group == nil {
			top = append(top, i)
		} else {
			g := place(s.group)
			nodes[g].inside = append(nodes[g].inside, i)
		}
		return i
	}
	for _, s := range members {
		place(s)
	}
	link := func(from, to int, pulls bool) {
		// Both stand in the order of one group: that of the innermost around both.
		if a, b := beside(nodes[from].sys, nodes[to].sys, (*System[C]).inEffect); a != nil {
			from, to = index[a.spec.Name], index[b.spec.Name]
			nodes[from].next = append(nodes[from].next, edge{to: to, pulls: pulls})
			nodes[to].waiting++
		}
	}
	for i := range nodes {
		for _, name := range nodes[i].sys.spec.Before {
			if j, ok := index[name]; ok {
				link(i, j, true)
			}
		}
		for _, name := range nodes[i].sys.spec.After {
			if j, ok := index[name]; ok {
				link(j, i, false)
			}
		}
	}
	return nodes, top
}

// inEffect is the group around the system as of the last settle.
func (s *System[C]) inEffect() *System[C] { return s.group }

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
