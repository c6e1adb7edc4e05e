package codec

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// LeafName returns the path of leaf i within the struct, such as Pos.X.
func (p *Plan) LeafName(i int) string { return p.leaves[i].name }

// AddSizes adds to sizes the bits that PutDelta writes for each leaf, times a factor: sizes[0] is
// the caller's word, sizes[1+i] leaf i. The writer is scratch.
func (p *Plan) AddSizes(sizes []uint64, times uint64, w *wire.BitWriter, v, base *Values, t *Trend) {
	p.putDelta(w, v, base, t, sizes, times)
}

// MaxDelta returns the largest number of bits of a delta, and the name of the field with the
// largest part.
func (p *Plan) MaxDelta() (size int, largest string) {
	size = 1 + 1 + len(p.leaves) + (1+len(p.leaves)+maskGroup-1)/maskGroup + wire.MaxLenBits(64)
	return p.sum(size, 1<<30, (*leaf).maxDelta)
}

// maxDelta returns the largest number of bits of one leaf.
func (l *leaf) maxDelta() int {
	switch {
	case l.kind.Blob():
		n := min(l.maxSize(), 1<<26) // far above any message, and an int may have 32 bits
		return wire.MaxLenBits(bits.Len(uint(n))) + 8*n
	case l.kind == Quat:
		return 3 + max(3*l.max+2, 3*wire.MaxRiceBits(l.max+2))
	case l.kind == RefKind:
		return 1 + wire.MaxRiceBits(32) + wire.MaxLenBits(32)
	case l.kind == Bool:
		return 0
	case l.kind == Float32 || l.kind == Float64:
		return 1 + l.floatBits()
	default: // a distance has one bit more than the field, and its zigzag form another one
		n := min(bits.Len64(l.span)+2, 64)
		return max(wire.MaxLenBits(n), wire.MaxRiceBits(n))
	}
}
