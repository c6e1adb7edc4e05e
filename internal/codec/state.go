package codec

import (
	"bytes"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// Values is one captured state: one word for each number, and the wire bytes of every other leaf.
// It shares no memory with the captured struct.
type Values struct {
	Words []uint64 // at least Words() of the plan; a caller may append more
	Blobs [][]byte // Blobs() of the plan
}

// Words returns the number of words of a value.
func (p *Plan) Words() int { return p.words }

// Blobs returns the number of blobs of a value.
func (p *Plan) Blobs() int { return p.blobs }

// Leaves returns the number of values that change separately: bits of the changed-field mask.
func (p *Plan) Leaves() int { return len(p.leaves) }

// Capture reads the struct at v into to, reusing its memory, in wire precision: Restore then
// returns the value that every reader gets. Capture returns the number of values that it cut or
// clamped to fit.
func (p *Plan) Capture(v unsafe.Pointer, to *Values) (clamped int) {
	for i := range p.leaves {
		l := &p.leaves[i]
		if l.absent {
			l.captureZero(to)
			continue
		}
		if !l.kind.Blob() {
			w, c := l.load(v)
			to.Words[l.pos] = w
			clamped += c
			continue
		}
		var rep report
		to.Blobs[l.pos] = l.appendBlob(to.Blobs[l.pos][:0], v, &rep)
		clamped += rep.clamped
	}
	return clamped
}

// Misfits names the fields of the struct at v that Capture must cut or clamp, in their order.
func (p *Plan) Misfits(v unsafe.Pointer) (names []string) {
	for i := range p.leaves {
		l := &p.leaves[i]
		var rep report
		switch {
		case l.absent:
		case l.kind.Blob():
			l.appendBlob(nil, v, &rep)
		default:
			_, rep.clamped = l.load(v)
		}
		if rep.clamped > 0 {
			names = append(names, l.name)
		}
	}
	return names
}

// Refuse names the fields of the struct at v that Capture had to cut or clamp, and, unless last is
// nil, resets those fields of now to last.
func (p *Plan) Refuse(v unsafe.Pointer, now, last *Values) (names []string) {
	names = p.Misfits(v)
	for i := range p.leaves {
		if l := &p.leaves[i]; last != nil && slices.Contains(names, l.name) {
			l.keep(now, last)
		}
	}
	return names
}

// keep copies the leaf of last to now, into the memory of now.
func (l *leaf) keep(now, last *Values) {
	if l.kind.Blob() {
		now.Blobs[l.pos] = append(now.Blobs[l.pos][:0], last.Blobs[l.pos]...)
	} else {
		now.Words[l.pos] = last.Words[l.pos]
	}
}

// Differs reports whether two values differ in leaf i.
func (p *Plan) Differs(i int, a, b *Values) bool { return !p.leaves[i].equal(a, b) }

func (l *leaf) captureZero(to *Values) {
	if l.kind.Blob() {
		to.Blobs[l.pos] = l.appendZero(to.Blobs[l.pos][:0])
	} else {
		to.Words[l.pos] = l.zero()
	}
}

// Restore writes from into the struct at v. If old is not nil, it is the current value of v, and
// unchanged leaves are skipped: usually few leaves change, and a frequent change of a number then
// makes no garbage.
func (p *Plan) Restore(v unsafe.Pointer, from, old *Values) {
	p.RestoreNumbers(v, from, old)
	for i, b := range from.Blobs[:p.blobs] {
		if old == nil || !bytes.Equal(b, old.Blobs[i]) {
			if l := &p.leaves[p.byBlob[i]]; !l.absent {
				r := wire.NewReader(b)
				l.storeBlob(v, &r)
			}
		}
	}
}

// RestoreNumbers is Restore for leaves that are numbers. It does not allocate.
func (p *Plan) RestoreNumbers(v unsafe.Pointer, from, old *Values) {
	for i, w := range from.Words[:p.words] {
		if old == nil || w != old.Words[i] {
			if l := &p.leaves[p.byWord[i]]; !l.absent {
				l.store(v, w)
			}
		}
	}
}

// Mark compares two values, sets ticks[i] = tick for each leaf i that differs, and reports whether
// any does.
func (p *Plan) Mark(ticks []uint64, tick uint64, a, b *Values) (changed bool) {
	for i := range p.leaves {
		if !p.leaves[i].equal(a, b) {
			ticks[i] = tick
			changed = true
		}
	}
	return changed
}

func (l *leaf) equal(a, b *Values) bool {
	if l.kind.Blob() {
		return bytes.Equal(a.Blobs[l.pos], b.Blobs[l.pos])
	}
	return a.Words[l.pos] == b.Words[l.pos]
}

// Leaf returns leaf i: a number or bytes.
func (p *Plan) Leaf(i int, v *Values) (word uint64, blob []byte) {
	l := &p.leaves[i]
	if l.kind.Blob() {
		return 0, v.Blobs[l.pos]
	}
	return v.Words[l.pos], nil
}

// Shows reports whether two values differ in a leaf for which the struct of this side has a field.
// In a plan of Compile every leaf has a field; see Bind.
func (p *Plan) Shows(a, b *Values) bool {
	for i := range p.leaves {
		if l := &p.leaves[i]; !l.absent && !l.equal(a, b) {
			return true
		}
	}
	return false
}

// Equal compares two values.
func (p *Plan) Equal(a, b *Values) bool {
	return slices.Equal(a.Words[:p.words], b.Words[:p.words]) && slices.EqualFunc(a.Blobs[:p.blobs], b.Blobs[:p.blobs], bytes.Equal)
}

// AppendValues writes all of v in the form of a message.
func (p *Plan) AppendValues(dst []byte, v *Values) []byte { return p.AppendSome(dst, v, nil) }

func (l *leaf) readBlob(r *wire.Reader) []byte {
	off := r.Offset()
	l.skipBlob(r)
	return r.Since(off)
}

// Clone makes the struct at dst a copy of the struct at src that shares no slice with it.
func (p *Plan) Clone(dst, src unsafe.Pointer) {
	reflect.NewAt(p.typ, dst).Elem().Set(reflect.NewAt(p.typ, src).Elem())
	if p.local {
		p.cloneBlobs(dst)
	}
}

func (p *Plan) cloneBlobs(v unsafe.Pointer) {
	for i := range p.leaves {
		if l := &p.leaves[i]; !l.absent && l.kind.Blob() {
			l.cloneBlob(v)
		}
	}
}

// MaxSize returns the largest number of bytes of a value, whole or as a difference, and the name of
// the field with the largest part.
func (p *Plan) MaxSize() (size int, largest string) {
	return p.sum(0, 1<<30, (*leaf).maxSize)
}

// sum adds of(leaf) of each leaf to size. It also returns the name of the largest leaf. It stops
// at a bound far above every limit, so that nested limits do not overflow.
func (p *Plan) sum(size, bound int, of func(*leaf) int) (_ int, largest string) {
	most := -1
	for i := range p.leaves {
		n := of(&p.leaves[i])
		size = min(size+n, bound)
		if n > most {
			most, largest = n, p.leaves[i].name
		}
	}
	return size, largest
}

func (l *leaf) maxSize() int {
	switch l.kind {
	case String, Bytes:
		return wire.UvarintLen(uint64(l.max)) + l.max
	case ByteArray:
		return l.max
	case Proto:
		return wire.UvarintLen(uint64(l.max)+1) + l.max
	case Slice, Map: // A difference may be one byte and the whole value.
		n, _ := l.elem.MaxSize()
		return min(1+wire.UvarintLen(uint64(l.max))+int(min(int64(l.max)*int64(n), 1<<30)), 1<<30)
	default:
		return max(l.maxWire(), l.maxDiff())
	}
}

// Shown reports whether the struct of this side has a field for leaf i: see Bind.
func (p *Plan) Shown(i int) bool { return !p.leaves[i].absent }
