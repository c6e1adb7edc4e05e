package netvar

import (
	"math"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
)

// A small change of a large value costs the encoding of that change, not that of the value.
func TestSmallChangesOfLargeValuesAreAllThatIsEncoded(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.deliver()
	q.streamed()
	q.w.stats = Stats{}
	for i := range 20 {
		q.editHoard(o).Gold = uint16(i + 1)
		q.deliver()
	}
	if s := &q.w.stats; s.Encoded != 20 || s.Deltas != 20 {
		t.Errorf("for %d changes %d differences were encoded", s.Deltas, s.Encoded)
	}
	q.editHoard(o).Loot = nil // and then all of it, which is larger than a packet again
	q.deliver()
	q.editHoard(o).Loot = list4k()
	q.w.stats = Stats{}
	q.deliver()
	if s := &q.w.stats; s.Encoded != 2 || s.Large != 1 || s.FullLarge != 1 {
		t.Errorf("%d were encoded for %d large records", s.Encoded, s.Large)
	}
}

// A record that exactly fits the room in a packet is not large, and one with another bit is. If
// there is a baseline the size of the difference counts, even if the full value is smaller.
func TestARecordBeyondAPacketIsLarge(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Gold: 60_000, Loot: list4k()}, 1)
	q.deliver()
	q.streamed()
	h := q.editHoard(o)
	h.Gold = 0
	for i := range h.Loot {
		h.Loot[i] = loot{ID: uint32(i), Kind: 1}
	}
	q.tick++
	q.w.Capture(q.tick)
	c, e := &q.p.cut, q.p.detailed(0)
	full, base := int(q.w.residual(o, basis{}).n), e.base
	delta := int(q.w.residual(o, basis{Origin: packet.Origin{AsOf: base}, exact: true}).n)
	if delta <= full {
		t.Fatalf("the difference takes %d bits, all of it %d", delta, full)
	}
	c.origin = packet.Origin{}
	for _, size := range []int{full, delta} {
		for _, room := range []int{size - 1, size, size + 1} {
			e.base = base
			if size == full {
				e.base = 0
			}
			c.room = room + 8*(packet.MaxHeader+packet.MaxHead)
			n := candidate{version: o.Changed()}
			if c.findLarge(&n, o, e); n.large != (room < size) {
				t.Errorf("%d bits in a room of %d, version %d acknowledged: large is %v", size, room, e.base, n.large)
			}
			if n.large && n.size != uint32(8*packet.MaxLargeHead+full) {
				t.Errorf("it is to take %d bits, want those of all of it, %d", n.size, full)
			}
		}
	}
}

// A client has reached the tick of an object's last record, or the tick before its lifetime.
func TestReachedIsTheLastRecordOrTheTickBefore(t *testing.T) {
	for _, c := range []struct {
		e    entry
		want uint64
	}{
		{entry{life: 50, last: 60, known: true, detail: &detail{sent: 58}}, 60},
		{entry{life: 50, last: 60, detail: &detail{sent: 58}}, 60},
		{entry{life: 50, last: 60, detail: &detail{}}, 49},
		{entry{life: 50, last: 60, known: true, detail: &detail{}}, 59},
	} {
		if got := c.e.reached(100); got != c.want {
			t.Errorf("%+v of %+v has reached %d, want %d", c.e, c.e.detail, got, c.want)
		}
	}
}

// The head of a large record has room for the largest numbers, and its memory is that of the record
// and a few bytes.
func TestTheHeadOfALargeRecordIsBounded(t *testing.T) {
	q := newPair(t, 1<<40)
	q.spawnRock(q.w, rock{}, q.tick)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, q.tick)
	q.p.large.last = math.MaxUint64 - 1
	packets, _ := q.next()
	record, full := q.p.Large()[0], int(q.w.residual(o, basis{}).n)
	if head := len(record) - full/8; head < 1+1+4+10+1 || head > packet.MaxLargeHead || packet.MaxLargeHead != 1+1+4+10+1+(36+3+77+77+40+44+7)/8 {
		t.Errorf("a head of %d bytes, with room for %d", head, packet.MaxLargeHead)
	}
	if l := &q.p.large; l.bytes != len(record) || l.list[0].size != uint32(len(record)) || cap(l.sent[0]) > len(record)+80 {
		t.Errorf("%d bytes are outstanding of %d, in %d", l.bytes, len(record), cap(l.sent[0]))
	}
	if n := q.w.stats.Bytes; n != uint64(len(packets[0])+len(record)) {
		t.Errorf("%d bytes are counted of a packet of %d and a record of %d", n, len(packets[0]), len(record))
	}
}

// The tick of a large record is completed from that of the newest packet or, before there is one,
// from StartAt.
func TestTheTickOfALargeRecordIsNearToTheNewest(t *testing.T) {
	const start = 1 << 40
	for _, first := range []bool{true, false} {
		q := newPair(t, start)
		if !first {
			q.deliver()
			q.r.StartAt(0)
		}
		o := q.spawnHoard(q.w, hoard{Loot: list4k()}, q.tick)
		q.next() // its packet is later than the record
		q.apply(q.p.Large()[0])
		if c, ok := q.r.Get(o.ID()); !ok || c.Changed() != q.tick || q.r.Tick() != q.tick {
			t.Errorf("first %v: the record is there %v, as of %d at %d, want %d", first, ok, c.Changed(), q.r.Tick(), q.tick)
		}
	}
}

// A large record of the snapshot that a client has begins no other snapshot.
func TestALargeRecordOfTheSameTickBeginsNoSnapshot(t *testing.T) {
	q := newPair(t, 0)
	q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	packets, _ := q.next()
	mustApply(t, q.r, nil, packets...)
	q.apply(q.p.Large()[0])
	if mustApply(t, q.r, nil, packets...); q.r.Stats().Packets != 1 || q.r.Stats().Repeated != 1 {
		t.Errorf("after the record the packet is a new one: %+v", *q.r.Stats())
	}
}
