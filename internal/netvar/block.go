package netvar

import "math/bits"

// Where everything moves, a client has the same of many objects: the same version acknowledged, the same
// one in flight. Sixty-four neighbouring slots are a block, and those of them of which a peer knows the
// same have one entry in common, as long as they are sent together and acknowledged together. What they
// are sent is computed once for all peers that know the same (run.go), so a snapshot of a thousand
// objects is sixteen steps:
//
//	gather   a block whose members are all owed          ──▶  one candidate
//	put      its run, the bits of all their records      ──▶  the packet
//	commit   one common entry, one note of the packet
//	acked    one common entry
//
// Whatever concerns one of them alone parts the block: each gets its own entry again. That is always
// right, and done by whoever asks for an entry (Peer.at). A block joins once it was sent whole twice
// and its entries agree.

// block is what a peer knows of the members of 64 slots in common.
type block struct {
	mask   uint64 // the members; 0 = none
	same   entry  // of each of them, but for life and full, which stay in their own
	newest uint64 // the latest life
	before uint64 // what the last snapshot sent of the block, in one packet and as deltas of its tick
}

const (
	// minBlock is how few members are not worth it.
	minBlock = 8
	// maxShare bounds a run to a part of a packet: it goes into one, and what is left of the packet before stays empty.
	maxShare = 2
)

func (p *Peer) block(k int) *block {
	for len(p.blocks) <= k {
		p.blocks = append(p.blocks, block{})
	}
	return &p.blocks[k]
}

// at returns the entry of a slot, to read and to change.
func (p *Peer) at(slot int) *entry {
	if k := slot >> 6; k < len(p.blocks) && p.blocks[k].mask>>(slot&63)&1 != 0 {
		p.part(k)
	}
	return &p.entries[slot]
}

// peek returns a copy of what is known of a slot. It parts no block: asking changes nothing of what is sent.
func (p *Peer) peek(slot int) entry {
	e := p.entries[slot]
	if k := slot >> 6; k < len(p.blocks) && p.blocks[k].mask>>(slot&63)&1 != 0 {
		life, full := e.life, e.full
		e = p.blocks[k].same
		e.life, e.full = life, full
	}
	return e
}

// part gives each member of a block its own entry.
func (p *Peer) part(k int) {
	b := &p.blocks[k]
	for m := b.mask; m != 0; m &= m - 1 {
		slot := k<<6 + bits.TrailingZeros64(m)
		p.entries[slot] = p.peek(slot)
	}
	b.mask, b.before = 0, 0
}

// partAll parts all blocks.
func (p *Peer) partAll() {
	for k := range p.blocks {
		if p.blocks[k].mask != 0 {
			p.part(k)
		}
	}
}

// join makes a block of the slots that a snapshot has sent whole, if they agree.
func (p *Peer) join(k int, mask uint64) {
	b := p.block(k)
	if k < len(p.views.special) && p.views.special[k]&mask != 0 {
		return // what is withheld changes for nobody
	}
	if b.before != mask || bits.OnesCount64(mask) < minBlock {
		b.before = mask
		return
	}
	first := p.entries[k<<6+bits.TrailingZeros64(mask)]
	b.newest = 0
	for m := mask; m != 0; m &= m - 1 {
		e := p.entries[k<<6+bits.TrailingZeros64(m)]
		b.newest = max(b.newest, e.life)
		if e.life, e.full = first.life, first.full; e != first || e.first {
			return
		}
	}
	b.mask, b.same = mask, first
}

// run returns the bits of a block for a snapshot, if all of its members, and nothing else of the 64 slots, are due
// in this very version.
func (c *cutter) run(k int, due uint64) *run {
	p := c.p
	b := &p.blocks[k]
	switch {
	case b.mask != due || k >= len(p.w.moved) || p.w.moved[k]&due != due || p.w.tick != c.header.Tick:
		return nil
	case c.header.HasDigest || b.same.base == 0:
		return nil
	}
	r := p.w.run(k, due, basis{at: c.at, from: c.origin})
	if r == nil || r.base != b.same.base || !b.same.has(r.older) {
		r = p.w.run(k, due, basis{at: b.same.base, exact: true})
	}
	if r == nil || int(r.n) > c.room/maxShare {
		return nil
	}
	return r
}

