package netvar

import "math/bits"

// The first state of a client is the set of objects that are visible to it when its first snapshot
// is cut. It is sent over as many snapshots as necessary. Until the client has acknowledged all of
// these objects, each snapshot contains the number of missing objects: objects that are neither
// acknowledged nor in this snapshot. When that number is 0 and the snapshot is complete, the client
// has its first complete state.
type progress struct {
	left, total int
	closed      bool // no more objects are added, although no packet of this connection was sent
	told        bool // the client has acknowledged a whole snapshot without missing objects
}

// beginFirst adds an entry to the first state if its lifetime begins before the first packet.
func (p *Peer) beginFirst(e *entry) {
	if p.flight.next == 1 && !p.first.closed { // no packet was sent yet
		e.first = true
		p.first.left++
		p.first.total++
	}
}

// endFirst removes an entry from the missing objects of the first state: the object is
// acknowledged, or its lifetime has ended.
func (p *Peer) endFirst(e *entry) {
	if e.first {
		e.first = false
		p.first.left--
	}
}

// missing returns the number of objects of the first state that the client lacks after this
// snapshot.
func (c *cutter) missing() int {
	left := c.p.first.left
	for i := range c.list {
		n := &c.list[i]
		switch {
		case n.packet >= onStream:
		case n.run == nil && c.p.entries[n.slot].first:
			left--
		case n.run != nil && n.full:
			left -= c.p.countFirst(n.run)
		}
	}
	return left
}

// countFirst returns the number of slots in a run that belong to the first state.
func (p *Peer) countFirst(r *run) (n int) {
	k := int(r.note.block)
	for m := r.note.mask; m != 0; m &= m - 1 {
		if p.entries[k<<6+bits.TrailingZeros64(m)].first {
			n++
		}
	}
	return n
}
