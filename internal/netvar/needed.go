package netvar

// needed is a heap of what competes for a snapshot, the most needed on top: of many candidates few
// go, and only these are put in order.
type needed []need

// need is what decides when the turn of a candidate comes; see weigh.
type need struct {
	amount uint64
	index  uint32 // in the list of candidates, which is in the order of slots
	rank   rank
	large  bool
}

// before reports whether n is needed more than m.
func (n *need) before(m *need) bool {
	switch {
	case n.rank != m.rank:
		return n.rank < m.rank
	case n.amount != m.amount:
		return n.amount > m.amount
	}
	return n.index < m.index
}

// order makes a heap of any list.
func (h needed) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i, h[i])
	}
}

// pop takes out the most needed, which stands right behind the rest then.
func (h *needed) pop() need {
	all := *h
	last := len(all) - 1
	top, n := all[0], all[last]
	if *h = all[:last]; last > 0 {
		h.sink(0, n)
	}
	all[last] = top
	return top
}

// sink puts n at i or below, where it belongs.
func (h needed) sink(i int, n need) {
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
