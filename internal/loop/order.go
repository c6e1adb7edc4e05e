package loop

import "cmp"

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

// standing is the place of a system or group among those beside it, in one list:
// its key, or where its anchors let it stand.
type standing struct {
	key
	turn int32 // among those that stand at one key; 0 if no anchor speaks
}

func (a standing) compare(b standing) int {
	return cmp.Or(a.key.compare(b.key), cmp.Compare(a.turn, b.turn))
}

// standing is the one in list k.
func (s *System[C]) standing(k int) standing {
	if s.bound != nil && s.bound[k].turn != 0 {
		return s.bound[k]
	}
	return standing{key: s.own}
}

// compare orders two systems in list k. A group stands among the others as one.
func compare[C any](a, b *System[C], k int) int {
	if a.group != b.group {
		a, b = beside(a, b, (*System[C]).inEffect)
	}
	return a.standing(k).compare(b.standing(k))
}

// inEffect is the group around the system as of the last settle.
func (s *System[C]) inEffect() *System[C] { return s.group }
