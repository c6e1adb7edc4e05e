package netvar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Limit bounds one snapshot. Packets is at most MaxPackets. Reliable says that the client's stream
// takes records that are larger than a packet; without it they wait.
type Limit struct {
	Packets, PacketSize int
	Reliable            bool
}

// candidate is one slot that is owed to the client.
type candidate struct {
	version uint64
	slot    uint32
	size    uint32 // of the record, once it is written
	class   uint32 // its index; of a despawn the one after the last
	need    uint64 // among those of one rank; see weigh
	rank    rank
	packet  uint8 // index in the snapshot, or onStream, or unplaced
	full    bool  // was encoded without a baseline
	large   bool  // fits no packet
	why     Why   // it is unplaced: see Explain
}

const (
	onStream = 0xfe
	unplaced = 0xff
)

// rank orders what competes for the room of a snapshot.
type rank uint8

const (
	rankDespawn rank = iota // first: an object that is gone is the worst lie, and the record is tiny
	rankOverdue
	rankOwed
	rankCopy // second copies only if there is room
)

// maxMisfits is after how many records that no longer fit a full snapshot is left alone. Each
// has cost an encoding; the most needed goes first next time, into an empty packet.
const maxMisfits = 32

// cutter cuts one snapshot into packets. It is scratch of a Peer.
type cutter struct {
	p       *Peer
	header  header
	lim     Limit
	list    []candidate
	packets [][]byte
	from    int    // packets that were there before
	buf     []byte // the open packet
	context context
	first   uint64 // id of the first packet
	budget  int    // bytes of records for this snapshot
	left    int    // of them; a record may overdraw it
	shed    uint64 // ticks that the client stays behind in what was shed

	largeRoom int    // bytes that may still go over the stream
	crowded   uint64 // large records that found no room there
}

// AppendSnapshot appends the packets of the client's snapshot of this tick to dst, and returns
// the id of the first; the others follow it. The spare capacity of dst and of the packets in it
// is used again. There is at least one packet even if nothing is owed. What does not fit waits:
// see weigh for what goes first. Limit{1, 100, false} makes a probe. Records that are larger than a
// packet are returned by Large.
//
// The tick must be later than that of the client's last snapshot, and not before the last
// capture.
func (p *Peer) AppendSnapshot(dst [][]byte, tick uint64, lim Limit) (packets [][]byte, first uint64) {
	if tick <= p.tick || tick < p.w.tick {
		panic(fmt.Sprintf("netvar: AppendSnapshot(%d) after snapshot %d and capture %d; ticks must grow", tick, p.tick, p.w.tick))
	}
	p.tick = tick
	c := &p.cut
	c.begin(dst, tick, lim)
	c.gather()
	if !c.inOrder() {
		c.byNeed()
	}
	c.finish()
	c.commit()
	packets, c.packets = c.packets, nil
	return packets, c.first
}

func (c *cutter) begin(dst [][]byte, tick uint64, lim Limit) {
	p := c.p
	c.lim = Limit{Packets: min(max(lim.Packets, 1), MaxPackets), PacketSize: lim.PacketSize, Reliable: lim.Reliable}
	for f := &p.flight; f.next-f.oldest > uint64(MaxInFlight-c.lim.Packets); {
		p.w.stats.Overrun++
		p.lost(f.at(f.oldest))
	}
	c.first = p.flight.next
	c.header = header{Tick: tick, Packet: c.first}
	c.header.HasLoading, c.header.Total = p.first.left > 0, uint32(p.first.total)
	if p.digests > 0 {
		p.digests--
		c.header.HasDigest, c.header.Digest = true, p.w.Digest(p)
	}
	c.budget = p.bucket.fill(tick)
	c.left = c.budget
	c.beginLarge()
	c.packets, c.from = dst, len(dst)
}

