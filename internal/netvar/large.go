package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// A record that is larger than a packet is sent over the reliable stream, alone and in full: see
// the layout in package packet. The client applies these records in order and acknowledges the last
// one.
//
// Until a record is acknowledged, no other record of its slot is sent to that client, despawns
// included: a packet could overtake the record, and would then be overwritten by it. The record is
// not lost while the connection lasts, so it is sent once. Later changes of the object are pending,
// and are sent once the record is acknowledged.

// MaxOutstanding bounds the bytes of one client's unacknowledged records on the stream: four
// records of the largest size, and an eighth of the queue limit of a client's stream. Further large
// records remain pending.
const MaxOutstanding = 64 << 10

// largeRecord is a record that was sent on the stream, until the client acknowledges it.
type largeRecord struct {
	tick, version uint64
	since         uint64 // the tick up to which the client had the slot's state before the record
	slot, size    uint32
	void          bool // sent before RequestFull: the acknowledgement sets no baseline
}

// large is the state of a client's records on the stream.
type large struct {
	list  []largeRecord // by id, up to last
	slots bitset.Set    // slots of the records in list
	bytes int           // bytes of the records in list
	last  uint64        // id of the last record sent
	sent  [][]byte      // records of the last snapshot
}

// Large returns the records of the last snapshot that must be sent over the client's stream, in
// this order. They are valid until the next snapshot is cut.
func (p *Peer) Large() [][]byte { return p.large.sent }

// AckLarge processes the client's acknowledgement of all records on the stream up to this id.
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

// largeAcked advances the baseline, unless the record was sent before RequestFull, before the
// lifetime or before the last change of the readable fields.
func (p *Peer) largeAcked(r *largeRecord) {
	slot := int(r.slot)
	p.large.slots.Remove(slot)
	p.large.bytes -= int(r.size)
	e, v := p.detailed(slot), p.View(slot)
	if r.void || r.tick < e.life || e.phase != shown || r.tick < v.Since {
		return
	}
	p.applied(slot, e, v, r.version)
}

// beginLarge drops the records of the last snapshot.
func (c *cutter) beginLarge() {
	l := &c.p.large
	l.sent = l.sent[:0]
	c.largeRoom, c.waitedLarge = MaxOutstanding-l.bytes, 0
	c.header.HasBehind = len(l.list) > 0
}

// findLarge marks a candidate as large if its record fits no packet, and computes its size.
func (c *cutter) findLarge(n *candidate, o *state.Object, e *entry) {
	most := c.room - 8*(packet.MaxHeader+packet.MaxHead)
	var delta *residual
	if e.base != 0 {
		delta = c.residual(o, e, n.version)
	}
	if delta != nil && int(delta.n) <= most {
		return // the usual case: the full size is not needed
	}
	withheld := c.p.View(int(n.slot)).Withheld
	full := c.p.w.residual(o, basis{withheld: withheld}).n
	if withheld != 0 {
		full += uint32(o.Plan().Leaves()) // the mask
	}
	if delta == nil && int(full) <= most {
		return
	}
	c.header.HasBehind = true
	n.large, n.full = true, true
	n.size, n.class = 8*packet.MaxLargeHead+full, uint32(o.WireClass().Index())
}

// takeLarge reserves room on the stream for a large record and reports whether there was enough. If
// not, it accepts no more records for the stream in this snapshot, so that small records cannot
// delay a large record for ever.
func (c *cutter) takeLarge(n *candidate) bool {
	size := int(n.size+7) / 8
	if !c.lim.Reliable || size > c.largeRoom {
		c.largeRoom, n.why = 0, WhyStreamFull
		c.waitedLarge++
		return false
	}
	n.packet = onStream
	c.largeRoom -= size
	c.left -= int(n.size)
	return true
}

// commitLarge writes a large record and stores it as outstanding; e is the entry of its slot before
// this snapshot.
func (c *cutter) commitLarge(n *candidate, e *entry) {
	p, l, tick := c.p, &c.p.large, c.header.Tick
	i := len(l.sent)
	if l.sent = slices.Grow(l.sent, 1)[:i+1]; cap(l.sent[i]) == 0 {
		l.sent[i] = make([]byte, 0, n.size/8+8)
	}
	l.last++
	b := wire.AppendUint32(append(l.sent[i][:0], packet.Coder, 0), uint32(tick))
	c.open.Reset(wire.AppendUvarint(b, l.last))
	c.context.Begin(tick, packet.Origin{})
	c.context.Put(&c.open)
	c.putFull(&c.open, &c.context, int(n.slot))
	padding := c.open.Flush()
	l.sent[i] = c.open.Bytes()
	l.sent[i][packet.AtLargePadding] = byte(padding)
	size := len(l.sent[i])
	n.size = uint32(8 * size)
	p.w.stats.Large++
	p.w.stats.Bytes += uint64(size)
	l.list = append(l.list, largeRecord{tick: tick, version: n.version, since: e.reached(tick), slot: n.slot, size: uint32(size)})
	l.slots.Add(int(n.slot))
	l.bytes += size
}

// behindLarge returns the number of ticks by which the client lags in the outstanding records.
func (c *cutter) behindLarge() (behind uint64) {
	for i := range c.p.large.list {
		behind = max(behind, c.header.Tick-c.p.large.list[i].since)
	}
	return behind
}

// reached returns the tick up to which the client has the state of the slot once all sent records
// arrive: the tick of the last record, or the tick before the lifetime if it has no record.
func (e *entry) reached(now uint64) uint64 {
	switch {
	case e.sent != 0:
		return now - e.age(now)
	case !e.known: // after a resume the lifetime may have begun long before last
		return e.life - 1
	}
	return now - e.age(now) - 1
}
