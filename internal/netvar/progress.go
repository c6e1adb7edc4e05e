package netvar

import "math/bits"

// The first state of a client is what it shall have when its first snapshot is cut. It comes
// over as many snapshots as it takes, like everything that is owed. Until the client has
// acknowledged all of it, each snapshot says how much of it is still missing: what is neither
// acknowledged nor in this very snapshot. Once that is nothing, and the snapshot is whole, the
// client has its first complete state.
type progress struct {
	left, total int
	closed      bool // nothing joins it any more, though this connection was not sent anything yet
}

// beginFirst counts an entry whose lifetime begins.
func (p *Peer) beginFirst(e *entry) {
	if p.flight.next == 1 && !p.first.closed { // nothing was sent yet
		e.first = true
		p.first.left++
		p.first.total++
	}
}

// endFirst notes that the client has what e is about, or need not have it any more.
func (p *Peer) endFirst(e *entry) {
	if e.first {
		e.first = false
		p.first.left--
	}
}

// missing is how much of the first state the client lacks once it has this snapshot.
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

// countFirst counts those of the slots of a run that are of the first state.
func (p *Peer) countFirst(r *run) (n int) {
	k := int(r.note.block)
	for m := r.note.mask; m != 0; m &= m - 1 {
		if p.entries[k<<6+bits.TrailingZeros64(m)].first {
			n++
		}
	}
	return n
}
