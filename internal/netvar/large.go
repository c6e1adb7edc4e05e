package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/wire"
)

// A record that is larger than a packet goes reliably, in full, and by itself:
//
//	large = coder:1 padding:1 tick:4 id:uvarint at:len record
//
// The record is a full one, as in a packet of this tick whose at is 0.
//
// Ids start at 1 and have no gaps; the client applies the records in their order and says up to
// which one it has. Acknowledgements of packets reach only some packets back, and a stream may be
// much later than that, so a record has no id of a packet.
//
// Until a record is acknowledged nothing else of its slot is sent to that client, a despawn
// included: a packet would overtake the record, and then be overwritten by it. It is never lost
// while the connection lives, so there are no copies of it and nothing to find out about it. What
// happens to the object meanwhile is owed, and goes once the record is acknowledged.
const (
	// MaxRecord bounds a record that goes reliably, all of it, so that it fits a frame.
	MaxRecord = 15 << 10
	// MaxOutstanding bounds the bytes of the records that one client has not acknowledged: four
	// of the largest, an eighth of what may wait for a client's stream. The rest stays owed.
	MaxOutstanding = 64 << 10

	maxLargeHead   = 1 + 1 + 4 + 10 + 1 + maxRecordHead
	atLargePadding = 1
)

// largeRecord is one that is not acknowledged.
type largeRecord struct {
	tick, version uint64
	since         uint64 // tick that the client had reached in this slot before
	slot, size    uint32
	void          bool // sent before the client's copies were in doubt: it is no baseline
}

// large is what a peer knows of its reliable records.
type large struct {
	list  []largeRecord // in the order of their ids, up to last
	slots bitset        // of those in the list
	bytes int           // of those in the list
	last  uint64        // id of the last one sent
	sent  [][]byte      // of the last snapshot
}

// Large returns the records of the last snapshot that are to go over the client's stream, in this
// order. They are valid until the next one is cut.
func (p *Peer) Large() [][]byte { return p.large.sent }

// AckLarge takes the client's word that it has applied all records up to this id.
func (p *Peer) AckLarge(id uint64) {
	l, st := &p.large, &p.w.stats
	if id > l.last {
		st.AckUnknown++
		return
	}
	waiting := int(l.last - id)
	if waiting >= len(l.list) {
		st.AckStale++
		return
	}
	n := len(l.list) - waiting
	for i := range l.list[:n] {
		p.largeAcked(&l.list[i])
	}
	l.list = slices.Delete(l.list, 0, n)
}

// largeAcked moves the baseline, unless the record is of a lifetime that is over or of another
// mask.
func (p *Peer) largeAcked(r *largeRecord) {
	slot := int(r.slot)
	p.large.slots.unset(slot)
	p.large.bytes -= int(r.size)
	e, v := p.detailed(slot), p.view(slot)
	if r.void || r.tick < e.life || e.phase != shown || r.tick < v.since {
		return
	}
	p.applied(slot, e, v, r.version)
}

// beginLarge lets go of the records of the snapshot before.
func (c *cutter) beginLarge() {
	l := &c.p.large
	l.sent = l.sent[:0]
	c.largeRoom, c.crowded = MaxOutstanding-l.bytes, 0
	c.header.HasBehind = len(l.list) > 0
}

// findLarge finds out whether the record of an object fits no packet, and then what it takes.
func (c *cutter) findLarge(n *candidate, o *Object, e *entry) {
	most := c.room - 8*(maxHeader+maxRecordHead)
	var delta *residual
	if e.base != 0 {
		delta = c.residual(o, e, n.version)
	}
	if delta != nil && int(delta.n) <= most {
		return // mostly: nobody needs to know how large all of it is
	}
	withheld := c.p.view(int(n.slot)).withheld
	full := c.p.w.residual(o, basis{withheld: withheld}).n
	if withheld != 0 {
		full += uint32(o.class.plan.Leaves()) // the mask
	}
	if delta == nil && int(full) <= most {
		return
	}
	c.header.HasBehind = true
	n.large, n.full = true, true
	n.size, n.class = 8*maxLargeHead+full, uint32(o.class.index)
}

