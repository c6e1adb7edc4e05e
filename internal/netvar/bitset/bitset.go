// Package bitset has sets of small numbers: the slots of objects, in blocks of 64.
package bitset

import "math/bits"

// Set is a set of slots. Its methods accept slots beyond its length, which are never members.
type Set []uint64

func (b *Set) Add(i int) {
	for len(*b) <= i>>6 {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b Set) Remove(i int) {
	if i>>6 < len(b) {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// AddWord adds the 64 slots of block k that are set in word.
func (b *Set) AddWord(k int, word uint64) {
	for len(*b) <= k {
		*b = append(*b, 0)
	}
	(*b)[k] |= word
}

// RemoveWord removes the slots of block k that are set in word.
func (b Set) RemoveWord(k int, word uint64) {
	if k < len(b) {
		b[k] &^= word
	}
}

// Word returns the members of block k, the slots from 64·k on, one per bit.
func (b Set) Word(k int) uint64 {
	if k < len(b) {
		return b[k]
	}
	return 0
}

func (b Set) Has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 != 0 }

// Next returns the first member that is at least i, or -1.
func (b Set) Next(i int) int {
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

func (b Set) Count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Or adds the members of o.
func (b *Set) Or(o Set) {
	for len(*b) < len(o) {
		*b = append(*b, 0)
	}
	for k, w := range o {
		(*b)[k] |= w
	}
}

// OrBut adds the members of o that are not in but.
func (b *Set) OrBut(o, but Set) {
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

// SubBut removes the members of o that are not in but.
func (b Set) SubBut(o, but Set) {
	for k := range min(len(b), len(o)) {
		w := o[k]
		if k < len(but) {
			w &^= but[k]
		}
		b[k] &^= w
	}
}

// Sub removes the members of o.
func (b Set) Sub(o Set) {
	for k := range min(len(b), len(o)) {
		b[k] &^= o[k]
	}
}

// Some reports whether the set has members.
func (b Set) Some() bool {
	for _, word := range b {
		if word != 0 {
			return true
		}
	}
	return false
}