// putRun writes a run into the open packet if it fits. If not, nothing has changed.
func (c *cutter) putRun(n *candidate) bool {
	start, at := c.open.Mark(), c.open.Len()
	c.open.PutRice(uint64(int(n.slot)-c.context.prev-1), gapRice)
	if c.open.Len()+int(n.run.n) > c.room || int(n.run.n) > c.left {
		c.open.Rewind(start)
		return false
	}
	gap := c.open.Len() - at
	c.open.PutBits(c.p.w.arena[n.run.off:], int(n.run.n))
	c.context.prev = int(n.slot)&^63 + bits.Len64(n.mask) - 1
	n.size = uint32(gap) + n.run.n
	c.left -= int(n.size)
	return true
}

// commitRun remembers that a block was sent.
func (c *cutter) commitRun(n *candidate) {
	p, count := c.p, uint64(bits.OnesCount64(n.mask))
	st, spent := &p.w.stats, &p.w.spent
	st.Records += count
	st.Deltas += count
	st.InBlocks += count
	spent.classes[n.run.classes[0].index] += uint64(n.size) - uint64(n.run.n)
	for _, s := range n.run.classes[:n.run.kinds] {
		spent.classes[s.index] += uint64(s.bits)
	}
	b := &p.blocks[n.slot>>6]
	b.same.sent, b.same.copies, b.same.out = n.version, 1, 1
	b.same.last, b.same.known = c.header.Tick, true
	p.flight.at(c.first+uint64(n.packet)).note(n.slot, n.mask, n.version)
	if spent.gap > uint32(count) {
		spent.gap -= uint32(count)
		return
	}
	slot := int(n.slot)&^63 + selectBit(n.mask, int(spent.gap)-1)
	e := b.same
	c.sample(&candidate{slot: uint32(slot), version: n.version, rank: rankOwed}, &e)
}

// selectBit returns the place of the n-th bit that is set.
func selectBit(mask uint64, n int) int {
	for range n {
		mask &= mask - 1
	}
	return bits.TrailingZeros64(mask)
}

// joinBlocks lets the blocks of a snapshot in order join.
func (c *cutter) joinBlocks() {
	for i := 0; i < len(c.list); {
		k, packet, whole, mask := int(c.list[i].slot>>6), c.list[i].packet, true, uint64(0)
		for ; i < len(c.list) && int(c.list[i].slot>>6) == k; i++ {
			n := &c.list[i]
			whole = whole && n.run == nil && n.rank == rankOwed && !n.full && n.packet == packet && packet < onStream && n.version == c.header.Tick
			mask |= 1 << (n.slot & 63)
		}
		if whole {
			c.p.join(k, mask)
		}
	}
}

// ackedBlock moves the common baseline, or reports that the slots are no block any more.
func (p *Peer) ackedBlock(s *sentPacket, r *sentRecord) bool {
	k := int(r.block)
	if k >= len(p.blocks) || p.blocks[k].mask != r.mask || s.tick < p.blocks[k].newest {
		return false
	}
	e := &p.blocks[k].same
	if r.version == e.sent && e.out > 0 {
		e.out--
	}
	if r.version > e.base {
		e.advance(r.version, p.from)
	}
	if e.base < p.w.tick && k < len(p.w.moved) && p.w.moved[k]&r.mask == r.mask {
		return true // all have changed since
	}
	for m := r.mask; m != 0; m &= m - 1 {
		if slot := k<<6 + bits.TrailingZeros64(m); p.version(slot, e) <= e.base {
			p.owed.unset(slot)
			p.waiting.unset(slot)
		}
	}
	return true
}

// lostBlock makes a block owed again that was only in this packet, or reports that the slots are none any more.
func (p *Peer) lostBlock(s *sentPacket, r *sentRecord) bool {
	k := int(r.block)
	if k >= len(p.blocks) || p.blocks[k].mask != r.mask || s.tick < p.blocks[k].newest {
		return false
	}
	e := &p.blocks[k].same
	if r.version != e.sent || e.out == 0 {
		return true
	}
	if e.out--; e.out == 0 && e.base < e.sent {
		e.copies = 0
		if k < len(p.waiting) {
			p.waiting[k] &^= r.mask
		}
	}
	return true
}
