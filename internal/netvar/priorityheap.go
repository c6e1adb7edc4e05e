package netvar

// priorities is a heap of candidates, the highest priority on top. A heap is faster than sorting,
// because few of many candidates are sent.
type priorities []priority

// priority is the priority of a candidate; see weigh.
type priority struct {
	amount uint64
	index  uint32 // in the list of candidates, which is sorted by slot
	rank   rank
	large  bool
}

// before reports whether n has a higher priority than m.
func (n *priority) before(m *priority) bool {
	switch {
	case n.rank != m.rank:
		return n.rank < m.rank
	case n.amount != m.amount:
		return n.amount > m.amount
	}
	return n.index < m.index
}

// order turns a list into a heap.
func (h priorities) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i, h[i])
	}
}

// pop removes and returns the candidate with the highest priority, and stores it directly after the
// remaining heap.
func (h *priorities) pop() priority {
	all := *h
	last := len(all) - 1
	top, n := all[0], all[last]
	if *h = all[:last]; last > 0 {
		h.sink(0, n)
	}
	all[last] = top
	return top
}

// sink inserts n at i or below.
func (h priorities) sink(i int, n priority) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&n) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = n
}

// rank is the first criterion of priority.
type rank uint8

const (
	// Despawns are first, because a dead object that is still shown misleads most, and the record
	// is tiny.
	rankDespawn rank = iota
	rankOverdue
	rankPending
	rankCopy // second copies only if there is room
)
