package netvar

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// Limit bounds one snapshot to Packets packets, at most MaxPackets, of PacketSize bytes, and its
// records to Bytes bytes, unless that is 0. As with the client's Budget, a record may exceed Bytes.
// Reliable is set if the client's stream accepts records that are larger than a packet; otherwise
// such records wait.
type Limit struct {
	Packets, PacketSize int
	Bytes               int
	Reliable            bool
}

// candidate is a pending slot, or a run of pending slots, that may be sent in this snapshot.
type candidate struct {
	run     *run // encoded records of several slots, the first of which is slot
	version uint64
	order   uint32 // position in the order of a shortage
	slot    uint32
	size    uint32 // bits of the written record
	class   uint32 // index of the class; for despawns the number of classes
	rank    rank
	packet  uint8 // index in the snapshot, or onStream, or unplaced
	derived bool  // the object has a derived baseline
	full    bool  // was encoded without a baseline
	large   bool  // fits no packet
	why     Why   // reason why it is unplaced: see Explain
}

const (
	onStream = 0xfe
	unplaced = 0xff
)

// cutter cuts one snapshot into packets. It is scratch of a Peer.
type cutter struct {
	p          *Peer
	header     packet.Header
	lim        Limit
	list       []candidate
	packets    [][]byte
	from       int            // number of packets that dst already had
	open       wire.BitWriter // the open packet
	room       int            // bits per packet
	context    packet.Context
	origin     packet.Origin // of the records of objects with derived baselines
	first      uint64        // id of the first packet
	budget     int           // bits of records for this snapshot
	left       int           // remaining bits of budget; a record may overdraw it
	priorities priorities    // scratch of byPriority
	far        bool          // the client has enough never-sent slots for a plan
	serves     bool          // the plan is served in this snapshot
	taken      bitset.Set    // scratch of gatherByPlan: slots that are listed individually
	covered    bitset.Set    // scratch of gatherByPlan: slots within the range of a run
	chosen     []uint32      // candidates that are sent under a shortage, by packet
	short      bool          // the budget is used up, so untried candidates wait for budget
	behind     uint64        // most ticks by which the client lags in a record left out
	runBits    int           // bits of the runs in the list
	lowUse     int           // consecutive snapshots that have used little of the list: see trim
	lacking    int           // objects of the first state that the client lacks after the snapshot

	largeRoom   int    // bytes that the stream can still take
	waitedLarge uint64 // large records that did not fit the stream
}

// AppendSnapshot appends the packets of the client's snapshot of this tick to dst, and returns the
// id of the first packet; the ids of the others are consecutive. The spare capacity of dst and of
// its packets is reused. There is at least one packet even if no change is pending. Records that do
// not fit wait; those of the highest priority are sent first: see weigh. Records that are larger
// than a packet are returned by Large.
//
// The tick must be later than that of the client's last snapshot, and not earlier than the last
// capture.
func (p *Peer) AppendSnapshot(dst [][]byte, tick uint64, lim Limit) (packets [][]byte, first uint64) {
	if tick <= p.tick || tick < p.w.tick {
		panic(fmt.Sprintf("netvar: AppendSnapshot(%d) after snapshot %d and capture %d; ticks must grow", tick, p.tick, p.w.tick))
	}
	p.tick, p.w.cut = tick, max(p.w.cut, tick)
	c := &p.cut
	c.begin(dst, tick, lim)
	if c.far = c.farBehind(); c.far {
		c.gatherByPlan()
		c.next()
		c.byPriority()
	} else if c.gather(true); !c.inOrder() {
		c.gatherSingly()
		c.byPriority()
	}
	c.finish()
	c.commit()
	p.before = tick
	c.trim()
	packets, c.packets = c.packets, nil
	p.receipts.cut(tick, int(p.flight.next-c.first), c.lacking == 0)
	return packets, c.first
}

