package loop

import (
	"cmp"
	"container/heap"
	"slices"
)

// If a system has no anchors, and no anchor names it, its position is its key. The other systems
// are sorted topologically, always taking the system with the least key that is ready, and in that
// order the position of each is the greatest key taken so far. Hence to sort all systems by their
// positions gives the topological order of all systems, because a system without an anchor is ready
// from the start, and would have been taken before the first system with a greater key. So systems
// without anchors are added and removed without visiting the anchored ones.

// node is a system or group with an anchor, while the order is computed.
type node[C any] struct {
	sys *System[C]
	// eff is the key of sys, or the key of a system that sys must precede, if that key is smaller.
	eff     key
	solved  bool
	next    []edge
	waiting int // number of unplaced predecessors in the same group
}

// edge leads to a node that must run later.
type edge struct {
	to int
	// pulls is true if the earlier system names the later system in Before: the earlier system then
	// takes the key of the later system if that key is smaller. With After the later system waits.
	pulls bool
}

// tied reports whether the system or group has anchors, or an anchor of another system names it.
func (l *Loop[C]) tied(s *System[C]) bool {
	return len(s.before)+len(s.after) > 0 || l.named[s.spec.Name]
}

// bind computes the positions that anchors require, and cuts each system whose position has
// changed from its lists, and marks it as touched.
func (l *Loop[C]) bind() {
	l.anchored = slices.DeleteFunc(l.anchored, func(s *System[C]) bool {
		s.anchors = len(s.before)+len(s.after) > 0 && !s.Removed()
		return !s.anchors
	})
	clear(l.named)
	for _, s := range l.anchored {
		for _, name := range slices.Concat(s.before, s.after) {
			l.named[name] = true
		}
	}
	was := l.bound
	l.bound = nil
	for k := range l.lists {
		l.bindList(k)
	}
	placed := len(l.touched)
	for _, s := range slices.Concat(was, l.bound) {
		if s.bound == nil || s.rebound == nil || *s.bound != *s.rebound {
			l.touch(s)
		}
	}
	for i := placed; i < len(l.touched); i++ {
		for _, s := range l.touched[i].inside {
			l.touch(s)
		}
	}
	l.cut(l.touched[placed:])
	for _, s := range slices.Concat(was, l.bound) {
		s.bound = s.rebound
	}
	for _, s := range l.bound {
		s.rebound = nil
	}
}

// bindList computes the positions in list k.
func (l *Loop[C]) bindList(k int) {
	nodes := l.graph(k)
	ready := readyHeap[C]{nodes: nodes}
	for i := range nodes {
		solve(nodes, i)
		if nodes[i].waiting == 0 {
			ready.index = append(ready.index, i)
		}
	}
	heap.Init(&ready)
	last := make(map[*System[C]]position) // by group
	for len(ready.index) > 0 {
		n := &nodes[heap.Pop(&ready).(int)]
		at := last[n.sys.group]
		if at.turn == 0 || at.key.compare(n.eff) < 0 {
			at = position{key: n.eff}
		}
		at.turn++
		last[n.sys.group] = at
		if n.sys.rebound == nil {
			n.sys.rebound = new([numLists]position)
			l.bound = append(l.bound, n.sys)
		}
		n.sys.rebound[k] = at
		for _, e := range n.next {
			nodes[e.to].waiting--
			if nodes[e.to].waiting == 0 {
				heap.Push(&ready, e.to)
			}
		}
	}
}

// graph makes nodes of the systems in list k that anchors connect. The anchors contain no cycle:
// Add, Change and Set have refused it.
func (l *Loop[C]) graph(k int) (nodes []node[C]) {
	index := make(map[*System[C]]int)
	at := func(s *System[C]) int {
		i, ok := index[s]
		if !ok {
			i = len(nodes)
			index[s] = i
			nodes = append(nodes, node[C]{sys: s, eff: s.own})
		}
		return i
	}
	link := func(a, b *System[C], pulls bool) {
		// Both are ordered within one group: the innermost group around both.
		if a, b = beside(a, b, (*System[C]).inEffect); a != nil {
			from, to := at(a), at(b)
			nodes[from].next = append(nodes[from].next, edge{to: to, pulls: pulls})
			nodes[to].waiting++
		}
	}
	for _, s := range l.anchored {
		if !s.inList(k) {
			continue
		}
		for _, name := range s.before {
			if o := l.names[name]; o != nil && o.inList(k) {
				link(s, o, true)
			}
		}
		for _, name := range s.after {
			if o := l.names[name]; o != nil && o.inList(k) {
				link(o, s, false)
			}
		}
	}
	return nodes
}

// inList reports whether the system, or a member of the group, is in list k.
func (s *System[C]) inList(k int) bool { return s.member.has(k) || s.counts[k] > 0 }

// solve computes the effective key of a node. A system with a Before anchor takes the key of that
// anchor if the key is smaller, and so does each system that must run before a system that moved in
// this way. A system of the tail keeps its key: the flush is never moved forward; systems that must
// follow it wait for it.
func solve[C any](nodes []node[C], i int) {
	n := &nodes[i]
	if n.solved {
		return
	}
	n.solved = true
	for _, e := range n.next {
		solve(nodes, e.to)
		to := &nodes[e.to]
		moved := to.eff.compare(to.sys.own) < 0
		leavesTail := n.sys.own.place == placeTail && to.eff.place != placeTail
		if (e.pulls || moved) && !leavesTail && to.eff.compare(n.eff) < 0 {
			n.eff = to.eff
		}
	}
}

// readyHeap holds the nodes without an unplaced predecessor, least key first.
type readyHeap[C any] struct {
	nodes []node[C]
	index []int
}

func (h *readyHeap[C]) Len() int { return len(h.index) }

func (h *readyHeap[C]) Less(a, b int) bool {
	x, y := &h.nodes[h.index[a]], &h.nodes[h.index[b]]
	return cmp.Or(x.eff.compare(y.eff), cmp.Compare(x.sys.own.seq, y.sys.own.seq)) < 0
}

func (h *readyHeap[C]) Swap(a, b int) { h.index[a], h.index[b] = h.index[b], h.index[a] }

func (h *readyHeap[C]) Push(x any) { h.index = append(h.index, x.(int)) }

func (h *readyHeap[C]) Pop() any {
	last := h.index[len(h.index)-1]
	h.index = h.index[:len(h.index)-1]
	return last
}
