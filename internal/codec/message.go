package codec

import (
	"fmt"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// A message consists of its leaves in order, without separators:
//
//	message = leaf*            leaf = the form of its kind (doc.go)
//
// There are no field numbers: the layout is the layout of the writer's struct, or the reader's
// layout, to which Bind has bound the writer's struct.

// Append appends the struct at v, which must be of the plan's type. If a field exceeds its limit,
// the error names the field, and dst is returned unchanged. NaN is written as 0.
func (p *Plan) Append(dst []byte, v unsafe.Pointer) ([]byte, error) {
	if v == nil {
		return dst, errNil
	}
	var rep report
	out := p.append(dst, v, &rep)
	if rep.err != nil {
		return dst, fmt.Errorf("field %s: %w", join(rootName(p.typ), rep.over.name), rep.err)
	}
	if rep.over != nil {
		return dst, fmt.Errorf("field %s: longer than its max of %d; raise max in its tag, or send less", join(rootName(p.typ), rep.over.name), rep.over.max)
	}
	return out, nil
}

func (p *Plan) append(dst []byte, v unsafe.Pointer, rep *report) []byte {
	for i := range p.leaves {
		l := &p.leaves[i]
		if l.absent {
			dst = l.appendZero(dst)
			continue
		}
		if l.kind.Blob() {
			dst = l.appendBlob(dst, v, rep)
			continue
		}
		w, clamped := l.load(v)
		rep.clamped += clamped
		dst = l.appendWord(dst, w)
	}
	return dst
}

// Decode reads a whole message into the struct at v, which must be of the plan's type. After an
// error the struct contains a part of the message, and must be dropped. Local fields are not
// changed. The allocations are limited by the limits of the fields and by the length of b.
func (p *Plan) Decode(b []byte, v unsafe.Pointer) error {
	if v == nil {
		return errNil
	}
	r := wire.NewReader(b)
	p.read(&r, v)
	return r.Done()
}

func (p *Plan) read(r *wire.Reader, v unsafe.Pointer) {
	for i := range p.leaves {
		l := &p.leaves[i]
		switch {
		case l.absent:
			l.skip(r)
		case l.kind.Blob():
			l.storeBlob(v, r)
		default:
			l.store(v, l.readWord(r))
		}
	}
}

func (p *Plan) skip(r *wire.Reader) {
	for i := range p.leaves {
		p.leaves[i].skip(r)
	}
}

// skip skips one leaf and validates it.
func (l *leaf) skip(r *wire.Reader) {
	if l.kind.Blob() {
		l.skipBlob(r)
	} else {
		l.readWord(r)
	}
}

// appendZero writes the zero of a leaf.
func (l *leaf) appendZero(dst []byte) []byte {
	switch {
	case l.kind == ByteArray:
		return append(dst, make([]byte, l.max)...)
	case l.kind.Blob():
		return append(dst, 0) // A length, or a count.
	default:
		return l.appendWord(dst, l.zero())
	}
}
