package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// The clients of a cached run and another client may have the right to read different fields of
// some objects. If no further client reads these fields, such as those of a player's own objects,
// the run of the other client refers to the cached run, and has patches for these objects.

// patch replaces one record of the cached run to which run.whole points.
type patch struct {
	from, to uint16 // range in the other run, in bits
	size     uint16 // of the replacement, in bits
}

// patchFrom makes r the run from with new records for the slots in other. r refers to the bits of
// from, which must not change while r is in use. If r exceeds most bits, or the world has dropped a
// version that this client needs, its size remains 0.
func (c *cutter) patchFrom(r, from *run, mask, other uint64, most int) {
	w := c.p.w
	b := &w.runBits
	b.Reset(b.Bytes()[:0])
	r.kinds, r.classes, r.whole = from.kinds, from.classes, from
	size := int(from.size)
	for ; other != 0; other &= other - 1 {
		below := other&-other - 1
		slot, i := r.first&^63+bits.TrailingZeros64(other), bits.OnesCount64(mask&below)
		x, start := packet.Context{Tick: w.tick, Prev: -1}, 0
		if i > 0 {
			start = int(from.ends[i-1])
			x.Prev = r.first&^63 + bits.Len64(mask&below) - 1
		}
		before := b.Len()
		one := w.residual(w.objects.Slots[slot], basisOf(c.origin, c.p.Withheld(slot)))
		if one == nil { // the clients of from see no change since, so they have a version
			return
		}
		putNext(&x, b, w.objects.Slots[slot], one.basis)
		b.PutBits(w.bitsOf(one))
		p := patch{uint16(start), from.ends[i], uint16(b.Len() - before)}
		r.patches = append(r.patches, p)
		r.addBits(uint32(w.objects.Slots[slot].WireClass().Index()), uint32(p.size)-uint32(p.to-p.from))
		size += int(p.size) - int(p.to-p.from)
	}
	if size <= most {
		r.finish(b)
		r.size = uint32(size)
	}
}

// put writes the bits of a run.
func (r *run) put(b *wire.BitWriter) {
	if r.whole == nil {
		b.PutBits(r.room(), int(r.size))
		return
	}
	done, at := 0, 0
	for _, p := range r.patches {
		b.PutRange(r.whole.room(), done, int(p.from))
		b.PutRange(r.room(), at, at+int(p.size))
		done, at = int(p.to), at+int(p.size)
	}
	b.PutRange(r.whole.room(), done, int(r.whole.size))
}

// room returns the bits of a run with the spare bytes behind them, so that the last bits are
// written as fast as the others.
func (r *run) room() []byte { return r.bits[:cap(r.bits)] }
