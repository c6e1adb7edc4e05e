package netvar

import "math/bits"

// MaxInFlight bounds the packets of one client that are neither acknowledged nor lost: what
// acknowledgements can name. The window of the transport keeps far fewer in flight.
const MaxInFlight = 1024

// sentRecord is what a packet in flight has of one version in 64 neighbouring slots.
type sentRecord struct {
	version uint64 // or newestThen
	mask    uint64 // the slots
	block   uint32 // that they are in
}

// newestThen is the version that was the newest at the tick of the packet, of each slot its own.
const newestThen = 0

// of reports whether one of the slots is this one.
func (r *sentRecord) covers(slot int) bool {
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
	pending bool // neither acknowledged nor lost
	got     bool // is being acknowledged
	records []sentRecord
}

// addTo adds the slots that the packet has records of.
func (s *sentPacket) addTo(b *bitset) {
	for i := range s.records {
		b.add(int(s.records[i].block), s.records[i].mask)
	}
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

func (f *flight) packet(id uint64) *sentPacket { return &f.ring[id&uint64(len(f.ring)-1)] }

// add gives the next packet its id. The caller makes room below MaxInFlight first.
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
	*s = sentPacket{tick: tick, pending: true}
	if n := len(f.spare); n > 0 {
		s.records, f.spare = f.spare[n-1][:0], f.spare[:n-1]
	}
	return s
}

// decided frees what the packet knew.
func (f *flight) decided(s *sentPacket) {
	s.pending, s.got = false, false
	if cap(s.records) > 0 {
		f.spare = append(f.spare, s.records)
		s.records = nil
	}
	for f.oldest < f.next && !f.packet(f.oldest).pending {
		f.oldest++
	}
}

// drop forgets all packets; their acknowledgements will be stale.
func (f *flight) drop() {
	for id := f.oldest; id != f.next; id++ {
		if s := f.packet(id); s.pending {
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
	newest := p.arrived(ranges)
	if newest == 0 {
		return // a client may say so as often as it likes
	}
	f := &p.flight
	some := uint64(0) // a tick of which something has arrived
	for id := f.oldest; id != f.next && f.packet(id).tick <= newest; id++ {
		s := f.packet(id)
		if some > 0 && s.tick > some {
			p.addMark(some)
			some = 0
		}
		switch {
		case s.got:
			some = s.tick
			p.acked(s)
		case s.tick < newest && s.pending:
			p.w.stats.Lost++
			p.lost(s)
		}
	}
	if p.losses.any {
		p.oweAgain()
	}
	p.addMark(newest)
}

// arrived marks the packets that are acknowledged now, and returns the newest tick of them.
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
			if s := f.packet(id); s.pending {
				s.got = true
				newest = max(newest, s.tick)
			}
		}
	}
	return newest
}

// acked moves the baselines of what the packet carried.
func (p *Peer) acked(s *sentPacket) {
	p.w.stats.Acked++
	p.receipts.acknowledged(s.tick)
	for i := range s.records {
		r := &s.records[i]
		p.losses.slots.remove(int(r.block), r.mask)
		for m := p.ackedSteady(s, r); m != 0; m &= m - 1 {
			p.ackedSlot(s, r, int(r.block)<<6+bits.TrailingZeros64(m))
		}
	}
	p.flight.decided(s)
}

// ackedSlot moves the baseline of one object.
func (p *Peer) ackedSlot(s *sentPacket, r *sentRecord, slot int) {
	e, v := p.detailed(slot), p.view(slot)
	if s.tick < e.life || e.phase == absent || s.tick < v.since {
		return // of a lifetime that is over, or of another mask
	}
	if e.phase == ended { // a packet of this phase can only have carried the despawn
		p.clear(e)
		p.owed.unset(slot)
		p.forgetCopies(slot>>6, 1<<(slot&63))
		return
	}
	p.mended(slot, e, s.tick)
	p.applied(slot, e, v, p.carried(s, r, slot))
}

// carried returns the version that a packet has of a slot, or 0 if nobody knows any more.
func (p *Peer) carried(s *sentPacket, r *sentRecord, slot int) uint64 {
	if r.version != newestThen {
		return r.version
	}
	return p.view(slot).asOf(p.w.slots[slot], s.tick)
}

// applied makes a version the baseline if it is a later one. If nothing has changed since, nothing
// is owed.
func (p *Peer) applied(slot int, e *entry, v view, version uint64) {
	if version > e.base {
		e.advance(version)
		p.endFirst(e)
	}
	if v.version(p.w.slots[slot]) <= e.base {
		p.owed.unset(slot)
		p.forgetCopies(slot>>6, 1<<(slot&63))
	}
}

// losses is what packets that were lost have carried, for Ack.
type losses struct {
	any     bool
	slots   bitset // those in no later packet that has arrived, of what is owed
	sent    bitset // scratch
	missing bitset // scratch of addMark
}

// forget forgets what was lost.
func (l *losses) forget() {
	l.any = false
	clear(l.slots)
}

// lost notes what the packet carried.
func (p *Peer) lost(s *sentPacket) {
	p.losses.any = true
	s.addTo(&p.losses.slots)
	p.flight.decided(s)
}

// overrun takes the oldest packets for lost until so many are in flight at most.
func (p *Peer) overrun(most int) {
	f, some := &p.flight, false
	for ; f.next-f.oldest > uint64(most); some = true {
		p.w.stats.Overrun++
		p.lost(f.packet(f.oldest))
	}
	if some {
		p.oweAgain()
	}
}

// oweAgain makes owed again what was only in packets that were lost. Later packets have it as it is
// now, if they have it.
func (p *Peer) oweAgain() {
	l, f := &p.losses, &p.flight
	clear(l.sent)
	for id := f.oldest; id != f.next; id++ {
		if s := f.packet(id); s.pending {
			s.addTo(&l.sent)
		}
	}
	l.any = false
	for k := range l.slots {
		if l.slots[k] &= p.owed.word(k); l.slots[k] != 0 {
			l.any = true
			p.forgetCopies(k, l.slots[k]&^l.sent.word(k))
		}
	}
}
