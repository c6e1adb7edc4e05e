package netvar

import "math/bits"

// Of nearly every object a client has what it was sent, because packets arrive and nothing was left
// out of them. Such an object is steady for the client's peer, which keeps no detail of it. What
// the peer knows of its steady objects stands in
//
//	marks      the ticks as of which the client has all of them
//	owed       which of them have changed since they were acknowledged
//	sentOnce,  which of these are in flight, in the packets of one snapshot
//	sentTwice  or of two
//	flight     which packet has which of them
//
// and in the history of each object. All clients with the same mark have the same versions. So the
// records of 64 neighbours are encoded once for all clients to whom the same of them are due
// (run.go), and each step takes a few operations on words of 64 slots:
//
//	gather   those that are owed, steady and not in sentTwice   ──▶  one candidate
//	put      their run                                          ──▶  the packet
//	commit   sentOnce, sentTwice                                ──▶  one note of the packet
//	acked    those that have not changed since the packet       ──▶  no longer owed
//
// Whatever happens to one object alone makes it unsteady: it is new to the client, it is large, it
// had to wait, or it was lost for longer than the marks reach back. Whoever asks for its detail
// (Peer.detailed) makes it unsteady too, which is always safe. The object becomes steady again when
// it is due and the oldest mark is not older than the packet that has mended it.

// derive fills in the detail of a steady object.
func (p *Peer) derive(slot int, e *entry) {
	o, v := p.w.slots[slot], p.view(slot)
	m := &p.marks
	mark := m.newestWith(slot)
	e.mendedAt, e.sent = m.newest, mark
	switch base := v.asOf(o, mark); {
	case base > 0:
		e.advance(base)
	case o.hist.floor(mark, o.changed) < 0: // the version is gone, so this is no usable baseline
		e.advance(mark)
	default: // nobody knows which version was the first that looked as the object looks now
		e.full = fullEvicted
	}
	if !m.missing(m.oldest).has(slot) {
		e.noteAcked(v.asOf(o, m.oldest)) // 0 if nobody knows it: nothing leads from that
	}
	if p.sentOnce.has(slot) {
		e.sent = v.version(o)
	} else if before := v.asOf(o, p.before); before > 0 {
		e.sent = before
	} else if e.base > 0 {
		e.sent = e.base
	}
	if last := uint32(e.sent); int32(last-e.last) > 0 {
		e.last = last // the record may also be a later copy of that version
	}
}

// makeSteady makes steady which it can of 64 slots that are due, and returns those that are steady.
func (p *Peer) makeSteady(k int, due uint64) uint64 {
	for len(p.steady) <= k {
		p.steady = append(p.steady, 0)
	}
	for m := due &^ p.steady[k]; m != 0; m &= m - 1 {
		slot := k<<6 + bits.TrailingZeros64(m)
		e := &p.entries[slot]
		if e.mendedAt != 0 && e.mendedAt <= p.marks.oldest && !p.marks.missing(p.marks.newest).has(slot) {
			p.steady.set(slot)
			p.w.details.release(e.detail)
			e.detail = nil
		}
	}
	return due & p.steady[k]
}

// makeUnsteady gives a detail to those of 64 slots that are steady.
func (p *Peer) makeUnsteady(k int, mask uint64) {
	for m := mask & p.steady.word(k); m != 0; m &= m - 1 {
		p.detailed(k<<6 + bits.TrailingZeros64(m))
	}
}

// mended notes that the client has an unsteady object as it was when a packet of this tick was cut.
func (p *Peer) mended(slot int, e *entry, tick uint64) {
	if e.mendedAt == 0 && tick > e.missedAt && !p.w.slots[slot].class.large {
		e.mendedAt = tick
	}
}

// leftOut notes that the snapshot of a tick has left an object out.
func (e *entry) leftOut(tick uint64) { e.mendedAt, e.missedAt = 0, tick }

// addMark makes a tick a mark, because one of its packets has arrived. What was lost and is in no
// later packet is missing as of the mark, and so is what is still in flight in a packet of the
// tick.
func (p *Peer) addMark(tick uint64) {
	m, l, f := &p.marks, &p.losses, &p.flight
	l.missing = append(l.missing[:0], l.slots...)
	for id := f.oldest; id != f.next && f.packet(id).tick <= tick; id++ {
		f.packet(id).addTo(&l.missing) // of those that are decided none has records any more
	}
	any := uint64(0)
	for k := range l.missing { // the client has what is not owed to it
		l.missing[k] &= p.owed.word(k)
		any |= l.missing[k]
	}
	if any == 0 {
		l.missing = l.missing[:0]
	}
	if tick-m.oldest >= maxMarks { // Some marks go, and may be all that is known.
		for k, word := range l.missing {
			p.makeUnsteady(k, word)
		}
	}
	m.add(tick)
	m.setMissing(l.missing)
}

// chooseOrigin decides what the records of a snapshot lead from. The client then drops the versions
// from before what it keeps, so what it has missed ever since gets its detail now.
func (c *cutter) chooseOrigin() {
	p := c.p
	m := &p.marks
	c.origin = m.chooseOrigin(c.header.Tick, c.countMissing)
	for k := range m.missing(m.newest) {
		p.makeUnsteady(k, m.missingSince(k, c.origin.kept()))
	}
	m.setOldest(c.origin.kept())
}

// countMissing returns how many steady objects are due and missing as of an origin.
func (c *cutter) countMissing(from origin) (n int) {
	for k := range c.p.steady {
		n += bits.OnesCount64(c.p.marks.missingIn(from, k) & c.p.steady[k] & c.isDue(k))
	}
	return n
}

// ackedSteady notes of the steady ones among the slots of a record that a packet with it has
// arrived. It returns the other slots.
func (p *Peer) ackedSteady(s *sentPacket, r *sentRecord) (others uint64) {
	k := int(r.block)
	steady := r.mask & p.steady.word(k)
	if steady == 0 {
		return r.mask
	}
	changed, known := p.w.changedSince(s.tick)
	if !known {
		return r.mask
	}
	has := steady &^ unhidden(changed.slots.word(k), changed.byRule, k, p.views.block(k))
	p.owed.remove(k, has)
	p.forgetCopies(k, has)
	return r.mask &^ steady
}

// forgetCopies notes that no copy of what is owed of these slots is in flight.
func (p *Peer) forgetCopies(k int, mask uint64) {
	p.sentOnce.remove(k, mask)
	p.sentTwice.remove(k, mask)
}