// gather lists what is owed and not waiting, in slot order.
func (c *cutter) gather() {
	p := c.p
	c.list, c.shed = c.list[:0], 0
	shedding := p.w.shed > 0 && !c.header.HasDigest // a digest snapshot that sheds would never be complete
	for k, w := range p.owed {
		if !c.header.HasDigest && k < len(p.waiting) {
			w &^= p.waiting[k]
		}
		if k < len(p.large.slots) {
			w &^= p.large.slots[k]
		}
		for ; w != 0; w &= w - 1 {
			slot := k<<6 + bits.TrailingZeros64(w)
			e := &p.entries[slot]
			n := candidate{slot: uint32(slot), version: p.version(slot, e), packet: unplaced}
			switch {
			case e.phase == ended:
				n.rank = rankDespawn
			case e.sent != n.version || e.copies == 0:
				n.rank = rankOwed
			default:
				n.rank = rankCopy
			}
			if shedding && n.rank != rankDespawn && c.sheds(p.w.slots[slot], e) {
				p.w.stats.Shed++
				if n.rank == rankOwed {
					c.shed = max(c.shed, c.header.Tick-e.last)
					c.header.HasBehind = true
				}
				continue
			}
			if p.w.large && n.rank != rankDespawn && p.w.slots[slot].class.large {
				c.measure(&n, p.w.slots[slot], e)
			}
			c.list = append(c.list, n)
		}
	}
}

// inOrder writes everything in slot order and reports whether it fits: the common case.
func (c *cutter) inOrder() bool {
	c.open()
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
			if c.open(); !c.put(n) {
				return false
			}
		}
		n.packet = uint8(len(c.packets) - c.from - 1)
	}
	return true
}

// byNeed chooses what goes, the most needed first, and writes that in slot order.
func (c *cutter) byNeed() {
	if c.budget > 0 { // or nothing may start
		c.weigh()
	}
	slices.SortFunc(c.list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.need, a.need), cmp.Compare(a.slot, b.slot))
	})
	c.packets[len(c.packets)-1] = c.buf // may have grown: keep it for the next time
	c.packets = c.packets[:c.from]
	c.header.HasBehind = true
	c.open()
	c.left, c.largeRoom, c.crowded = c.budget, MaxOutstanding-c.p.large.bytes, 0
	room := c.lim.PacketSize - len(c.buf)
	packet, used, misfits := 0, 0, 0
	for i := range c.list {
		n := &c.list[i]
		n.packet, n.why = unplaced, WhyPackets
		if c.left <= 0 {
			n.why = WhyBudget
			c.p.w.stats.OverBudget++
			continue
		}
		if n.large {
			c.takeLarge(n)
			continue
		}
		if misfits >= maxMisfits {
			continue
		}
		c.context.begin(c.header.Tick) // The longest that the record can be.
		start := len(c.buf)
		c.buf = c.record(c.buf, n)
		size := len(c.buf) - start
		c.buf = c.buf[:start]
		if size > room || used+size > room && packet+1 == c.lim.Packets {
			misfits++
			continue
		}
		if used += size; used > room {
			packet, used = packet+1, size
		}
		n.packet = uint8(packet)
		c.left -= size
	}
	slices.SortFunc(c.list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.packet, b.packet), cmp.Compare(a.slot, b.slot))
	})
	c.context.begin(c.header.Tick)
	c.left = c.budget
	for i := range c.list {
		n := &c.list[i]
		if n.packet == unplaced {
			break
		}
		if n.packet == onStream {
			c.left -= int(n.size)
			continue
		}
		if int(n.packet) != len(c.packets)-c.from-1 {
			c.open()
		}
		start := len(c.buf)
		c.buf = c.record(c.buf, n)
		n.size = uint32(len(c.buf) - start)
		c.left -= int(n.size)
	}
}

// open ends the open packet and begins the next.
func (c *cutter) open() {
	n := len(c.packets)
	if n > c.from {
		c.packets[n-1] = c.buf
	}
	if n < cap(c.packets) {
		c.packets = c.packets[:n+1]
	} else {
		c.packets = append(c.packets, nil)
	}
	c.buf = c.packets[n][:0]
	if cap(c.buf) == 0 {
		c.buf = make([]byte, 0, max(c.lim.PacketSize, maxHeader))
	}
	c.header.Index = uint8(n - c.from)
	c.header.Packet = c.first + uint64(n-c.from)
	c.buf = appendHeader(c.buf, &c.header)
	c.context.begin(c.header.Tick)
}

// put writes the record into the open packet if it fits. If not, the packet is full and must not
// be written to any more.
func (c *cutter) put(n *candidate) bool {
	start := len(c.buf)
	c.buf = c.record(c.buf, n)
	if len(c.buf) > c.lim.PacketSize {
		c.buf = c.buf[:start]
		return false
	}
	n.size = uint32(len(c.buf) - start)
	c.left -= int(n.size)
	return true
}

