package codec

import (
	"bytes"
	"errors"

	"github.com/netloop/netloop/internal/wire"
)

// The difference of a slice or a map is a script that builds the new value from the baseline's
// elements, from the first to the last:
//
//	difference = step* 0               the remaining elements of the baseline are kept
//	           | 1 value               the whole new value: a writer selects the shorter form
//	step       = n << 2 | op, then
//	  0 keep                           the next n elements are kept
//	  1 drop                           the next n elements are removed
//	  2 edit   (mask difference*)^n    the next n elements change: a bit per leaf, none if
//	                                   there is only one
//	  3 insert element^n               n new elements
//
// Only the writer matches elements with elements of the baseline: by index, by key, or in a map by
// the order of keys. A reader does not depend on the match.

const (
	opKeep = iota
	opDrop
	opEdit
	opInsert

	scriptEnd   = 0
	scriptWhole = 1
	// maxRun is the largest number of edits or inserts under one head. With it the head is one
	// byte, which can be reserved before they are counted.
	maxRun = 31
	// maxLookAhead is the number of elements that a writer searches for a key that is not at its
	// place. An element that moved farther is sent again: this limits the time, not the format.
	maxLookAhead = 32
)

// Errors of a reader.
var (
	// ErrScript is the error of a difference that does not fit its baseline.
	ErrScript = errors.New("codec: a difference that does not fit its baseline")
	// ErrOrder is the error of a map without ascending keys.
	ErrOrder = errors.New("codec: the keys of a map do not rise")
)

// appendBlobDiff writes the difference of a blob from base; the two blobs differ.
func (l *leaf) appendBlobDiff(dst []byte, now, base []byte) []byte {
	if !l.kind.list() {
		return append(dst, now...)
	}
	start := len(dst)
	if dst = l.appendScript(dst, now, base); len(dst)-start <= len(now) {
		return dst
	}
	return append(append(dst[:start], scriptWhole), now...)
}

// script is a difference being written.
type script struct {
	dst []byte
	op  int
	n   uint64 // number of elements of the current step; 0: there is none
	at  int    // the offset of the head of an edit or insert
}

// step adds an element to the current step, or starts another one.
func (s *script) step(op int) {
	if s.n > 0 && s.op == op && (op < opEdit || s.n < maxRun) {
		s.n++
		return
	}
	s.finish()
	s.op, s.n = op, 1
	if op >= opEdit {
		s.at = len(s.dst)
		s.dst = append(s.dst, 0)
	}
}

// finish writes the head of the current step.
func (s *script) finish() {
	head := s.n<<2 | uint64(s.op)
	switch {
	case s.n == 0:
	case s.op >= opEdit:
		s.dst[s.at] = byte(head)
	default:
		s.dst = wire.AppendUvarint(s.dst, head)
	}
	s.n = 0
}

// count reads the number of elements; an empty blob has none.
func (l *leaf) count(r *wire.Reader) int {
	if r.Len() == 0 {
		return 0
	}
	return r.Count(l.max, l.elem.least)
}

// span skips an element and returns its bytes.
func (p *Plan) span(r *wire.Reader) []byte {
	off := r.Offset()
	p.skip(r)
	return r.Since(off)
}

// appendScript writes the steps from base to now. It stops early when they are longer than now,
// because the caller then writes the whole value.
func (l *leaf) appendScript(dst []byte, now, base []byte) []byte {
	a, b := wire.NewReader(now), wire.NewReader(base)
	na, nb := l.count(&a), l.count(&b)
	s := script{dst: dst}
	for na+nb > 0 && len(s.dst)-len(dst) <= len(now) {
		switch op := l.next(a, b, na, nb); op {
		case opInsert:
			s.step(opInsert)
			s.dst = append(s.dst, l.elem.span(&a)...)
			na--
		case opDrop:
			s.step(opDrop)
			l.elem.skip(&b)
			nb--
		default:
			x, y := a, b
			if bytes.Equal(l.elem.span(&a), l.elem.span(&b)) {
				s.step(opKeep)
			} else {
				s.step(opEdit)
				s.dst = l.elem.appendEdit(s.dst, &x, &y)
			}
			na--
			nb--
		}
	}
	if s.op != opKeep {
		s.finish()
	}
	return append(s.dst, scriptEnd)
}

// next compares the elements at the two readers; na and nb are the numbers of remaining elements.
// It returns opInsert if the element of now is new, opDrop if the element of base was removed, or
// opKeep if both are the same element, changed or not.
func (l *leaf) next(now, base wire.Reader, na, nb int) int {
	switch {
	case nb == 0:
		return opInsert
	case na == 0:
		return opDrop
	case l.key < 0:
		return opKeep
	}
	c := l.compareKeys(now, base)
	switch {
	case c == 0:
		return opKeep
	case l.kind == Map && c < 0:
		return opInsert
	case l.kind == Map:
		return opDrop
	}
	back := l.lookAhead(now, base, nb) // number of elements to drop in order to keep this one
	if back < 0 {
		return opInsert
	}
	if ahead := l.lookAhead(base, now, na); ahead < 0 || back <= ahead {
		return opDrop
	}
	return opInsert
}

