package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/wire"
)

// A record that is larger than a packet is sent over the reliable stream, in full, and by itself:
//
//	large = coder:1 padding:1 tick:4 id:uvarint at:len record
//
// The record is a full one, as in a packet of this tick with at = 0.
//
// Ids start at 1 and have no gaps. The client applies the records in order and acknowledges the
// last one. These records have ids of their own, because acknowledgements of packets cover only
// recent packets, and a stream may lag further behind.
//
// Until a record is acknowledged, no other record of its slot is sent to that client, despawns
// included: a packet could overtake the record, and would then be overwritten by it. The record is
// not lost while the connection lasts, so it is sent once. Later changes of the object are pending,
// and are sent once the record is acknowledged.
const (
	// MaxRecord bounds a whole record on the stream, so that it fits a frame.
	MaxRecord = 15 << 10
	// MaxOutstanding bounds the bytes of unacknowledged records of one client: four of the largest,
	// an eighth of the queue limit of a client's stream. Other records remain pending.
	MaxOutstanding = 64 << 10

	maxLargeHead   = 1 + 1 + 4 + 10 + 1 + maxRecordHead
	atLargePadding = 1
)

// largeRecord is a record on the stream that is not acknowledged.
type largeRecord struct {
	tick, version uint64
	since         uint64 // the tick that the client had reached in this slot before
	slot, size    uint32
	void          bool // sent before RequestFull: its acknowledgement sets no baseline
}

// large is the state of a client's records on the stream.
type large struct {
	list  []largeRecord // by id, up to last
	slots bitset        // slots of the records in list
	bytes int           // bytes of the records in list
	last  uint64        // id of the last record sent
	sent  [][]byte      // records of the last snapshot
}

// Large returns the records of the last snapshot that must be sent over the client's stream, in
// this order. They are valid until the next snapshot is cut.
func (p *Peer) Large() [][]byte { return p.large.sent }

// AckLarge acknowledges all records up to this id.
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

// largeAcked advances the baseline, unless the record is of an ended lifetime or of another mask.
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

// beginLarge drops the records of the last snapshot.
func (c *cutter) beginLarge() {
	l := &c.p.large
	l.sent = l.sent[:0]
	c.largeRoom, c.crowded = MaxOutstanding-l.bytes, 0
	c.header.HasBehind = len(l.list) > 0
}

// findLarge marks a candidate as large if its record fits no packet, and computes its size.
func (c *cutter) findLarge(n *candidate, o *Object, e *entry) {
	most := c.room - 8*(maxHeader+maxRecordHead)
	var delta *residual
	if e.base != 0 {
		delta = c.residual(o, e, n.version)
	}
	if delta != nil && int(delta.n) <= most {
		return // the common case: the full size is not needed
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

// takeLarge reserves room on the stream for a large record and reports whether there was enough. If
// not, it admits no more records to the stream in this snapshot, so that small ones do not delay
// the largest for ever.
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

// commitLarge writes a large record and stores it as outstanding; e is its entry before.
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

// behindLarge returns the number of ticks by which the client lags in the outstanding records.
func (c *cutter) behindLarge() (behind uint64) {
	for i := range c.p.large.list {
		behind = max(behind, c.header.Tick-c.p.large.list[i].since)
	}
	return behind
}

// reached returns the tick up to which the client has the slot once all sent records arrive: that
// of the last record, or the tick before the lifetime if there is none.
func (e *entry) reached(now uint64) uint64 {
	switch {
	case e.sent != 0:
		return now - e.age(now)
	case !e.known: // after a resume the lifetime may have begun long before last
		return e.life - 1
	}
	return now - e.age(now) - 1
}

// ApplyLarge checks a whole record from the stream, and then applies it. After an error the replica
// is unchanged, and the stream must not be used any more. The record is applied even if later
// packets were applied before it, because they had no record of its object. The returned id must be
// acknowledged.
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
	if tick > r.tick { // as for a packet of this tick: earlier ones must not be applied any more
		r.tick, r.agreed, r.arrived, r.verdict = tick, header{}, 0, DigestNone
	}
	for i := range r.staged {
		r.apply(&r.staged[i])
	}
	r.stats.Large++
	r.stats.Records += uint64(len(r.staged))
	return id, nil
}
