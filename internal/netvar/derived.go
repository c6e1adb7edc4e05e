package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/netvar/packet"
)

// Nearly always the client has the newest sent version of an object, because packets arrive and
// snapshots leave out no pending object. The baseline of such an object is derived, so the client's
// peer stores no detail for it. The state of objects with derived baselines is in
//
//	ackedTicks  the ticks as of which the client has all of them
//	pending     those with a change that is not acknowledged
//	sentOnce,   those with a copy in flight, in the packets of one snapshot
//	sentTwice   or of two
//	flight      the slots of each packet
//
// and in the history of each object. All clients with the same acked tick have the same versions.
// So the records of 64 neighbours are encoded once for all clients with the same due slots
// (run.go), and each step takes a few operations on words of 64 slots:
//
//	gather   pending, derived and not in sentTwice          ──▶  one candidate
//	put      their run                                      ──▶  the packet
//	commit   sentOnce, sentTwice                            ──▶  one note of the packet
//	acked    those that have not changed since the packet   ──▶  not pending
//
// An object gets a detail after individual events: it is new to the client, it is large, it had to
// wait, or it was lost for longer than the span of the acked ticks. Peer.detailed also gives an
// object a detail, which is always correct. The baseline is derived again when the object is due
// and the oldest acked tick is not older than the packet that has updated the client's copy.

// derive computes the detail of an object with a derived baseline.
func (p *Peer) derive(slot int, e *entry) {
	o, v := p.w.objects.Slots[slot], p.View(slot)
	m := &p.ackedTicks
	mark := m.newestWith(slot)
	e.updatedAt, e.sent = m.newest, mark
	switch base := v.AsOf(o, mark); {
	case base > 0:
		e.advance(base)
	// the version was dropped, so it cannot be the baseline
	case o.Hist.Floor(mark, o.Changed()) < 0:
		e.advance(mark)
	default: // the tick of the first version with the values readable at mark is unknown
		e.full = fullEvicted
	}
	if !m.missing(m.oldest).Has(slot) {
		e.noteAcked(v.AsOf(o, m.oldest)) // 0 if the version is unknown: then no delta uses it
	}
	if p.sentOnce.Has(slot) {
		e.sent = v.Version(o)
	} else if before := v.AsOf(o, p.before); before > 0 {
		e.sent = before
	} else if e.base > 0 {
		e.sent = e.base
	}
	if last := uint32(e.sent); int32(last-e.last) > 0 {
		e.last = last // the record may also be a later copy of that version
	}
}

// makeDerived changes due slots of block k to derived baselines, and releases their details. This
// is possible for a slot if the oldest acked tick is not before the packet that updated the
// client's copy, and the slot is not missing as of the newest acked tick. It returns all due slots
// with derived baselines.
func (p *Peer) makeDerived(k int, due uint64) uint64 {
	for len(p.derived) <= k {
		p.derived = append(p.derived, 0)
	}
	for m := due &^ p.derived[k]; m != 0; m &= m - 1 {
		slot := k<<6 + bits.TrailingZeros64(m)
		e := &p.entries[slot]
		if e.updatedAt != 0 && e.updatedAt <= p.ackedTicks.oldest && !p.ackedTicks.missing(p.ackedTicks.newest).Has(slot) {
			p.derived.Add(slot)
			p.w.details.release(e.detail)
			e.detail = nil
		}
	}
	return due & p.derived[k]
}

// storeDetails gives details to those of the masked slots of block k that have derived baselines.
func (p *Peer) storeDetails(k int, mask uint64) {
	for m := mask & p.derived.Word(k); m != 0; m &= m - 1 {
		p.detailed(k<<6 + bits.TrailingZeros64(m))
	}
}

// updated records that an acknowledged packet of this tick brought the client's copy of an object
// without a derived baseline up to date.
func (p *Peer) updated(slot int, e *entry, tick uint64) {
	if e.updatedAt == 0 && tick > e.leftOutAt && !p.w.objects.Slots[slot].WireClass().Large {
		e.updatedAt = tick
	}
}

// leftOut records that the snapshot of a tick has left the object out.
func (e *entry) leftOut(tick uint64) { e.updatedAt, e.leftOutAt = 0, tick }

// addAckedTick makes a tick an acked tick, because one of its packets is acknowledged. Pending
// objects are missing as of the acked tick if they are in lost packets and in no later acknowledged
// packet, or in packets up to the tick that are still in flight.
func (p *Peer) addAckedTick(tick uint64) {
	m, l, f := &p.ackedTicks, &p.losses, &p.flight
	l.missing = append(l.missing[:0], l.slots...)
	for id := f.oldest; id != f.next && f.packet(id).tick <= tick; id++ {
		f.packet(id).addTo(&l.missing) // decided packets have no records
	}
	any := uint64(0)
	for k := range l.missing { // the client has all objects that are not pending
		l.missing[k] &= p.pending.Word(k)
		any |= l.missing[k]
	}
	if any == 0 {
		l.missing = l.missing[:0]
	}
	// some acked ticks are dropped, and an object may be present only as of these ticks
	if tick-m.oldest >= maxAckedTicks {
		for k, word := range l.missing {
			p.storeDetails(k, word)
		}
	}
	m.add(tick)
	m.setMissing(l.missing)
}

// chooseOrigin sets the origin of a snapshot's records. The client then drops the versions before
// c.origin.Kept, so objects that are missing as of all acked ticks since then get a detail.
func (c *cutter) chooseOrigin() {
	p := c.p
	m := &p.ackedTicks
	c.origin = m.chooseOrigin(c.header.Tick, c.countMissing)
	for k := range m.missing(m.newest) {
		p.storeDetails(k, m.missingSince(k, c.origin.Kept()))
	}
	m.setOldest(c.origin.Kept())
}

// countMissing returns the number of objects with derived baselines that are due and missing as of
// an origin.
func (c *cutter) countMissing(from packet.Origin) (n int) {
	for k := range c.p.derived {
		n += bits.OnesCount64(c.p.ackedTicks.missingIn(from, k) & c.p.derived[k] & c.isDue(k))
	}
	return n
}

// ackedDerived processes an acknowledged record of a packet for its slots with derived baselines:
// slots without a later readable change are no longer pending. It returns the slots that it has not
// processed: slots without derived baselines, or all slots if the packet is older than the log of
// changes.
func (p *Peer) ackedDerived(s *sentPacket, r *sentRecord) (others uint64) {
	k := int(r.block)
	steady := r.mask & p.derived.Word(k)
	if steady == 0 {
		return r.mask
	}
	changed, known := p.w.changedSince(s.tick)
	if !known {
		return r.mask
	}
	has := steady &^ p.Readable(k, changed.slots.Word(k), changed.byRule)
	p.pending.RemoveWord(k, has)
	p.forgetCopies(k, has)
	return r.mask &^ steady
}

// detailed gives a slot its own detail, and returns its entry, which the caller may change.
// Afterwards the object has no derived baseline.
func (p *Peer) detailed(slot int) *entry {
	e := &p.entries[slot]
	if e.detail == nil || p.w.details.isNeverSent(e.detail) {
		e.detail = p.w.details.take()
		if p.derived.Has(slot) {
			p.derive(slot, e)
			p.derived.Remove(slot)
		}
	}
	return e
}

// peek returns a copy of the entry of a slot with its detail. It changes nothing: an object with a
// derived baseline keeps its derived baseline.
func (p *Peer) peek(slot int) entry {
	e := p.entries[slot]
	if e.detail == nil {
		e.detail = new(detail)
		if p.derived.Has(slot) {
			p.derive(slot, &e)
		}
	}
	return e
}