func (c *cutter) begin(dst [][]byte, tick uint64, lim Limit) {
	p := c.p
	p.w.unsharedUsed = 0
	c.short, p.plan.why = false, 0
	c.lim = Limit{Packets: min(max(lim.Packets, 1), packet.MaxPackets), PacketSize: lim.PacketSize, Bytes: lim.Bytes, Reliable: lim.Reliable}
	p.overrun(MaxInFlight - c.lim.Packets)
	c.first = p.flight.next
	c.header = packet.Header{Tick: tick, Packet: c.first}
	c.header.HasLoading, c.header.Total = p.first.left > 0, uint32(p.first.total)
	c.digest()
	c.budget = inBits(p.bucket.fill(tick))
	if lim.Bytes > 0 {
		c.budget = min(c.budget, inBits(lim.Bytes))
	}
	c.left, c.room = c.budget, 8*c.lim.PacketSize
	c.beginLarge()
	c.chooseOrigin()
	c.packets, c.from = dst, len(dst)
}

const (
	// shrinkAfter is the number of consecutive snapshots with little use of the list after which
	// the list shrinks.
	shrinkAfter = 64
	smallList   = 16 // in candidates; smaller lists do not shrink
)

// trim shrinks the list if most of its capacity is no longer needed. The first snapshots of a
// client list objects individually, and later snapshots usually list runs.
func (c *cutter) trim() {
	if cap(c.list) <= smallList || len(c.list) > cap(c.list)/8 {
		c.lowUse = 0
		return
	}
	if c.lowUse++; c.lowUse == shrinkAfter {
		c.list = append(make([]candidate, 0, cap(c.list)/4), c.list...)
		c.lowUse = 0
	}
}

// records returns the number of records in a candidate.
func (n *candidate) records() int {
	if n.run != nil {
		return n.run.records
	}
	return 1
}

// gather lists the due slots in slot order. With together, neighbours with derived baselines are
// listed as runs.
func (c *cutter) gather(together bool) {
	p := c.p
	c.list, c.runBits, c.behind = c.list[:0], 0, 0
	// a snapshot with a digest sheds no records: otherwise it would never be complete
	shedding := p.w.shed > 0 && !c.header.HasDigest
	together = together && !shedding
	for k := range p.pending {
		due := c.isDue(k)
		if due == 0 {
			continue
		}
		steady := uint64(0)
		if together {
			steady = p.makeDerived(k, due)
		}
		c.gatherSome(k, due, steady, shedding)
	}
}

// gatherSome lists the due slots of a block. Steady slots, those with derived baselines, are listed
// as runs, unless another slot between them is listed individually.
func (c *cutter) gatherSome(k int, due, steady uint64, shedding bool) {
	missing := steady & c.p.ackedTicks.missingIn(c.origin, k)
	for alone := due&^steady | missing; due != 0; alone &= alone - 1 {
		between := due & (alone&-alone - 1) // all bits of due if alone is empty
		switch {
		case between == 0:
		case between&(between-1) == 0:
			c.addDerived(k, between)
		default:
			c.addRuns(k, between)
		}
		due &^= between
		if bit := due & -due; bit&missing != 0 {
			c.addDerived(k, bit)
		} else if bit != 0 {
			c.gatherOne(k<<6+bits.TrailingZeros64(bit), shedding)
		}
		due &= due - 1
	}
}

// isDue returns the pending slots of a block that may be sent now: slots without a record on the
// stream, and without copies of two snapshots in flight. In a snapshot with a digest the number of
// copies does not matter.
func (c *cutter) isDue(k int) uint64 {
	p := c.p
	due := p.pending[k] &^ p.large.slots.Word(k)
	if !c.header.HasDigest { // a snapshot with a digest must contain all pending changes
		due &^= p.sentTwice.Word(k)
	}
	return due
}

// addRun lists a run.
func (c *cutter) addRun(r *run) {
	c.list = append(c.list, candidate{run: r, slot: uint32(r.first), rank: rankPending, packet: unplaced})
	c.runBits += int(r.size)
}

