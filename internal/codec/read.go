package codec

import "github.com/netloop/netloop/internal/wire"

// A field's tag sets the rule by which clients may read it. In the codec these read rules are
// names: the sender looks up the rule of each leaf, and leaves out the values that a reader must
// not get.

// ReadAll is the rule of a field that all clients may read; it exempts a field from the rule of its
// struct.
const ReadAll = "all"

// readBy sets the rule of the parts of n that become leaves, unless they have their own.
func (n *node) readBy(rule string) {
	switch {
	case rule == "":
	case n.kind == Struct: // the fields inside have the rule from their own or outer tags
	case n.kind == Array:
		n.elem.readBy(rule)
	case rule == ReadAll:
		n.read = ""
	default:
		n.read = rule
	}
}

// ReadRule returns the read rule of leaf i, or "" if all clients may read it.
func (p *Plan) ReadRule(i int) string { return p.leaves[i].read }

// Zero returns the value of a struct with all fields missing: each leaf is 0 or empty, or the value
// in its range that is nearest to 0.
func (p *Plan) Zero() Values {
	v := Values{Words: make([]uint64, p.words), Blobs: make([][]byte, p.blobs)}
	for i := range p.leaves {
		p.leaves[i].captureZero(&v)
	}
	return v
}

// has reports whether leaf i is in a mask of ⌈Leaves ÷ 8⌉ bytes.
func has(mask []byte, i int) bool { return mask[i>>3]>>(i&7)&1 != 0 }

// Withhold replaces the given leaves of v by those of zero, such as leaves that a client may not
// read. Blobs are not copied.
func (p *Plan) Withhold(v *Values, leaves []uint16, zero *Values) {
	for _, i := range leaves {
		p.leaves[i].take(v, zero)
	}
}

func (l *leaf) take(v, from *Values) {
	if l.kind.Blob() {
		v.Blobs[l.pos] = from.Blobs[l.pos]
	} else {
		v.Words[l.pos] = from.Words[l.pos]
	}
}

// AppendSome writes the leaves of v that are in the mask, in the form of a message; a nil mask
// selects all leaves.
func (p *Plan) AppendSome(dst []byte, v *Values, mask []byte) []byte {
	for i := range p.leaves {
		switch l := &p.leaves[i]; {
		case mask != nil && !has(mask, i):
		case l.kind.Blob():
			dst = append(dst, v.Blobs[l.pos]...)
		default:
			dst = l.appendWord(dst, v.Words[l.pos])
		}
	}
	return dst
}

// ReadSome reads the output of AppendSome into v, and validates it completely. Leaves that are not
// in the mask are not changed. The blobs alias the input.
func (p *Plan) ReadSome(r *wire.Reader, v *Values, mask []byte) {
	for i := range p.leaves {
		switch l := &p.leaves[i]; {
		case mask != nil && !has(mask, i):
		case l.kind.Blob():
			v.Blobs[l.pos] = l.readBlob(r)
		default:
			v.Words[l.pos] = l.readWord(r)
		}
	}
}

// Same reports whether leaf i is the same in two values.
func (p *Plan) Same(i int, a, b *Values) bool { return p.leaves[i].equal(a, b) }
