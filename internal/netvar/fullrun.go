package netvar

import (
	"math"
	"math/bits"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// Full records of neighbouring slots are encoded as a run, like the deltas of objects with derived
// baselines: see run.go. Such a run is never shared between clients, because its records contain
// ticks that differ between clients: the start of an object's lifetime for the client, and the last
// change of the fields that the client may read.

// addFullRun lists the full records of the masked slots of block k as one candidate, a run, or as
// several smaller runs if that run is too large.
func (c *cutter) addFullRun(k int, mask uint64, width int) {
	r := c.p.w.unsharedRun()
	r.begin(k, mask)
	c.encodeFullRun(r, mask, width)
	if width == 1 || r.size > 0 && int(r.size) <= maxRunBits(c.room, width) {
		c.list = append(c.list, candidate{run: r, slot: uint32(r.first), rank: rankPending, packet: unplaced, full: true})
		c.runBits += int(r.size)
		return
	}
	half := width / 2
	if s := c.p.w.runs[k]; r.size == 0 { // such a run is too large for every client
		s.fullWidth = min(s.fullWidth, half)
	}
	for rest := mask; rest != 0; {
		some := rest & neighbours(rest, half)
		c.addFullRun(k, some, half)
		rest &^= some
	}
}

// encodeFullRun encodes the full records of the masked slots. If they do not fit one run, r.size
// remains 0. A run of one slot may have any size.
func (c *cutter) encodeFullRun(r *run, mask uint64, width int) {
	w, most := c.p.w, math.MaxInt
	if width > 1 {
		most = maxRunBits(8*packet.MaxSize, width)
	}
	b, x := &w.runBits, packet.Context{Tick: c.header.Tick, Prev: -1}
	b.Reset(b.Bytes()[:0])
	for m := mask; m != 0; m &= m - 1 {
		slot, start := r.first&^63+bits.TrailingZeros64(m), b.Len()
		c.putFull(b, &x, slot)
		if w.costs != nil && width > 1 {
			r.ends = append(r.ends, uint16(b.Len()))
		}
		if !r.addBits(uint32(w.objects.Slots[slot].WireClass().Index()), uint32(b.Len()-start)) || b.Len() > most {
			return
		}
	}
	r.finish(b)
}

// commitFullRun records that the never-sent slots of a run were sent.
func (c *cutter) commitFullRun(n *candidate) {
	p, r := c.p, n.run
	k, mask := int(r.note.block), r.note.mask
	p.w.stats.Records += uint64(r.records)
	p.w.stats.InRuns += uint64(r.records)
	c.spendRun(n)
	s := p.flight.packet(c.first + uint64(n.packet))
	for m := mask; m != 0; m &= m - 1 {
		slot := k<<6 + bits.TrailingZeros64(m)
		e := p.detailed(slot)
		c.countFull(e)
		e.sent, e.last, e.known = p.version(slot, e), uint32(c.header.Tick), true
		// Store the version, because the history may have dropped it when the packet is
		// acknowledged.
		s.note(uint32(slot), 1<<(slot&63), e.sent)
	}
	p.neverSent.RemoveWord(k, mask)
	p.sentOnce.AddWord(k, mask)
}

// putFull writes a full record. For the first record of a run it writes no gap, because the gap
// depends on the packet.
func (c *cutter) putFull(b *wire.BitWriter, x *packet.Context, slot int) {
	p := c.p
	o, e, withheld := p.w.objects.Slots[slot], &p.entries[slot], p.Withheld(slot)
	head := packet.Head{Kind: packet.Full, Slot: slot, Version: p.version(slot, e), Life: e.life, Class: uint64(o.WireClass().Index()), Gen: o.ID().Gen(), Masked: withheld != 0}
	if inRun := x != &c.context; inRun && x.Prev < 0 {
		x.Prev = slot
		x.PutKind(b, &head)
	} else {
		x.PutHead(b, &head)
	}
	if head.Masked {
		o.WireClass().PutMask(b, withheld)
	}
	b.PutBits(p.w.bitsOf(p.w.residual(o, basis{withheld: withheld})))
}

// countFull counts a full record by its reason.
func (c *cutter) countFull(e *entry) {
	st := &c.p.w.stats
	switch {
	case e.base != 0:
		st.FullEvicted++
	case e.full == fullRequested:
		st.FullRequested++
	case e.full == fullVisible:
		st.FullVisible++
	case e.full == fullMasked:
		st.FullMasked++
	case e.full == fullResumed:
		st.FullResumed++
	case e.full == fullEvicted:
		st.FullEvicted++
	default:
		st.FullFirst++
	}
}
