package netvar

// A connection may break while its client is still in the game. The Peer is kept: captures continue
// to record pending, visible, hidden and ended objects, while no snapshot is cut. When the client
// returns with another connection, Resume continues from the state that the client has.
//
// Ticks continue; packets and large records are numbered by connection, from 1. So acknowledgements
// of the old connection must not be passed to Ack and AckLarge, and its packets and records must
// not be passed to Apply and ApplyLarge. The tick of the next snapshot is later than all before, so
// a Replica needs no reset of its newest tick.
//
// Everything in flight on the old connection counts as lost, whether it has arrived or not. The
// client may have more than it has acknowledged, as with any lost acknowledgement. Large records
// count as lost too: the old stream does not deliver them any more. Their objects are pending in
// their newest value, with or without copies, so that a despawn, for example, does not wait for an
// acknowledgement that never arrives.

// Resume continues with the client over another connection. kept reports whether the client has
// kept its copies of all objects it has applied until then. If so, deltas lead from the
// acknowledged versions, as long as the world still has them. If not, all objects are pending in
// full, as for a joining client, and despawns of earlier objects are dropped. Such a client must
// not use its old copies any more, even if this connection breaks as well.
//
// Budget, lifetimes, visibility and readable fields are kept. The next packet has the id 1.
func (p *Peer) Resume(kept bool) {
	p.w.stats.Resumes++
	begun := p.flight.next > 1
	p.w.stats.Lost += p.flight.restart()
	p.large.restart()
	clear(p.sentOnce)
	clear(p.sentTwice)
	p.plan = plan{}
	p.cut.list = p.cut.list[:0] // Explain must not use the list any more
	if kept {
		p.first.closed = p.first.closed || begun
		p.before = p.ackedTicks.newest
		for slot := range p.entries {
			if e := &p.entries[slot]; e.detail != nil { // a derived baseline needs no rewinding
				e.rewind()
			}
		}
		return
	}
	p.Slow()
	p.ackedTicks, p.digests, p.first = ackedTicks{}, 0, progress{}
	p.losses.forget()
	for slot := range p.entries {
		p.startOver(slot)
	}
}

// rewind resets the last sent version, and its tick, to the acknowledged one.
func (e *entry) rewind() {
	if e.sent > e.base {
		e.sent, e.last = e.base, uint32(max(e.base, e.life))
	}
}

// startOver makes the slot never-sent, or absent if the object has ended. The lifetime continues,
// but the wait for a first record begins now: otherwise the age of old objects would outrank all
// weights.
func (p *Peer) startOver(slot int) {
	switch e := &p.entries[slot]; e.phase {
	case absent:
	case shown:
		p.setNeverSent(slot, entry{life: e.life, last: uint32(p.w.tick), phase: shown, full: fullResumed})
		p.beginFirst(e)
	case ended:
		p.clear(e)
		p.pending.Remove(slot)
	}
}

// restart forgets all packets and numbers the next ones from 1. It returns how many were in flight.
func (f *flight) restart() (undecided uint64) {
	for id := f.oldest; id != f.next; id++ {
		if f.packet(id).inFlight {
			undecided++
		}
	}
	f.drop()
	f.oldest, f.next = 1, 1
	return undecided
}

// restart forgets all records and numbers the next ones from 1.
func (l *large) restart() {
	clear(l.slots)
	l.list, l.sent = l.list[:0], l.sent[:0]
	l.bytes, l.last = 0, 0
}