// addDerived lists slots with derived baselines individually. It does not rank second copies below
// others; if not all records fit, gatherSingly ranks them.
func (c *cutter) addDerived(k int, mask uint64) {
	p := c.p
	for ; mask != 0; mask &= mask - 1 {
		slot := k<<6 + bits.TrailingZeros64(mask)
		c.list = append(c.list, candidate{slot: uint32(slot), version: p.View(slot).Version(p.w.objects.Slots[slot]), rank: rankPending, packet: unplaced, derived: true})
	}
}

// gatherOne lists a slot that has no derived baseline.
func (c *cutter) gatherOne(slot int, shedding bool) {
	p := c.p
	e, o := p.detailed(slot), p.w.objects.Slots[slot]
	n := candidate{slot: uint32(slot), version: p.version(slot, e), rank: rankPending, packet: unplaced}
	switch {
	case e.phase == ended:
		n.rank = rankDespawn
	case p.sentOnce.Has(slot):
		n.rank = rankCopy
	}
	if shedding && n.rank != rankDespawn && c.sheds(o, e) {
		p.w.stats.Shed++
		if e.leftOut(c.header.Tick); n.rank == rankPending {
			c.behind = max(c.behind, e.age(c.header.Tick))
			c.header.HasBehind = true
		}
		return
	}
	if p.w.large && n.rank != rankDespawn && o.WireClass().Large {
		c.findLarge(&n, o, e)
	}
	c.list = append(c.list, n)
}

// gatherSingly lists all slots again, individually, if some were listed as runs or unranked.
func (c *cutter) gatherSingly() {
	if slices.ContainsFunc(c.list, func(n candidate) bool { return n.run != nil || n.derived }) {
		c.gather(false)
	}
}

// inOrder writes all candidates in slot order and reports whether they fit, which is the common
// case.
func (c *cutter) inOrder() bool {
	c.next()
	for i := range c.list {
		n := &c.list[i]
		if c.left <= 0 {
			return false
		}
		if n.large {
			if !c.takeLarge(n) && c.lim.Reliable {
				return false
			}
			continue
		}
		if !c.put(n) {
			if len(c.packets)-c.from == c.lim.Packets {
				return false
			}
			if c.next(); !c.put(n) {
				return false
			}
		}
		n.packet = uint8(len(c.packets) - c.from - 1)
	}
	return true
}

// next closes the open packet and begins another.
func (c *cutter) next() {
	n := len(c.packets)
	if n > c.from {
		c.close()
	}
	if n < cap(c.packets) {
		c.packets = c.packets[:n+1]
	} else {
		c.packets = append(c.packets, nil)
	}
	b := c.packets[n][:0]
	if cap(b) == 0 {
		// This has room for a record that does not fit, because a record is written before its size
		// is checked.
		b = make([]byte, 0, max(c.lim.PacketSize, packet.MaxHeader)+8)
	}
	c.header.Index = uint8(n - c.from)
	c.header.Packet = c.first + uint64(n-c.from)
	c.open.Reset(packet.AppendHeader(b, &c.header))
	c.context.Begin(c.header.Tick, c.origin)
	c.context.Put(&c.open)
}

// close ends the open packet.
func (c *cutter) close() {
	padding := c.open.Flush()
	b := c.open.Bytes()
	b[packet.AtFlags] |= byte(padding << packet.AtPadding)
	c.packets[len(c.packets)-1] = b
	c.open.Reset(nil)
}

// put writes the record into the open packet if it fits. Otherwise the packet's bytes are
// unchanged, but the packet must get no more records, because its context is invalid.
func (c *cutter) put(n *candidate) bool {
	if n.run != nil {
		return c.putRun(n)
	}
	start, before := c.open.Mark(), c.open.Len()
	c.record(n)
	if c.open.Len() > c.room {
		c.open.Rewind(start)
		return false
	}
	n.size = uint32(c.open.Len() - before)
	c.left -= int(n.size)
	return true
}

