package netvar

import "math/bits"

// Of nearly all objects a client has what it was sent: the packets arrive, and nothing was left out. Such an
// object is steady for its peer, and needs no bookkeeping of its own. It is known from
//
//	marks    the ticks as of which the client is known to have all that is steady
//	owed     what has changed since it was acknowledged; once, waiting: and is under way, in one packet or two
//	flight   which packet has what
//
// and from the history of the object. What a mark names every client that has this mark has, so the records of
// 64 neighbouring slots are computed once for all clients that are owed the same of them (run.go), and gathering,
// committing and acknowledging them takes a few operations on words:
//
//	gather   owed, steady and not waiting   ──▶  one candidate
//	put      its run                        ──▶  the packet
//	commit   once, waiting                  ──▶  one note of the packet
//	acked    what has not changed since     ──▶  no longer owed
//
// Whatever concerns one object alone makes it unsteady, and what is known of it stands in its entry's detail: that it is new or
// large, that it was lost for longer than marks reach back, that it had to wait. Whoever asks for an entry (Peer.detailed) makes it so, which is always
// right. An object becomes steady again once it has changed and marks reach back no farther than the
// packet that has mended it.

// derive makes the detail of a steady object.
func (p *Peer) derive(slot int, e *entry) {
	o, v := p.w.slots[slot], p.view(slot)
	m := &p.marks
	mark := m.newestWith(slot)
	e.mendedAt, e.sent = m.newest, mark
	switch base := v.asOf(o, mark); {
	case base > 0:
		e.advance(base)
	case o.hist.floor(mark, o.changed) < 0: // it is too old: no baseline
		e.advance(mark)
	default: // which version looked as it does now nobody knows
		e.full = fullEvicted
	}
	if from := v.asOf(o, m.oldest); from > 0 && !m.missing(m.oldest).has(slot) {
		e.noteAcked(from)
	}
	if p.sentOnce.has(slot) {
		e.sent = v.version(o)
	} else if before := v.asOf(o, p.before); before > 0 {
		e.sent = before
	} else if e.base > 0 {
		e.sent = e.base
	}
	if last := uint32(e.sent); int32(last-e.last) > 0 {
		e.last = last // or a copy was sent a little later
	}
}

// settle makes steady what may be of 64 slots that are due, and returns those of them that are.
func (p *Peer) makeSteady(k int, due uint64) uint64 {
	for len(p.steady) <= k {
		p.steady = append(p.steady, 0)
	}
	apart := due &^ p.steady[k]
	if apart == 0 {
		return due
	}
	for m := apart &^ p.marks.missing(p.marks.newest).word(k); m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if e := &p.entries[k<<6+i]; e.mendedAt != 0 && e.mendedAt <= p.marks.oldest {
			p.steady[k] |= 1 << i
			p.w.details.release(e.detail)
			e.detail = nil
		}
	}
	return due & p.steady[k]
}

// mended notes that the client has what an unsteady object was when a packet of this tick was sent.
func (p *Peer) mended(slot int, e *entry, tick uint64) {
	if e.mendedAt == 0 && tick > e.missedAt && !p.w.slots[slot].class.large {
		e.mendedAt = tick
	}
}

// leftOut notes that a snapshot left an object out.
func (e *entry) leftOut(tick uint64) { e.mendedAt, e.missedAt = 0, tick }

// pass makes a tick a mark, of whose packets one has arrived: the client lacks what was lost and not sent anew, and what is
// still under way.
func (p *Peer) addMark(tick uint64) {
	m, l, f := &p.marks, &p.losses, &p.flight
	l.missing = append(l.missing[:0], l.slots...)
	for id := f.oldest; id < f.next && f.packet(id).tick <= tick; id++ {
		if s := f.packet(id); s.pending && s.tick == tick {
			s.addTo(&l.missing)
		}
	}
	any := uint64(0)
	for k := range l.missing { // what is not owed it has
		l.missing[k] &= p.owed.word(k)
		any |= l.missing[k]
	}
	if any == 0 {
		l.missing = l.missing[:0]
	}
	if tick > m.newest {
		if m.newest > 0 && tick-m.oldest >= maxMarks { // older marks go, which may be all that is known
			for k, word := range l.missing {
				p.makeUnsteady(k, word)
			}
		}
		m.add(tick)
	}
	m.setMissing(l.missing)
}

// unsettle gives those of 64 slots that are steady their entries.
func (p *Peer) makeUnsteady(k int, mask uint64) {
	for m := mask & p.steady.word(k); m != 0; m &= m - 1 {
		p.detailed(k<<6 + bits.TrailingZeros64(m))
	}
}

// chooseOrigin finds out what the records of a snapshot lead from. The client drops what was before, so what it has lacked
// ever since gets its entry now.
func (c *cutter) chooseOrigin() {
	p := c.p
	m := &p.marks
	c.origin = m.chooseOrigin(c.header.Tick, func(two origin) (n int) {
		for k := range p.steady {
			if lacks := m.missingIn(two, k); lacks != 0 {
				n += bits.OnesCount64(lacks & p.steady[k] & c.isDue(k))
			}
		}
		return n
	})
	for k := range m.missing(m.newest) {
		p.makeUnsteady(k, m.missingSince(k, c.origin.trendFrom))
	}
	m.setOldest(c.origin.trendFrom)
}

// ackedSteady takes that a packet with these slots was acknowledged, and returns those of them that are not steady.
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
	had := steady &^ unhidden(changed.slots.word(k), changed.byRule, k, p.views.block(k))
	p.owed.remove(k, had)
	p.forgetCopies(k, had)
	return r.mask &^ steady
}

// settled notes that nothing of these slots is under way that matters.
func (p *Peer) forgetCopies(k int, mask uint64) {
	p.sentOnce.remove(k, mask)
	p.sentTwice.remove(k, mask)
}
