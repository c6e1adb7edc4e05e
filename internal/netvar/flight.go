package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/state"
)

// MaxInFlight bounds the packets of one client that are neither acknowledged nor lost, and
// therefore the ids that an acknowledgement can name. The window of the transport keeps far fewer
// in flight.
const MaxInFlight = 1024

// sentRecord is the set of slots, in one block of 64, that a packet carries in one version.
type sentRecord struct {
	version uint64 // the tick of the version, or newestThen
	mask    uint64 // bit i is slot 64·block+i
	block   uint32 // number of the block
}

// newestThen means that the packet has, for each slot, the version that was the newest at the
// packet's tick.
const newestThen = 0

// covers reports whether the record includes a slot.
func (r *sentRecord) covers(slot int) bool {
	return int(r.block) == slot>>6 && r.mask>>(slot&63)&1 != 0
}

// note records that the packet carries a version of the masked slots, in the block of slot.
func (s *sentPacket) note(slot uint32, mask, version uint64) {
	if last := len(s.records) - 1; last >= 0 {
		if r := &s.records[last]; r.block == slot>>6 && r.version == version {
			r.mask |= mask
			return
		}
	}
	s.records = append(s.records, sentRecord{version: version, mask: mask, block: slot >> 6})
}

type sentPacket struct {
	tick     uint64
	inFlight bool // neither acknowledged nor lost
	got      bool // being acknowledged
	records  []sentRecord
}

// addTo adds the slots of the packet's records.
func (s *sentPacket) addTo(b *bitset.Set) {
	for i := range s.records {
		b.AddWord(int(s.records[i].block), s.records[i].mask)
	}
}

// flight is the ring of sent packets, by id. Ids start at 1, and a packet with a higher id never
// has a lower tick.
type flight struct {
	ring   []sentPacket // length a power of two
	oldest uint64       // all packets before it are acknowledged or lost
	next   uint64
	spare  [][]sentRecord
}

func newFlight() flight { return flight{ring: make([]sentPacket, 16), oldest: 1, next: 1} }

func (f *flight) packet(id uint64) *sentPacket { return &f.ring[id&uint64(len(f.ring)-1)] }

// add allocates the next packet id. The caller keeps the number of packets below MaxInFlight.
func (f *flight) add(tick uint64) *sentPacket {
	if f.next-f.oldest == uint64(len(f.ring)) {
		old := *f
		f.ring = make([]sentPacket, 2*len(old.ring))
		for id := f.oldest; id != f.next; id++ {
			*f.packet(id) = *old.packet(id)
		}
	}
	s := f.packet(f.next)
	f.next++
	*s = sentPacket{tick: tick, inFlight: true}
	if n := len(f.spare); n > 0 {
		s.records, f.spare = f.spare[n-1][:0], f.spare[:n-1]
	}
	return s
}

// decided marks a packet as acknowledged or lost and frees its records.
func (f *flight) decided(s *sentPacket) {
	s.inFlight, s.got = false, false
	if cap(s.records) > 0 {
		f.spare = append(f.spare, s.records)
		s.records = nil
	}
	for f.oldest < f.next && !f.packet(f.oldest).inFlight {
		f.oldest++
	}
}

// drop marks all packets as decided, so that later acknowledgements of them are ignored.
func (f *flight) drop() {
	for id := f.oldest; id != f.next; id++ {
		if s := f.packet(id); s.inFlight {
			f.decided(s)
		}
	}
}

// Range is an inclusive range of packet ids.
type Range struct{ First, Last uint64 }

// Ack processes the ids of packets that the client has applied, in any order. Unknown ids are
// counted and ignored. An unacknowledged packet is lost if a packet of a later tick is acknowledged
// here, because a client applies no packet that is older than one it has applied.
func (p *Peer) Ack(ranges []Range) {
	newest := p.arrived(ranges)
	if newest == 0 {
		return // a repeated acknowledgement has no effect
	}
	f := &p.flight
	some := uint64(0) // tick of the last acknowledged packet in the loop, until addAckedTick
	for id := f.oldest; id != f.next && f.packet(id).tick <= newest; id++ {
		s := f.packet(id)
		if some > 0 && s.tick > some {
			p.addAckedTick(some)
			some = 0
		}
		switch {
		case s.got:
			some = s.tick
			p.acked(s)
		case s.tick < newest && s.inFlight:
			p.w.stats.Lost++
			p.lost(s)
		}
	}
	if p.losses.any {
		p.retryLost()
	}
	p.addAckedTick(newest)
}