// record writes one record. Without a usable baseline it is a full record.
func (c *cutter) record(n *candidate) {
	if n.run != nil {
		packet.PutGap(&c.open, n.run.first-c.context.Prev-1)
		n.run.put(&c.open)
		c.context.Prev = n.run.last
		return
	}
	w := c.p.w
	head := packet.Head{Kind: packet.Delta, Slot: int(n.slot), Version: n.version}
	if n.derived {
		o := w.objects.Slots[n.slot]
		n.class = uint32(o.WireClass().Index())
		if from := c.basis(o); from.AsOf > 0 { // otherwise all acked ticks are too old
			if r := w.residual(o, from); r != nil {
				head.Base = r.exactly()
				c.context.PutHead(&c.open, &head)
				c.open.PutBits(w.bitsOf(r))
				return
			}
		}
		n.derived = false
	}
	e := c.p.detailed(int(n.slot))
	head.Kind = packet.Despawn
	if e.phase == ended {
		n.class = uint32(len(w.table.Classes()))
		c.context.PutHead(&c.open, &head)
		return
	}
	o := w.objects.Slots[n.slot]
	n.class = uint32(o.WireClass().Index())
	if e.base != 0 {
		if r := c.residual(o, e, n.version); r != nil {
			head.Kind, head.Base, n.full = packet.Delta, r.exactly(), false
			c.context.PutHead(&c.open, &head)
			c.open.PutBits(w.bitsOf(r))
			return
		}
	}
	n.full = true
	c.putFull(&c.open, &c.context, int(n.slot))
}

// basis returns the basis for the record of an object with a derived baseline: the acked ticks of
// the origin, or one exact version if the client lacks the object as of the origin.
func (c *cutter) basis(o *state.Object) basis {
	m, slot := &c.p.ackedTicks, o.Slot()
	v := c.p.View(slot)
	if m.missingIn(c.origin, slot>>6)>>(slot&63)&1 == 0 {
		return basisOf(c.origin, v.Withheld)
	}
	// AsOf is 0 if the version was dropped: there is no baseline
	return basis{Origin: packet.Origin{AsOf: v.AsOf(o, m.newestWith(slot))}, exact: true, withheld: v.Withheld}
}

// exactly returns the base version of a residual if the record has to contain it, or 0.
func (r *residual) exactly() uint64 {
	if r.exact {
		return r.base
	}
	return 0
}

// residual encodes a delta from a state that the client has, or returns nil if the baseline was
// dropped.
func (c *cutter) residual(o *state.Object, e *entry, version uint64) *residual {
	var r *residual
	v := c.p.View(o.Slot())
	if from := c.origin; from.AsOf > 0 && version > from.AsOf && v.Since <= from.Oldest() {
		r = c.p.w.residual(o, basisOf(from, v.Withheld))
		if r != nil && !c.leads(r, o, e, v) {
			r = nil
		}
	}
	if r == nil {
		r = c.p.w.residual(o, basis{Origin: packet.Origin{AsOf: e.base}, exact: true, withheld: v.Withheld})
	}
	return r
}

// leads reports whether the client has acknowledged the versions on which a residual is based.
func (c *cutter) leads(r *residual, o *state.Object, e *entry, v state.View) bool {
	if v.Withheld == 0 {
		return e.hasAcked(max(r.base, v.Since)) && e.hasAcked(max(r.older, v.Since)) && e.hasAcked(max(r.oldest, v.Since))
	}
	base := v.AsOf(o, r.AsOf)
	return base > 0 && e.hasAcked(base) && leadsFrom(r.TrendFrom, o, e, v) && leadsFrom(r.Origin.Oldest(), o, e, v)
}

// leadsFrom reports whether the client has acknowledged the version of an object at a tick of an
// origin, or the object did not exist at that tick.
func leadsFrom(tick uint64, o *state.Object, e *entry, v state.View) bool {
	version := v.AsOf(o, tick)
	return version > 0 && e.hasAcked(version) || o.Hist.Floor(tick, o.Changed()) < 0
}

