package state

import "slices"

// owners maps each owner to the sorted slots of its living objects. It has lists and not bitsets,
// so that a server cannot make a client allocate more memory than its objects need: 65 536 owners
// with a bitset each would take hundreds of megabytes.
type owners map[uint64][]uint32

func (b owners) add(owner uint64, slot int) {
	if owner == 0 {
		return
	}
	list := b[owner]
	i, _ := slices.BinarySearch(list, uint32(slot))
	b[owner] = slices.Insert(list, i, uint32(slot))
}

func (b owners) remove(owner uint64, slot int) {
	list := b[owner]
	i, ok := slices.BinarySearch(list, uint32(slot))
	switch {
	case !ok:
	case len(list) == 1:
		delete(b, owner)
	default:
		b[owner] = slices.Delete(list, i, i+1)
	}
}

// next returns the owner's first slot not below slot, or -1.
func (b owners) next(owner uint64, slot int) int {
	list := b[owner]
	if i, _ := slices.BinarySearch(list, uint32(slot)); i < len(list) {
		return int(list[i])
	}
	return -1
}
