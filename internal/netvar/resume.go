package netvar

// A client may lose its connection while it is still in the game. The Peer is kept: captures
// continue to record pending, visible, hidden and ended objects, while no snapshot is cut. When the
// client returns with another connection, Resume continues from the state that the client has.
//
// Ticks continue; packets and large records are numbered by connection, from 1. So acknowledgements
// of the old connection must not be passed to Ack and AckLarge, and its packets and records must
// not be passed to Apply and ApplyLarge. The tick of the next snapshot is later than all earlier
// ticks, so a Replica needs no reset of its newest tick.
//
// All packets in flight on the old connection count as lost, even if they have arrived. The client
// may have more than it has acknowledged, as after any lost acknowledgement. Large records count as
// lost too, because the old stream no longer delivers them. Their objects are pending with their
// newest value, with or without copies, so that a despawn, for example, does not wait for an
// acknowledgement that never arrives.

// Resume continues with the client over another connection. kept reports whether the client still
// has its copies of all objects. If so, deltas are based on the acknowledged versions, as long as
// the world still has these versions. If not, all objects are pending in full, as for a joining
// client, and despawns of earlier objects are dropped. Such a client must no longer use its old
// copies, even if it loses this connection too.
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
	p.first.told = false
	p.cut.list = p.cut.list[:0] // Explain must no longer use the list
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
// but the waiting time for a first record begins now: otherwise old objects would have priority
// over all others, regardless of their weights.
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