// finish writes the header fields of all packets that are known only after all records are written.
func (c *cutter) finish() {
	c.close()
	placed := 0
	for i := range c.list {
		switch n := &c.list[i]; n.packet {
		case unplaced:
			if n.run == nil {
				c.leaveOut(n)
			}
		case onStream:
			c.staysBehind(n)
		default:
			placed += n.records()
		}
	}
	if c.far {
		c.leavePlanned()
	}
	// Outstanding records on the stream are pending as well.
	complete := c.header.HasDigest && placed == c.p.pending.Count()
	behind := uint8(min(max(c.behind, c.behindLarge()), math.MaxUint8))
	c.lacking = 0
	if c.header.HasLoading {
		c.lacking = c.missing()
	}
	for _, b := range c.packets[c.from:] {
		b[packet.AtCount] = byte(len(c.packets) - c.from)
		if c.header.HasBehind {
			b[packet.AtBehind] = behind
		}
		if c.header.HasLoading {
			binary.LittleEndian.PutUint32(b[c.header.AtLeft():], uint32(c.lacking))
		}
		if complete {
			b[packet.AtFlags] |= packet.FlagComplete
		}
		c.p.w.stats.Bytes += uint64(len(b))
	}
}

// staysBehind raises the snapshot's lag, in ticks, for a candidate that is in no packet: the lag is
// the time since its last record, or since the tick before its lifetime if it has no record. It
// returns the candidate's entry.
func (c *cutter) staysBehind(n *candidate) *entry {
	e, tick := &c.p.entries[n.slot], c.header.Tick
	if n.rank != rankCopy {
		c.behind = max(c.behind, tick-e.reached(tick))
	}
	return e
}

// leaveOut records that a candidate waits, and the reason if it was not tried.
func (c *cutter) leaveOut(n *candidate) {
	st := &c.p.w.stats
	st.Waited++
	c.staysBehind(n).leftOut(c.header.Tick)
	switch {
	case n.why != 0:
	case c.short:
		n.why = WhyBudget
		st.OverBudget++
	case n.large:
		n.why = WhyStreamFull
		c.waitedLarge++
	default:
		n.why = WhyPackets
	}
}

// commit records the sent packets.
func (c *cutter) commit() {
	p := c.p
	st, spent, f := &p.w.stats, &p.w.spent, &p.flight
	count := len(c.packets) - c.from
	for range count {
		f.add(c.header.Tick)
	}
	p.bucket.spend((c.budget - c.left + 7) / 8)
	st.WaitedLarge += c.waitedLarge
	st.Snapshots++
	st.Packets += uint64(count)
	for i := range c.list {
		n := &c.list[i]
		switch {
		case n.packet == unplaced:
			continue
		case n.run != nil && n.full:
			c.commitFullRun(n)
			continue
		case n.run != nil:
			c.commitRun(n)
			continue
		}
		st.Records++
		spent.classes[n.class] += uint64(n.size)
		if p.w.costs != nil && n.rank != rankDespawn {
			p.w.costs.add(int(n.slot), n.size, n.full)
		}
		if spent.gap--; spent.gap == 0 {
			c.sample(n)
		}
		version := uint64(newestThen)
		if n.derived {
			st.Deltas++
		} else {
			c.commitOne(n)
			version = n.version
		}
		if n.packet == onStream {
			continue
		}
		if p.sentOnce.Has(int(n.slot)) {
			p.sentTwice.Add(int(n.slot))
		}
		p.sentOnce.Add(int(n.slot))
		f.packet(c.first+uint64(n.packet)).note(n.slot, 1<<(n.slot&63), version)
	}
}

// commitOne updates the entry of a sent slot.
func (c *cutter) commitOne(n *candidate) {
	st, e := &c.p.w.stats, &c.p.entries[n.slot]
	switch {
	case n.rank == rankDespawn:
		st.Despawns++
	case !n.full:
		st.Deltas++
	case e.base != 0 && n.large:
		st.FullLarge++
	default:
		c.countFull(e)
	}
	if n.packet == onStream {
		c.commitLarge(n, e)
	}
	e.sent, e.last, e.known = n.version, uint32(c.header.Tick), true
	c.p.neverSent.Remove(int(n.slot))
}