// lookAhead returns the number of elements at in before the element with the same key as the
// element at key, or -1 if none of the first maxLookAhead elements has that key. n is the number of
// elements at in.
func (l *leaf) lookAhead(key, in wire.Reader, n int) int {
	for i := range min(n, maxLookAhead) {
		if l.compareKeys(key, in) == 0 {
			return i
		}
		l.elem.skip(&in)
	}
	return -1
}

// editMask returns the number of bytes of the mask of an edit.
func (p *Plan) editMask() int {
	if len(p.leaves) == 1 {
		return 0
	}
	return (len(p.leaves) + 7) / 8
}

var noMask [(MaxLeaves + 7) / 8]byte

// appendEdit writes the difference of the element at now from the element at base. The two differ.
func (p *Plan) appendEdit(dst []byte, now, base *wire.Reader) []byte {
	at, n := len(dst), p.editMask()
	dst = append(dst, noMask[:n]...)
	for i := range p.leaves {
		l := &p.leaves[i]
		if l.kind.Blob() {
			a, b := l.readBlob(now), l.readBlob(base)
			if bytes.Equal(a, b) {
				continue
			}
			dst = l.appendBlobDiff(dst, a, b)
		} else {
			a, b := l.readWord(now), l.readWord(base)
			if a == b {
				continue
			}
			dst = l.appendDiff(dst, a, b)
		}
		if n > 0 {
			dst[at+i>>3] |= 1 << (i & 7)
		}
	}
	return dst
}

// readBlobDiff reads the output of appendBlobDiff and validates it completely.
func (l *leaf) readBlobDiff(r *wire.Reader, base []byte) []byte {
	if !l.kind.list() {
		return l.readBlob(r)
	}
	head := r.Uvarint()
	if head == scriptWhole {
		return l.readBlob(r)
	}
	const room = 3 // for the count, which is written first but computed last
	b := wire.NewReader(base)
	left, n := l.count(&b), 0
	out := make([]byte, room, room+len(base)+64)
	for ; head != scriptEnd; head = r.Uvarint() {
		k, op := head>>2, head&3
		if k == 0 || op != opInsert && k > uint64(left) || op == opInsert && k > uint64(l.max) {
			r.Fail(ErrScript)
			return nil
		}
		if op != opInsert {
			left -= int(k)
		}
		if op != opDrop {
			n += int(k)
		}
		if out = l.readStep(out, r, &b, int(k), op); r.Err() != nil || n > l.max {
			break
		}
	}
	if n += left; n > l.max {
		r.Fail(wire.ErrLimit)
	}
	if err := b.Err(); err != nil {
		r.Fail(err)
	}
	if r.Err() != nil {
		return nil
	}
	out = append(out, base[b.Offset():]...)
	first := room - wire.UvarintLen(uint64(n))
	wire.AppendUvarint(out[:first], uint64(n))
	out = out[first:]
	if l.kind == Map {
		sorted := wire.NewReader(out)
		l.skipMap(&sorted)
		if err := sorted.Err(); err != nil {
			r.Fail(err)
			return nil
		}
	}
	return out
}

// readStep performs one step with k elements.
func (l *leaf) readStep(out []byte, r, base *wire.Reader, k int, op uint64) []byte {
	switch op {
	case opEdit:
		for i := 0; i < k && r.Err() == nil; i++ {
			out = l.elem.readEdit(out, r, base)
		}
		return out
	case opInsert:
		base = r
	}
	off := base.Offset()
	for i := 0; i < k && base.Err() == nil; i++ {
		l.elem.skip(base)
	}
	if op == opDrop {
		return out
	}
	return append(out, base.Since(off)...)
}

// readEdit edits one element of the baseline.
func (p *Plan) readEdit(out []byte, r, base *wire.Reader) []byte {
	n := p.editMask()
	mask := r.Bytes(n)
	if r.Err() != nil {
		return out
	}
	if used := len(p.leaves) & 7; n > 0 && used != 0 && mask[n-1]>>used != 0 {
		r.Fail(ErrScript)
		return out
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		off := base.Offset()
		switch {
		case n > 0 && mask[i>>3]>>(i&7)&1 == 0:
			l.skip(base)
			out = append(out, base.Since(off)...)
		case l.kind.Blob():
			out = append(out, l.readBlobDiff(r, l.readBlob(base))...)
		default:
			out = l.appendWord(out, l.readDiff(r, l.readWord(base)))
		}
	}
	return out
}
