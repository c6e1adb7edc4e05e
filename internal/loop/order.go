package loop

import "cmp"

// The bands of a stage in their order.
const (
	placeHead = iota
	placeBody
	placeTail
)

// key orders a system within a stage, most significant field first.
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

// position is the sort key of a system or group within its group, in one list: its own key, or the
// position that its anchors require.
type position struct {
	key
	turn int32 // order among equal keys; 0 without anchors
}

func (a position) compare(b position) int {
	return cmp.Or(a.key.compare(b.key), cmp.Compare(a.turn, b.turn))
}

// position returns the position in list k.
func (s *System[C]) position(k int) position {
	if s.bound != nil && s.bound[k].turn != 0 {
		return s.bound[k]
	}
	return position{key: s.own}
}

// compare orders two systems in list k. Systems in different groups have the order of their groups.
func compare[C any](a, b *System[C], k int) int {
	if a.group != b.group {
		a, b = beside(a, b, (*System[C]).inEffect)
	}
	return a.position(k).compare(b.position(k))
}

// inEffect returns the group around the system as of the last settle.
func (s *System[C]) inEffect() *System[C] { return s.group }
