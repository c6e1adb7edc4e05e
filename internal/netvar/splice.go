package netvar

import (
	"encoding/binary"
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// splice makes a run out of another one of the same slots. It copies the records of which the
// client may read the same as those of the other run, and encodes the rest.
func (c *cutter) splice(r, from *run, key *runKey, most int) {
	w := c.p.w
	b, x := &w.runBits, context{tick: w.tick, prev: -1}
	b.Reset(b.Bytes()[:0])
	r.kinds, r.classes = from.kinds, from.classes
	done, start := 0, 0
	for i, m := 0, key.mask; m != 0; i, m = i+1, m&(m-1) {
		slot, end := r.first&^63+bits.TrailingZeros64(m), int(from.ends[i])
		if withheld := c.p.views.withheld(slot); withheld != key.withheld(slot) {
			putRange(b, from.bits, done, start)
			// The versions are there, since the other run was made of them.
			one := w.residual(w.slots[slot], c.origin.basis(withheld))
			before := b.Len()
			x.putNext(b, w.slots[slot], one.basis)
			b.PutBits(w.bitsOf(one))
			r.addBits(uint32(w.slots[slot].class.index), uint32(b.Len()-before-(end-start)))
			done = end
		}
		x.prev = slot
		r.ends = append(r.ends, uint16(b.Len()+end-done))
		start = end
	}
	if putRange(b, from.bits, done, start); b.Len() <= most {
		r.finish(b)
	}
}

// withheld returns what may not be read of a slot.
func (key *runKey) withheld(slot int) Rules {
	for _, m := range key.views {
		if m.slots>>(slot&63)&1 != 0 {
			return m.withheld
		}
	}
	return 0
}

// putRange writes the bits of a run from one to another.
func putRange(w *wire.BitWriter, b []byte, from, to int) {
	for from < to {
		n := min(56, to-from)
		word := binary.LittleEndian.Uint64(b[from>>3 : from>>3+8 : cap(b)])
		w.Put(word>>(from&7)&(1<<n-1), uint(n))
		from += n
	}
}
