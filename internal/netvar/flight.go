package netvar

import "math/bits"

// MaxInFlight bounds the packets of one client that are neither acknowledged nor lost: what
// acknowledgements can name. The window of the transport keeps far fewer in flight.
const MaxInFlight = 1024

// sentRecord is what a packet in flight has of one version in 64 neighbouring slots.
type sentRecord struct {
	version uint64
	mask    uint64 // the slots
	block   uint32 // that they are in
}

// of reports whether one of the slots is this one.
func (r *sentRecord) of(slot int) bool {
	return int(r.block) == slot>>6 && r.mask>>(slot&63)&1 != 0
}

// note remembers records of one version: of the slots of a mask, in the block of slot.
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
	tick    uint64
	pending bool
	records []sentRecord
}

// flight is the ring of packets that were sent, by id. Ids start at 1 and ticks never fall
// from one id to the next.
type flight struct {
	ring   []sentPacket // length a power of two
	oldest uint64       // all before it are decided
	next   uint64
	spare  [][]sentRecord
}

func newFlight() flight { return flight{ring: make([]sentPacket, 16), oldest: 1, next: 1} }

func (f *flight) at(id uint64) *sentPacket { return &f.ring[id&uint64(len(f.ring)-1)] }

// add gives the next packet its id. The caller makes room below MaxInFlight first.
func (f *flight) add(tick uint64) *sentPacket {
	if f.next-f.oldest == uint64(len(f.ring)) {
		old := *f
		f.ring = make([]sentPacket, 2*len(old.ring))
		for id := f.oldest; id < f.next; id++ {
			*f.at(id) = *old.at(id)
		}
	}
	s := f.at(f.next)
	f.next++
	*s = sentPacket{tick: tick, pending: true}
	if n := len(f.spare); n > 0 {
		s.records, f.spare = f.spare[n-1][:0], f.spare[:n-1]
	}
	return s
}

// decided frees what the packet knew.
func (f *flight) decided(s *sentPacket) {
	s.pending = false
	if cap(s.records) > 0 {
		f.spare = append(f.spare, s.records)
		s.records = nil
	}
	for f.oldest < f.next && !f.at(f.oldest).pending {
		f.oldest++
	}
}

// drop forgets all packets; their acknowledgements will be stale.
func (f *flight) drop() {
	for id := f.oldest; id < f.next; id++ {
		if s := f.at(id); s.pending {
			f.decided(s)
		}
	}
}

// Range is an inclusive range of packet ids.
type Range struct{ First, Last uint64 }

// Ack takes the packets that the client says it has applied, in any order. Ids that were never
// sent are counted and ignored. What is older than a packet acknowledged here, and not
// acknowledged, is lost, since the client applies nothing older than what it has applied.
func (p *Peer) Ack(ranges []Range) {
	f, st := &p.flight, &p.w.stats
	budget := f.next - f.oldest // ranges of an honest client do not overlap
	var newest uint64           // tick of the newest packet acknowledged
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
			if s := f.at(id); s.pending {
				newest = max(newest, s.tick)
				p.acked(s)
			}
		}
	}
	for id := f.oldest; id < f.next && f.at(id).tick < newest; id++ {
		if s := f.at(id); s.pending {
			st.Lost++
			p.lost(s)
		}
	}
}

// acked moves the baselines of what the packet carried.
func (p *Peer) acked(s *sentPacket) {
	p.w.stats.Acked++
	p.heard = max(p.heard, s.tick)
	for i := range s.records {
		r := &s.records[i]
		if p.ackedBlock(s, r) {
			continue
		}
		for m := r.mask; m != 0; m &= m - 1 {
			p.ackedSlot(s, r.version, int(r.block)<<6+bits.TrailingZeros64(m))
		}
	}
	p.flight.decided(s)
}

// ackedSlot moves the baseline of one object.
func (p *Peer) ackedSlot(s *sentPacket, version uint64, slot int) {
	e, v := p.at(slot), p.view(slot)
	if s.tick < e.life || e.phase == absent || s.tick < v.since {
		return // of a lifetime that is over, or of another mask
	}
	if e.phase == ended { // a packet of this phase can only have carried the despawn
		*e = entry{}
		p.owed.unset(slot)
		p.waiting.unset(slot)
		return
	}
	if version == e.sent && e.out > 0 {
		e.out--
	}
	p.applied(slot, e, v, version)
}

// applied makes a version the baseline if it is a later one. If nothing has changed since, nothing is owed.
func (p *Peer) applied(slot int, e *entry, v view, version uint64) {
	if version > e.base {
		e.advance(version, p.from)
		p.endFirst(e)
	}
	if o := p.w.slots[slot]; o.changed <= e.base || v.withheld != 0 && v.version(o) <= e.base {
		p.owed.unset(slot)
		p.waiting.unset(slot)
	}
}

// lost makes owed again what was only in this packet.
func (p *Peer) lost(s *sentPacket) {
	for i := range s.records {
		r := &s.records[i]
		if p.lostBlock(s, r) {
			continue
		}
		for m := r.mask; m != 0; m &= m - 1 {
			p.lostSlot(s, r.version, int(r.block)<<6+bits.TrailingZeros64(m))
		}
	}
	p.flight.decided(s)
}

func (p *Peer) lostSlot(s *sentPacket, version uint64, slot int) {
	e := p.at(slot)
	if s.tick < e.life || e.phase == absent || version != e.sent || e.out == 0 {
		return
	}
	if e.out--; e.out == 0 && e.base < e.sent {
		e.copies = 0
		p.waiting.unset(slot)
	}
}