// record writes one record. Without a usable baseline it is a full one.
func (c *cutter) record(dst []byte, n *candidate) []byte {
	w, e := c.p.w, &c.p.entries[n.slot]
	head := recordHead{Kind: recordDespawn, Slot: int(n.slot), Version: n.version}
	if e.phase == ended {
		n.class = uint32(len(w.table.classes))
		return c.context.appendRecordHead(dst, &head)
	}
	o := w.slots[n.slot]
	n.class = uint32(o.class.index)
	withheld := c.p.withheld(int(n.slot))
	if e.base != 0 {
		if body, ok := w.residual(o, e.base, withheld); ok {
			head.Kind, head.Base, n.full = recordDelta, e.base, false
			return c.context.appendDelta(dst, o.class, &head, body)
		}
	}
	n.full = true
	return c.full(dst, n, e)
}

// full writes a full record.
func (c *cutter) full(dst []byte, n *candidate, e *entry) []byte {
	o := c.p.w.slots[n.slot]
	withheld := c.p.withheld(int(n.slot))
	body, _ := c.p.w.residual(o, 0, withheld)
	head := recordHead{Kind: recordFull, Slot: int(n.slot), Version: n.version, Life: e.life, Class: uint64(o.class.index), Gen: o.id.gen(), Masked: withheld != 0}
	return append(c.context.appendRecordHead(dst, &head), body...)
}

// finish writes into all packets what is known only now.
func (c *cutter) finish() {
	c.packets[len(c.packets)-1] = c.buf
	c.buf = nil
	complete := c.header.HasDigest
	if complete {
		placed := 0
		for i := range c.list {
			if c.list[i].packet < onStream {
				placed++
			}
		}
		complete = placed == c.p.owed.count() && len(c.p.large.list) == 0
	}
	var behind uint8
	if c.header.HasBehind {
		behind = c.behind()
	}
	left := 0
	if c.header.HasLoading {
		left = c.missing()
	}
	for _, b := range c.packets[c.from:] {
		b[atCount] = byte(len(c.packets) - c.from)
		if c.header.HasBehind {
			b[atBehind] = behind
		}
		if c.header.HasLoading {
			binary.LittleEndian.PutUint32(b[c.header.atLeft():], uint32(left))
		}
		if complete {
			b[atFlags] |= flagComplete
		}
		c.p.w.stats.Bytes += uint64(len(b))
	}
}

// behind is by how many ticks the client stays behind in what did not fit or was shed: since its last
// record, or since before its lifetime if it has none.
func (c *cutter) behind() uint8 {
	behind := max(c.shed, c.behindLarge())
	for i := range c.list {
		n := &c.list[i]
		if n.packet < onStream || n.rank == rankCopy {
			continue
		}
		behind = max(behind, c.header.Tick-c.p.entries[n.slot].reached())
	}
	return uint8(min(behind, math.MaxUint8))
}

// commit remembers what was sent.
func (c *cutter) commit() {
	p := c.p
	st, spent, f := &p.w.stats, &p.w.spent, &p.flight
	count := len(c.packets) - c.from
	for range count {
		f.add(c.header.Tick)
	}
	p.bucket.spend(c.budget - c.left)
	st.WaitedLarge += c.crowded
	st.Snapshots++
	st.Packets += uint64(count)
	for i := range c.list {
		n := &c.list[i]
		if n.packet == unplaced {
			st.Waited++
			continue
		}
		st.Records++
		spent.classes[n.class] += uint64(n.size)
		if spent.gap--; spent.gap == 0 {
			c.sample(n)
		}
		e := &p.entries[n.slot]
		if n.packet == onStream {
			c.commitLarge(n, e)
		}
		switch {
		case n.rank == rankDespawn:
			st.Despawns++
		case !n.full:
			st.Deltas++
		case e.base != 0 && n.large:
			st.FullLarge++
		case e.base != 0:
			st.FullEvicted++
		case e.full == fullRequested:
			st.FullRequested++
		case e.full == fullVisible:
			st.FullVisible++
		case e.full == fullMasked:
			st.FullMasked++
		default:
			st.FullFirst++
		}
		if e.sent != n.version {
			e.sent, e.copies, e.out = n.version, 0, 0
		}
		e.last, e.known = c.header.Tick, true
		if n.packet == onStream {
			e.copies = 1
			continue
		}
		e.out++
		if e.copies++; e.copies >= 2 {
			e.copies = 2
			p.waiting.set(int(n.slot))
		}
		s := f.at(c.first + uint64(n.packet))
		s.records = append(s.records, sentRecord{version: n.version, slot: n.slot})
	}
}
