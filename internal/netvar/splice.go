package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// A client that may read other fields of some objects than the clients of a run gets that run with
// other records of these objects. Mostly that is one client, which owns something: its run is not
// put together, but names the other one, of which a packet gets all the rest.

// patch is a record of a run that a client gets otherwise.
type patch struct {
	from, to uint16 // where it lies in the other run, in bits
	size     uint16 // of what takes its place, in bits
}

// patchFrom makes a run of another one, which must stay while the run is in use, and of what the
// client gets otherwise of a set of its slots.
func (c *cutter) patchFrom(r, from *run, mask, other uint64, most int) {
	w := c.p.w
	b := &w.runBits
	b.Reset(b.Bytes()[:0])
	r.kinds, r.classes, r.whole = from.kinds, from.classes, from
	size := int(from.size)
	for ; other != 0; other &= other - 1 {
		below := other&-other - 1
		slot, i := r.first&^63+bits.TrailingZeros64(other), bits.OnesCount64(mask&below)
		x, start := context{tick: w.tick, prev: -1}, 0
		if i > 0 {
			start = int(from.ends[i-1])
			x.prev = r.first&^63 + bits.Len64(mask&below) - 1
		}
		before := b.Len()
		// The versions are there, since the other run was made of them.
		one := w.residual(w.slots[slot], c.origin.basis(c.p.views.withheld(slot)))
		x.putNext(b, w.slots[slot], one.basis)
		b.PutBits(w.bitsOf(one))
		p := patch{uint16(start), from.ends[i], uint16(b.Len() - before)}
		r.patches = append(r.patches, p)
		r.addBits(uint32(w.slots[slot].class.index), uint32(p.size)-uint32(p.to-p.from))
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

// room returns the bits of a run with what finish has left behind them, so that the last of them
// are written as fast as all others.
func (r *run) room() []byte { return r.bits[:cap(r.bits)] }

// splice makes a run that others can be made of out of another one.
func (c *cutter) splice(r, from *run, mask, other uint64, most int) {
	if c.patchFrom(r, from, mask, other, most); r.size == 0 {
		return
	}
	b := &c.p.w.runBits
	b.Reset(b.Bytes()[:0])
	r.put(b)
	r.ends = append(r.ends, from.ends...)
	for _, p := range r.patches {
		for i := range r.ends {
			if from.ends[i] >= p.to {
				r.ends[i] += p.size - (p.to - p.from)
			}
		}
	}
	r.whole, r.patches, r.bits = nil, r.patches[:0], r.bits[:0]
	r.finish(b)
}

// others returns which of some of 64 slots the clients of a run are withheld other rules of than
// this one.
func (s *views) others(k int, key *runKey) (slots uint64) {
	same := uint64(0)
	for _, m := range key.views {
		slots |= m.slots
	}
	for _, m := range s.block(k) {
		slots |= m.slots & key.mask
		for _, theirs := range key.views {
			if theirs.withheld == m.withheld {
				same |= theirs.slots & m.slots
			}
		}
	}
	return slots &^ same
}
