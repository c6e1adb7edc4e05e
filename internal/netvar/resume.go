package netvar

import "math"

// A connection may break while its client is still in the game. Its Peer then stays: captures go on
// to tell it what is owed, shown, hidden and gone, while no snapshot is cut. Once the client is
// back with another connection, Resume goes on from what it has.
//
// Ticks go on; packets and large records are numbered by connection, from 1. So nothing of the old
// connection may count for the new one: neither its acknowledgements, for Ack and AckLarge, nor
// what of it is still on its way to Apply and ApplyLarge. The tick of the next snapshot is later
// than that of any before, so what a Replica knows of the newest one needs no looking after.
//
// What was in flight on the old connection is lost, whether it has arrived or not: that the client
// may have more than it has acknowledged is nothing new, and rule by rule it is as with any lost
// packet. So is a large record. The old stream will not deliver it any more, and it is not sent
// again as bytes: its object is owed, in its newest value, with copies or without. That lets go of
// the object too, so that its despawn, say, need not wait for what never comes.

// Resume goes on with the client over another connection. It says whether it has kept its copies,
// of all that it has applied until then. If so nothing begins anew: what it has acknowledged is
// what deltas lead from, as long as the world still has it. If not, everything is owed to it in
// full, as to one that joins, and no despawn of what it had; it has to be without copies from its
// word on, even if this connection breaks as well.
//
// Budget, lifetimes and what it may see and read stay. The next packet has the id 1.
func (p *Peer) Resume(kept bool) {
	p.w.stats.Resumes++
	begun := p.flight.next > 1
	p.w.stats.Lost += p.flight.restart()
	p.large.restart()
	clear(p.sentOnce)
	clear(p.sentTwice)
	p.plan = plan{}
	p.cut.list = p.cut.list[:0] // what the last snapshot left out explains nothing any more
	if kept {
		p.first.closed = p.first.closed || begun
		p.before = p.marks.newest
		for slot := range p.entries {
			if e := &p.entries[slot]; e.detail != nil { // of what is steady nothing else is known
				e.rewind()
			}
		}
		return
	}
	p.Slow()
	p.marks, p.digests, p.first = marks{}, 0, progress{}
	p.losses.forget()
	for slot := range p.entries {
		p.startOver(slot)
	}
}

// rewind makes it as if nothing were sent but what was acknowledged, in the tick of that version.
func (e *entry) rewind() {
	if e.sent > e.base {
		e.sent, e.last = e.base, uint32(max(e.base, e.life))
	}
}

// startOver makes the entry that of a client that has nothing, and of which nothing is steady. Its
// lifetime goes on, but waiting for a first record begins now: or what was spawned earlier would
// pass all weights.
func (p *Peer) startOver(slot int) {
	switch e := &p.entries[slot]; e.phase {
	case absent:
	case shown:
		p.setBlank(slot, entry{life: e.life, last: uint32(p.w.tick), phase: shown, full: fullResumed})
		p.beginFirst(e)
	case ended:
		p.clear(e)
		p.owed.unset(slot)
	}
}

// restart forgets all packets and numbers the next ones from 1. It returns how many were undecided.
func (f *flight) restart() (undecided uint64) {
	for id := f.oldest; id != f.next; id++ {
		if f.packet(id).pending {
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

// Resume readies a replica that was kept for another connection. The game notices nothing: what the
// server has ended meanwhile it says by despawns. A client that has kept nothing begins with a
// new Replica instead; see StartAt.
func (r *Replica) Resume() { r.large = 0 }

// Clear ends all objects, in the order of their ids, for a client whose world is gone. Events tells
// of it as of any despawn, and nothing of them can be drawn any more. Adapt then readies the
// replica for what comes.
func (r *Replica) Clear() {
	r.LookFrom(math.MaxUint64)
	for _, o := range r.slots {
		if o != nil {
			r.despawn(o, 0)
		}
	}
}
