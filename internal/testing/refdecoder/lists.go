package refdecoder

import (
	"bytes"
	"cmp"
	"slices"
)

// list reads the elements of a slice, map or set.
func (r *byteReader) list(l *Leaf) (v Value) {
	for range l.limited(r.uvarint()) {
		v.Elements = append(v.Elements, r.fields(l.Element))
	}
	l.checkKeys(v)
	return v
}

// checkKeys refuses keys of a map or set that do not ascend.
func (l *Leaf) checkKeys(v Value) {
	if l.Kind != kindMap {
		return
	}
	for i := 1; i < len(v.Elements); i++ {
		if l.Element[0].compareKeys(v.Elements[i-1][0], v.Elements[i][0]) >= 0 {
			refuse("%s: keys that do not rise", l.Name)
		}
	}
}

func (l *Leaf) compareKeys(a, b Value) int {
	switch l.Kind {
	case kindString:
		return bytes.Compare(a.Bytes, b.Bytes)
	case kindInt8, kindInt16, kindInt32, kindInt64:
		return cmp.Compare(int64(a.Number), int64(b.Number))
	}
	return cmp.Compare(a.Number, b.Number)
}

// listDifference reads the edits of a list, and returns the new elements.
func (r *byteReader) listDifference(l *Leaf, base Value) (v Value) {
	old := base.Elements
	next := func(n uint64) [][]Value {
		if n > uint64(len(old)) {
			refuse("%s: a step beyond the baseline", l.Name)
		}
		some := old[:n]
		old = old[n:]
		return some
	}
	for first := true; ; first = false {
		head := r.uvarint()
		if head == 0 {
			v.Elements = append(v.Elements, old...)
			break
		}
		if head == 1 && first {
			return r.list(l)
		}
		n := head >> 2
		if n == 0 {
			refuse("%s: a step of nothing", l.Name)
		}
		switch head & 3 {
		case 0: // keep
			v.Elements = append(v.Elements, next(n)...)
		case 1: // drop
			next(n)
		case 2: // edit
			for _, e := range next(n) {
				v.Elements = append(v.Elements, r.editElement(l.Element, e))
			}
		case 3: // insert
			for range l.limited(n) {
				v.Elements = append(v.Elements, r.fields(l.Element))
			}
		}
	}
	l.limited(uint64(len(v.Elements)))
	l.checkKeys(v)
	return v
}

// editElement reads the difference of one element.
func (r *byteReader) editElement(leaves []Leaf, old []Value) []Value {
	mask := []byte{1}
	if len(leaves) > 1 {
		mask = r.bytes(uint64(len(leaves)+7) / 8)
	}
	e := slices.Clone(old)
	for i := range 8 * len(mask) {
		if mask[i/8]>>(i%8)&1 == 0 {
			continue
		}
		if i >= len(leaves) {
			refuse("a bit beyond the last leaf")
		}
		e[i] = r.difference(&leaves[i], old[i])
	}
	return e
}

// difference reads the difference of one leaf of an element.
func (r *byteReader) difference(l *Leaf, old Value) Value {
	switch {
	case l.Kind == kindBool:
		return Value{Number: 1 - old.Number}
	case l.Kind == kindQuat:
		return l.number(l.wordDifference(old.Number, r.uvarint()))
	case l.Kind == kindSlice || l.Kind == kindMap:
		return r.listDifference(l, old)
	case l.float() && l.Kind == kindFloat32:
		d := r.zigzag()
		if d != int64(int32(d)) {
			refuse("%s: a difference of more than 32 bits", l.Name)
		}
		return l.number(uint64(uint32(old.Number) + uint32(d)))
	case l.isNumber():
		return l.number(old.Number + uint64(r.zigzag()))
	}
	return r.value(l)
}

// isNumber reports whether the leaf is a number: an integer, a reference, an instant or a float.
func (l *Leaf) isNumber() bool {
	return l.Kind >= kindInt8 && l.Kind <= kindInstant || l.ranged()
}