// takeLarge gives a large record its place on the stream and reports whether there is one. What
// finds none keeps the room from all after it, or small ones would keep it from the largest.
func (c *cutter) takeLarge(n *candidate) bool {
	size := int(n.size+7) / 8
	if !c.lim.Reliable || size > c.largeRoom {
		c.largeRoom, n.why = 0, WhyStreamFull
		c.crowded++
		return false
	}
	n.packet = onStream
	c.largeRoom -= size
	c.left -= int(n.size)
	return true
}

// commitLarge writes a large record and remembers it; e is its entry before.
func (c *cutter) commitLarge(n *candidate, e *entry) {
	p, l, tick := c.p, &c.p.large, c.header.Tick
	i := len(l.sent)
	if l.sent = slices.Grow(l.sent, 1)[:i+1]; cap(l.sent[i]) == 0 {
		l.sent[i] = make([]byte, 0, n.size/8+8)
	}
	l.last++
	b := wire.AppendUint32(append(l.sent[i][:0], coderBits, 0), uint32(tick))
	c.open.Reset(wire.AppendUvarint(b, l.last))
	c.context.begin(tick, origin{})
	c.context.put(&c.open)
	c.putFull(&c.open, &c.context, int(n.slot))
	padding := c.open.Flush()
	l.sent[i] = c.open.Bytes()
	l.sent[i][atLargePadding] = byte(padding)
	size := len(l.sent[i])
	n.size = uint32(8 * size)
	p.w.stats.Large++
	p.w.stats.Bytes += uint64(size)
	l.list = append(l.list, largeRecord{tick: tick, version: n.version, since: e.reached(tick), slot: n.slot, size: uint32(size)})
	l.slots.set(int(n.slot))
	l.bytes += size
}

// behindLarge is by how many ticks the client stays behind in what is outstanding.
func (c *cutter) behindLarge() (behind uint64) {
	for i := range c.p.large.list {
		behind = max(behind, c.header.Tick-c.p.large.list[i].since)
	}
	return behind
}

// reached is the tick that the client has reached with what was sent of the entry: that of the
// last record, or the one before its lifetime.
func (e *entry) reached(now uint64) uint64 {
	switch {
	case e.sent != 0:
		return now - e.age(now)
	case !e.known: // after a resume it may have begun long before last
		return e.life - 1
	}
	return now - e.age(now) - 1
}

// ApplyLarge checks a record that came over the stream wholly, and then applies it; after an error
// nothing has changed, and the stream is no use any more. It applies whatever was applied
// meanwhile, because nothing of the object was. The id is to be acknowledged.
func (r *Replica) ApplyLarge(record []byte) (id uint64, err error) {
	in := wire.NewReader(record)
	coder, padding := in.Byte(), in.Byte()
	tick := wire.WidenTick(max(r.tick, r.near), in.Uint32())
	id = in.Uvarint()
	if coder != coderBits || padding > 7 || tick == 0 || id != r.large+1 {
		in.Fail(ErrHeader)
	}
	defer r.endCheck()
	if err = in.Err(); err == nil {
		err = r.check(wire.NewBitReader(record[in.Offset():], int(padding)), tick, 1)
	}
	if err == nil && !r.blind && (len(r.staged) != 1 || r.staged[0].Kind != recordFull) {
		err = ErrRecord
	}
	if err != nil {
		r.stats.Refused++
		return 0, err
	}
	r.large = id
	if tick > r.tick { // as a packet of this tick does: an earlier one must not be applied any more
		r.tick, r.agreed, r.arrived, r.verdict = tick, header{}, 0, DigestNone
	}
	for i := range r.staged {
		r.apply(&r.staged[i])
	}
	r.stats.Large++
	r.stats.Records += uint64(len(r.staged))
	return id, nil
}
