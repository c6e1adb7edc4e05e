package netvar

import "math/bits"

// Nearly always the client has the newest sent version of an object, because packets arrive and
// snapshots leave out no pending object. Such an object is steady for the client's peer, which
// stores no detail for it. The state of steady objects is in
//
//	marks      the ticks as of which the client has all of them
//	owed       those with a change that is not acknowledged: the pending ones
//	sentOnce,  those with a copy in flight, in the packets of one snapshot
//	sentTwice  or of two
//	flight     the slots of each packet
//
// and in the history of each object. All clients with the same mark have the same versions. So the
// records of 64 neighbours are encoded once for all clients with the same due slots (run.go), and
// each step takes a few operations on words of 64 slots:
//
//	gather   pending, steady and not in sentTwice           ──▶  one candidate
//	put      their run                                      ──▶  the packet
//	commit   sentOnce, sentTwice                            ──▶  one note of the packet
//	acked    those that have not changed since the packet   ──▶  not pending
//
// An object becomes unsteady through individual events: it is new to the client, it is large, it
// had to wait, or it was lost for longer than the marks span. A call of Peer.detailed makes it
// unsteady too, which is always correct. It becomes steady again when it is due and the oldest mark
// is not older than the packet that has updated the client's copy.

// derive computes the detail of a steady object.
func (p *Peer) derive(slot int, e *entry) {
	o, v := p.w.slots[slot], p.view(slot)
	m := &p.marks
	mark := m.newestWith(slot)
	e.mendedAt, e.sent = m.newest, mark
	switch base := v.asOf(o, mark); {
	case base > 0:
		e.advance(base)
	// the version is dropped, so this is no usable baseline
	case o.hist.floor(mark, o.changed) < 0:
		e.advance(mark)
	default: // the first version with the readable values of then is unknown
		e.full = fullEvicted
	}
	if !m.missing(m.oldest).has(slot) {
		e.noteAcked(v.asOf(o, m.oldest)) // 0 if it is unknown: then no delta leads from it
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

// makeSteady makes due slots of a block steady if possible, and returns the due slots that are
// steady.
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

// makeUnsteady allocates details for the steady ones of the masked slots.
func (p *Peer) makeUnsteady(k int, mask uint64) {
	for m := mask & p.steady.word(k); m != 0; m &= m - 1 {
		p.detailed(k<<6 + bits.TrailingZeros64(m))
	}
}

// mended records that an acknowledged packet of this tick brought the client's copy of an unsteady
// object up to date.
func (p *Peer) mended(slot int, e *entry, tick uint64) {
	if e.mendedAt == 0 && tick > e.missedAt && !p.w.slots[slot].class.large {
		e.mendedAt = tick
	}
}

// leftOut records that the snapshot of a tick has left the object out.
func (e *entry) leftOut(tick uint64) { e.mendedAt, e.missedAt = 0, tick }

// addMark makes a tick a mark, because one of its packets is acknowledged. Missing as of the mark
// are pending objects in lost packets and in no later one, and those in packets of the tick that
// are still in flight.
func (p *Peer) addMark(tick uint64) {
	m, l, f := &p.marks, &p.losses, &p.flight
	l.missing = append(l.missing[:0], l.slots...)
	for id := f.oldest; id != f.next && f.packet(id).tick <= tick; id++ {
		f.packet(id).addTo(&l.missing) // decided packets have no records
	}
	any := uint64(0)
	for k := range l.missing { // the client has all objects that are not pending
		l.missing[k] &= p.owed.word(k)
		any |= l.missing[k]
	}
	if any == 0 {
		l.missing = l.missing[:0]
	}
	// some marks are dropped, and an object may be present only as of these
	if tick-m.oldest >= maxMarks {
		for k, word := range l.missing {
			p.makeUnsteady(k, word)
		}
	}
	m.add(tick)
	m.setMissing(l.missing)
}

// chooseOrigin sets the origin of a snapshot's records. The client then drops the versions before
// origin.kept, so objects that are missing in all marks since then become unsteady.
func (c *cutter) chooseOrigin() {
	p := c.p
	m := &p.marks
	c.origin = m.chooseOrigin(c.header.Tick, c.countMissing)
	for k := range m.missing(m.newest) {
		p.makeUnsteady(k, m.missingSince(k, c.origin.kept()))
	}
	m.setOldest(c.origin.kept())
}

// countMissing returns the number of steady objects that are due and missing as of an origin.
func (c *cutter) countMissing(from origin) (n int) {
	for k := range c.p.steady {
		n += bits.OnesCount64(c.p.marks.missingIn(from, k) & c.p.steady[k] & c.isDue(k))
	}
	return n
}

// ackedSteady processes an acknowledged record for its steady slots. It returns the other slots.
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

// forgetCopies records that no copies of the pending versions of these slots are in flight.
func (p *Peer) forgetCopies(k int, mask uint64) {
	p.sentOnce.remove(k, mask)
	p.sentTwice.remove(k, mask)
}
