package codec

// LeafName is the name of leaf i within the struct, such as Pos.X.
func (p *Plan) LeafName(i int) string { return p.leaves[i].name }

// AddSizes adds to sizes, leaf by leaf, times the bytes that AppendDiff writes for v against
// base, or AppendValues if base is nil. It returns the scratch that it was given, grown.
func (p *Plan) AddSizes(sizes []uint64, times uint64, v, base *Values, scratch []byte) []byte {
	for i := range p.leaves {
		l := &p.leaves[i]
		scratch = scratch[:0]
		switch {
		case base != nil && l.equal(v, base):
			continue
		case l.kind.Blob() && base == nil:
			sizes[i] += times * uint64(len(v.Blobs[l.pos]))
			continue
		case l.kind.Blob():
			scratch = l.appendBlobDiff(scratch, v.Blobs[l.pos], base.Blobs[l.pos])
		case base == nil:
			scratch = l.appendWord(scratch, v.Words[l.pos])
		default:
			scratch = l.appendDiff(scratch, v.Words[l.pos], base.Words[l.pos])
		}
		sizes[i] += times * uint64(len(scratch))
	}
	return scratch
}