// arrived flags the packets that are acknowledged for the first time, and returns their newest
// tick, or 0 if there are none.
func (p *Peer) arrived(ranges []Range) (newest uint64) {
	f, st := &p.flight, &p.w.stats
	budget := f.next - f.oldest // ranges of an honest client do not overlap
	for _, g := range ranges {
		if g.First == 0 || g.First > g.Last || g.Last >= f.next {
			st.AckUnknown++
		}
		first, last := max(g.First, f.oldest), min(g.Last, f.next-1)
		if first > last {
			st.AckStale++
			continue
		}
		if last-first >= budget {
			st.AckOverlapped++
			break
		}
		budget -= last - first + 1
		for id := first; id <= last; id++ {
			if s := f.packet(id); s.inFlight {
				s.got = true
				newest = max(newest, s.tick)
			}
		}
	}
	return newest
}

// acked advances the baselines of the objects that the packet carries.
func (p *Peer) acked(s *sentPacket) {
	p.w.stats.Acked++
	p.first.told = p.receipts.acknowledged(s.tick) || p.first.told
	for i := range s.records {
		r := &s.records[i]
		p.losses.slots.RemoveWord(int(r.block), r.mask)
		for m := p.ackedDerived(s, r); m != 0; m &= m - 1 {
			p.ackedSlot(s, r, int(r.block)<<6+bits.TrailingZeros64(m))
		}
	}
	p.flight.decided(s)
}

// ackedSlot advances the baseline of one object.
func (p *Peer) ackedSlot(s *sentPacket, r *sentRecord, slot int) {
	e, v := p.detailed(slot), p.View(slot)
	if s.tick < e.life || e.phase == absent || s.tick < v.Since {
		return // the packet is older than the lifetime or the last change of readable fields
	}
	if e.phase == ended { // a packet of this phase can only carry the despawn
		p.clear(e)
		p.pending.Remove(slot)
		p.forgetCopies(slot>>6, 1<<(slot&63))
		return
	}
	p.updated(slot, e, s.tick)
	p.applied(slot, e, v, p.carried(s, r, slot))
}

// carried returns the version of a slot that a packet carries, or 0 if it can no longer be derived.
func (p *Peer) carried(s *sentPacket, r *sentRecord, slot int) uint64 {
	if r.version != newestThen {
		return r.version
	}
	return p.View(slot).AsOf(p.w.objects.Slots[slot], s.tick)
}

// applied advances the baseline to a version if the version is later. If the object has no later
// version, it is no longer pending.
func (p *Peer) applied(slot int, e *entry, v state.View, version uint64) {
	if version > e.base {
		e.advance(version)
		p.endFirst(e)
	}
	if v.Version(p.w.objects.Slots[slot]) <= e.base {
		p.pending.Remove(slot)
		p.forgetCopies(slot>>6, 1<<(slot&63))
	}
}

// losses holds the contents of lost packets, for Ack.
type losses struct {
	any     bool
	slots   bitset.Set // pending slots of lost packets that no later acknowledged packet carries
	sent    bitset.Set // scratch
	missing bitset.Set // scratch
}

// forget clears the lost slots.
func (l *losses) forget() {
	l.any = false
	clear(l.slots)
}

// lost marks a packet as lost and adds its slots to losses.
func (p *Peer) lost(s *sentPacket) {
	p.losses.any = true
	s.addTo(&p.losses.slots)
	p.flight.decided(s)
}

// overrun declares the oldest packets lost until at most the given number is in flight.
func (p *Peer) overrun(most int) {
	f, some := &p.flight, false
	for ; f.next-f.oldest > uint64(most); some = true {
		p.w.stats.Overrun++
		p.lost(f.packet(f.oldest))
	}
	if some {
		p.retryLost()
	}
}

// retryLost makes the lost slots ready to be sent again, except those that a later packet in flight
// carries.
func (p *Peer) retryLost() {
	l, f := &p.losses, &p.flight
	clear(l.sent)
	for id := f.oldest; id != f.next; id++ {
		if s := f.packet(id); s.inFlight {
			s.addTo(&l.sent)
		}
	}
	l.any = false
	for k := range l.slots {
		if l.slots[k] &= p.pending.Word(k); l.slots[k] != 0 {
			l.any = true
			p.forgetCopies(k, l.slots[k]&^l.sent.Word(k))
		}
	}
}
