package netvar

import "math/bits"

// bitset is a set of slots. Its methods accept slots beyond its length: they are not in it.
type bitset []uint64

func (b *bitset) set(i int) {
	for len(*b) <= i>>6 {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b bitset) unset(i int) {
	if i>>6 < len(b) {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// add adds the 64 slots of block k that are set in word.
func (b *bitset) add(k int, word uint64) {
	for len(*b) <= k {
		*b = append(*b, 0)
	}
	(*b)[k] |= word
}

// remove removes the slots of block k that are set in word.
func (b bitset) remove(k int, word uint64) {
	if k < len(b) {
		b[k] &^= word
	}
}

// word returns the members of block k, the slots from 64·k on, one per bit.
func (b bitset) word(k int) uint64 {
	if k < len(b) {
		return b[k]
	}
	return 0
}

func (b bitset) has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 != 0 }

// next returns the first member that is at least i, or -1.
func (b bitset) next(i int) int {
	for k := i >> 6; k < len(b); k++ {
		w := b[k]
		if k == i>>6 {
			w &= ^uint64(0) << (i & 63)
		}
		if w != 0 {
			return k<<6 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

func (b bitset) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// or adds the members of o.
func (b *bitset) or(o bitset) {
	for len(*b) < len(o) {
		*b = append(*b, 0)
	}
	for k, w := range o {
		(*b)[k] |= w
	}
}

// orBut adds the members of o that are not in but.
func (b *bitset) orBut(o, but bitset) {
	for len(*b) < len(o) {
		*b = append(*b, 0)
	}
	for k, w := range o {
		if k < len(but) {
			w &^= but[k]
		}
		(*b)[k] |= w
	}
}

// subBut removes the members of o that are not in but.
func (b bitset) subBut(o, but bitset) {
	for k := range min(len(b), len(o)) {
		w := o[k]
		if k < len(but) {
			w &^= but[k]
		}
		b[k] &^= w
	}
}

// sub removes the members of o.
func (b bitset) sub(o bitset) {
	for k := range min(len(b), len(o)) {
		b[k] &^= o[k]
	}
}
