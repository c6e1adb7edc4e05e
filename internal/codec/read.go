package codec

// Who may read a field is said in its tag. To the codec the rules are names: whoever sends
// values asks which leaf has which, and leaves out what a reader may not have.

// ReadAll is the rule of what everybody may read; it takes a field out of the rule of the
// struct that it lies in.
const ReadAll = "all"

// readBy gives the parts of n that become leaves a rule, unless they have one of their own.
func (n *node) readBy(rule string) {
	switch {
	case rule == "":
	case n.kind == Struct: // its fields have got it from their tags, or from around them
	case n.kind == Array:
		n.elem.readBy(rule)
	case rule == ReadAll:
		n.read = ""
	default:
		n.read = rule
	}
}

// ReadRule returns the rule by which leaf i is read, or "" if everybody may.
func (p *Plan) ReadRule(i int) string { return p.leaves[i].read }

// Zero makes a value whose leaves are all as where a field is missing.
func (p *Plan) Zero() Values {
	v := Values{Words: make([]uint64, p.words), Blobs: make([][]byte, p.blobs)}
	for i := range p.leaves {
		p.leaves[i].captureZero(&v)
	}
	return v
}

// has tells whether leaf i is in a mask of ⌈Leaves ÷ 8⌉ bytes.
func has(mask []byte, i int) bool { return mask[i>>3]>>(i&7)&1 != 0 }

// Withhold sets some leaves of v to those of zero.
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

// AppendSome is AppendValues for the leaves in the mask alone; no mask is all of them.
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

// Same tells whether leaf i is the same in two values.
func (p *Plan) Same(i int, a, b *Values) bool { return p.leaves[i].equal(a, b) }
