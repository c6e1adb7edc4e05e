package netvar

import (
	"bytes"
	"errors"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// list4k returns a list of about 4 kB.
func list4k() []loot {
	list := make([]loot, 800)
	for i := range list {
		list[i] = loot{ID: 1<<24 + uint32(i), Kind: uint8(i)}
	}
	return list
}

// streamed applies and acknowledges the large records of the last snapshot.
func (q *pair) streamed() (n int) {
	q.t.Helper()
	for _, b := range q.p.Large() {
		q.p.AckLarge(q.apply(b))
		n++
	}
	return n
}

func (q *pair) apply(record []byte) (id uint64) {
	q.t.Helper()
	id, err := q.r.ApplyLarge(record)
	if err != nil {
		q.t.Fatalf("record refused: %v", err)
	}
	return id
}

// sent is a tick without losses. It returns the large record of its snapshot, or nil.
func (q *pair) sent() (record []byte) {
	q.t.Helper()
	q.deliver()
	for _, b := range q.p.Large() {
		record = bytes.Clone(b)
	}
	return record
}

func (q *pair) editHoard(o *state.Object) *hoard { q.w.Edit(o); return live[hoard](o) }

// sameHoard fails unless the client has exactly these values.
func (q *pair) sameHoard(o *state.Object) {
	q.t.Helper()
	c, ok := q.r.Get(o.ID())
	if !ok {
		q.t.Fatalf("the client does not have %x", uint64(o.ID()))
	}
	if a, b := live[hoard](c), live[hoard](o); a.Gold != b.Gold || len(a.Loot) != len(b.Loot) || len(a.Loot) > 0 && a.Loot[0] != b.Loot[0] {
		q.t.Errorf("client shows %d gold and %d loot, the server %d and %d", a.Gold, len(a.Loot), b.Gold, len(b.Loot))
	}
	if c.Owner() != o.Owner() {
		q.t.Errorf("client shows owner %d, the server %d", c.Owner(), o.Owner())
	}
}

// Rule 9: a record that fits no packet is sent separately and in full; a small change of it is a
// delta.
func TestListOfFourKilobytesGoesReliablyAndItsChangesInPackets(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Gold: 1, Loot: list4k()}, 1)
	rock := q.spawnRock(q.w, rock{X: 1}, 1)
	record := q.sent()
	if st := q.w.Stats(); len(record) < 4000 || st.Large != 1 || st.FullFirst != 2 {
		t.Fatalf("a record of %d bytes: %+v", len(record), st)
	}
	if _, ok := q.r.Get(rock.ID()); !ok {
		t.Error("what fits waits for what does not")
	}
	q.p.AckLarge(q.apply(record))
	q.sameHoard(o)
	if q.p.pending.Count() != 0 || q.p.large.bytes != 0 {
		t.Error("something is still owed")
	}
	q.editHoard(o).Gold = 2
	q.editHoard(o).Loot[0].Kind = 77
	packets, _ := q.next()
	if len(packets) != 1 || len(packets[0]) > 40 || len(q.p.Large()) != 0 {
		t.Errorf("%d packets, the first of %d bytes, and %d large records for a small change", len(packets), len(packets[0]), len(q.p.Large()))
	}
	mustApply(t, q.r, q.p, packets...)
	q.sameHoard(o)
	if st := *q.r.Stats(); st.Large != 1 || st.Records != 3 {
		t.Errorf("the client has counted %d large records of %d", st.Large, st.Records)
	}
	if got := kinds(q.r.Events()); got != "SS" || q.w.stats.Deltas != 1 {
		t.Errorf("events %s, %d deltas", got, q.w.stats.Deltas)
	}
}

// A difference that fits no packet makes the record a full one.
func TestLargeDifferenceGoesInFull(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{}, 1)
	if q.deliver(); len(q.p.Large()) != 0 {
		t.Fatal("a small value went over the stream")
	}
	q.editHoard(o).Loot = list4k()
	q.deliver()
	if q.streamed() != 1 || q.w.stats.FullLarge != 1 {
		t.Errorf("%d counted as too large for a delta", q.w.stats.FullLarge)
	}
	q.sameHoard(o)
	q.editHoard(o).Loot = nil
	q.deliver()
	q.sameHoard(o)
	if q.w.stats.Large != 1 || q.w.stats.Deltas != 1 {
		t.Errorf("dropping it all took %d large records, %d deltas", q.w.stats.Large-1, q.w.stats.Deltas)
	}
}

func TestNothingOfAnObjectIsSentWhileItsLargeRecordIsOutstanding(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	records := q.w.stats.Records
	for i := range 20 {
		q.editHoard(o).Gold = uint16(i)
		q.w.SetOwner(o, uint64(i))
		q.deliver()
	}
	if q.w.stats.Records != records || len(ids(q.r)) != 0 {
		t.Errorf("%d records meanwhile", q.w.stats.Records-records)
	}
	q.p.AckLarge(q.apply(record)) // of tick 1, after packets of 20 later ones
	q.deliver()
	q.sameHoard(o)
	if q.w.stats.Deltas != 1 {
		t.Errorf("%d deltas to the record's version, want 1", q.w.stats.Deltas)
	}
}

func TestDespawnWaitsForTheLargeRecord(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	q.w.Despawn(o)
	q.deliver()
	q.deliver()
	if q.w.stats.Despawns != 0 {
		t.Fatal("the despawn has overtaken the record, which would bring the object back")
	}
	q.p.AckLarge(q.apply(record))
	q.deliver()
	if got := kinds(q.r.Events()); got != "SD" || q.p.pending.Count() != 0 {
		t.Errorf("events %s, %d owed", got, q.p.pending.Count())
	}
}

// The lifetime of the record is over when its acknowledgement arrives.
func TestHiddenAndShownWhileTheLargeRecordIsOutstanding(t *testing.T) {
	q := newPair(t, 0)
	q.p.Handle = 0
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	for range 2 {
		q.w.SetAudience(o, clientSet(0))
		q.deliver()
		q.w.SetAudience(o, nil)
		q.deliver()
	}
	q.p.AckLarge(q.apply(record))
	if q.p.detailed(o.Slot()).base != 0 {
		t.Fatal("a record of an earlier lifetime is a baseline")
	}
	q.deliver()
	if q.streamed() != 1 {
		t.Fatal("the new lifetime does not begin")
	}
	q.sameHoard(o)
	if got := kinds(q.r.Events()); got != "SDS" {
		t.Errorf("events %s", got)
	}
	q.w.SetAudience(o, clientSet(0))
	q.deliver()
	if got := kinds(q.r.Events()); got != "D" {
		t.Errorf("events %s of hiding it", got)
	}
}

// A packet with the new object of a slot would overtake the large record of the old one, also if a
// plan chooses the client's next records.
func TestSlotIsTakenAgainWhileTheLargeRecordIsOutstanding(t *testing.T) {
	for _, farBehind := range []int{farBehind, 1} {
		q := newPair(t, 0)
		q.w.farBehind = farBehind
		o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
		record := q.sent()
		q.w.Despawn(o)
		q.deliver()
		next := q.spawnRock(q.w, rock{X: 5}, q.tick)
		beside := q.spawnRock(q.w, rock{X: 6}, q.tick)
		q.w.SetWeight(beside, 4) // earlier in a plan
		if next.Slot() != o.Slot() {
			t.Fatal("another slot")
		}
		q.deliver()
		q.deliver()
		if _, ok := q.r.Get(beside.ID()); !ok {
			t.Error("the slot beside it waits as well")
		}
		q.p.AckLarge(q.apply(record))
		q.deliver()
		if q.rock(next.ID()).X != 5 || kinds(q.r.Events()) != "SSDS" {
			t.Error("the slot's new object is not there")
		}
	}
}

func TestOwnerChangesWhileTheLargeRecordIsOutstanding(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	q.w.SetOwner(o, 9)
	q.deliver()
	q.p.AckLarge(q.apply(record))
	q.deliver()
	q.sameHoard(o)
}

// Applying a record counts as applying a packet of its tick: earlier packets, even of other
// lifetimes, must not be applied after it.
func TestEarlierPacketIsDiscardedAfterALargeRecord(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Gold: 1}, 1)
	rock := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.editHoard(o).Gold = 2
	q.edit(rock).X = 2
	early, _ := q.next()
	q.editHoard(o).Loot = list4k()
	same, _ := q.next()
	q.p.AckLarge(q.apply(q.p.Large()[0])) // overtakes both
	if a, err := q.r.Apply(early[0]); err != nil || a.Ack {
		t.Errorf("a packet from before the record: %+v, %v", a, err)
	}
	if a, err := q.r.Apply(same[0]); err != nil || !a.Ack || !a.SnapshotComplete {
		t.Errorf("the packet of the record's own tick: %+v, %v", a, err)
	}
	q.sameHoard(o)
	if q.rock(rock.ID()).X != 2 {
		t.Error("the second copy did not arrive")
	}
}

// After RequestFull, a record sent before is no baseline, but it still arrives.
func TestFullStateIsRequestedWhileALargeRecordIsOutstanding(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	q.p.RequestFull()
	if q.deliver(); len(q.p.Large()) != 0 {
		t.Fatal("a second record while one is outstanding")
	}
	q.p.AckLarge(q.apply(record))
	if q.p.detailed(o.Slot()).base != 0 {
		t.Fatal("a record from before the request is a baseline")
	}
	q.deliver()
	if q.streamed() != 1 || q.w.stats.FullRequested != 1 || q.p.pending.Count() != 0 {
		t.Errorf("%d sent on request, %d owed", q.w.stats.FullRequested, q.p.pending.Count())
	}
	q.sameHoard(o)
}

func TestSnapshotIsNotCompleteWhileALargeRecordIsOutstanding(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.p.RequestDigest(3)
	record := q.sent()
	if d, _ := q.r.Digest(); d != replica.DigestNone {
		t.Errorf("digest %v of the snapshot that sent it", d)
	}
	q.deliver()
	if d, _ := q.r.Digest(); d != replica.DigestNone {
		t.Errorf("digest %v while it is outstanding", d)
	}
	q.p.AckLarge(q.apply(record))
	q.deliver()
	if d, _ := q.r.Digest(); d != replica.DigestEqual {
		t.Errorf("digest %v afterwards", d)
	}
	q.sameHoard(o)
}

// Messages WithState wait while a snapshot is behind: it is, until the record is acknowledged.
func TestSnapshotsSayThatALargeRecordIsBehind(t *testing.T) {
	q := newPair(t, 10)
	o := q.spawnHoard(q.w, hoard{}, 1)
	q.deliver()
	q.editHoard(o).Loot = list4k()
	var reached uint64
	for range 5 {
		packets, _ := q.next()
		a, err := q.r.Apply(packets[0])
		if err != nil {
			t.Fatal(err)
		}
		q.p.Ack([]Range{{a.Packet, a.Packet}})
		if reached = a.Reached; reached != 11 {
			t.Errorf("at tick %d everything is there of %d, want 11", a.Tick, reached)
		}
	}
}

// The joiner's first state is spread over ticks by the budget; a record may overdraw it.
func TestLargeRecordsOfAJoinerOverdrawTheBudgetAndCountAsMissing(t *testing.T) {
	q := newPair(t, 0)
	q.w.ClosePeer(q.p)
	for range 3 {
		q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	}
	q.w.Capture(1)
	q.tick = 1
	q.p = q.w.NewPeer(1)
	q.p.SetBudget(Budget{PerTick: 500, Burst: 500})
	var at []uint64
	left := 3
	for range 60 {
		packets, _ := q.next()
		for _, b := range q.p.Large() {
			at = append(at, q.tick)
			q.apply(b)
		}
		a, err := q.r.Apply(packets[0])
		if err != nil {
			t.Fatal(err)
		}
		q.p.Ack([]Range{{a.Packet, a.Packet}})
		if a.Total != 3 || a.Left != left {
			t.Fatalf("tick %d: %d of %d missing, want %d", a.Tick, a.Left, a.Total, left)
		}
		if q.tick == 40 {
			q.p.AckLarge(2)
			left = 1
		}
	}
	if len(at) != 3 || at[1]-at[0] < 8 || at[2]-at[1] < 8 {
		t.Errorf("records of 4 kB at ticks %v with 500 bytes a tick", at)
	}
}

func TestOutstandingRecordsAreBounded(t *testing.T) {
	q := newPair(t, 0)
	const n = 40
	for range n {
		q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	}
	sent := 0
	var last uint64
	for range 20 {
		q.deliver()
		sent += len(q.p.Large())
		for _, b := range q.p.Large() {
			last = q.apply(b)
		}
		if q.p.large.bytes > MaxOutstanding {
			t.Fatalf("%d bytes outstanding", q.p.large.bytes)
		}
	}
	if sent >= n || sent < MaxOutstanding/6000 || q.w.stats.WaitedLarge == 0 {
		t.Errorf("%d of %d sent without an acknowledgement, %d waited", sent, n, q.w.stats.WaitedLarge)
	}
	q.p.AckLarge(last)
	for range 10 {
		q.deliver()
		sent += q.streamed()
	}
	if sent != n || q.p.pending.Count() != 0 || q.p.large.bytes != 0 {
		t.Errorf("%d of %d sent, %d owed, %d bytes outstanding", sent, n, q.p.pending.Count(), q.p.large.bytes)
	}
}

// Small records do not take the room that the largest one needs, which waits longer.
func TestLargestRecordIsNotStarved(t *testing.T) {
	q := newPair(t, 0)
	var small []*state.Object
	for range 30 {
		small = append(small, q.spawnHoard(q.w, hoard{Loot: list4k()[:300]}, 1))
	}
	for range 20 {
		q.deliver()
		q.streamed()
	}
	whole := make([]loot, 1000)
	for i := range whole {
		whole[i] = loot{ID: 1<<31 + uint32(i), Kind: uint8(i)}
	}
	big := q.spawnHoard(q.w, hoard{Loot: whole}, q.tick)
	var pending []uint64
	for range 100 {
		for _, o := range small {
			for i := range live[hoard](o).Loot {
				q.editHoard(o).Loot[i].ID += 1 << 22
			}
		}
		q.deliver()
		for _, b := range q.p.Large() {
			pending = append(pending, q.apply(b))
		}
		if len(pending) > 0 { // one is acknowledged per tick, so there is room for one
			q.p.AckLarge(pending[0])
			pending = pending[1:]
		}
	}
	if _, ok := q.r.Get(big.ID()); !ok {
		t.Error("the largest never went")
	}
}

func TestLargeRecordWaitsWhileTheStreamIsBusyAndForNoProbe(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	for _, lim := range []Limit{{Packets: 10, PacketSize: packet.MaxSize}, {Packets: 1, PacketSize: 100}} {
		q.tick++
		q.w.Capture(q.tick)
		packets, _ := snap(q.p, q.tick, lim)
		mustApply(t, q.r, q.p, packets...)
		if len(q.p.Large()) != 0 {
			t.Errorf("a record went with %+v", lim)
		}
	}
	if q.w.stats.WaitedLarge != 2 || q.w.stats.Waited != 2 {
		t.Errorf("%d waited, %d of them for the stream", q.w.stats.Waited, q.w.stats.WaitedLarge)
	}
	q.deliver()
	q.streamed()
	q.sameHoard(o)
}

func TestAcknowledgementsOfLargeRecordsThatWereNeverSent(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.p.AckLarge(1)
	q.deliver()
	q.p.AckLarge(2)
	q.p.AckLarge(1 << 63)
	if q.w.stats.AckUnknown != 3 || len(q.p.large.list) != 1 {
		t.Errorf("%d unknown, %d outstanding", q.w.stats.AckUnknown, len(q.p.large.list))
	}
	q.p.AckLarge(0)
	q.streamed()
	q.p.AckLarge(1)
	if q.w.stats.AckStale != 2 || len(q.p.large.list) != 0 {
		t.Errorf("%d stale, %d outstanding", q.w.stats.AckStale, len(q.p.large.list))
	}
	q.sameHoard(o)
}

// All clients share one encoding.
func TestLargeRecordIsEncodedOnceForAllClients(t *testing.T) {
	q := newPair(t, 0)
	others := []*Peer{q.w.NewPeer(1), q.w.NewPeer(1)}
	q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.deliver()
	for _, p := range others {
		snap(p, q.tick, wide)
		if len(p.Large()) != 1 {
			t.Error("another client gets none")
		}
	}
	if q.w.stats.Encoded != 1 {
		t.Errorf("encoded %d times", q.w.stats.Encoded)
	}
}

func TestMalformedLargeRecordChangesNothing(t *testing.T) {
	q := newPair(t, 0)
	q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	before := picture(q.r)
	other, noTick := bytes.Clone(record), bytes.Clone(record)
	other[6] = 2
	clear(noTick[2:6])
	padded := append([]byte{packet.Coder, 8}, record[2:]...)
	for _, b := range [][]byte{noTick, padded, other} {
		if _, err := q.r.ApplyLarge(b); !errors.Is(err, packet.ErrHeader) {
			t.Errorf("a head that cannot be: %v", err)
		}
	}
	for name, b := range map[string][]byte{
		"empty": nil, "cut": record[:len(record)-1], "longer": append(bytes.Clone(record), 0), "no record": record[:7], "more padding than a byte": padded,
		"another coder": append([]byte{99}, record[1:]...), "another id": other,
		"a despawn": append([]byte{packet.Coder, 3}, append(bytes.Clone(record[2:7]), 0b000_111_0_1)...), "no tick": noTick,
	} {
		if id, err := q.r.ApplyLarge(b); err == nil || id != 0 {
			t.Errorf("%s: applied as %d", name, id)
		}
		if !bytes.Equal(before, picture(q.r)) {
			t.Fatalf("%s: something changed", name)
		}
	}
	if n := q.r.Stats().Refused; n != 12 {
		t.Errorf("%d of 12 records are counted as refused", n)
	}
	if id := q.apply(record); id != 1 {
		t.Errorf("id %d", id)
	}
	if _, err := q.r.ApplyLarge(record); !errors.Is(err, packet.ErrHeader) {
		t.Errorf("twice: %v", err)
	}
}

// With any bytes as a record, for a replica with some state: no panic, and an error changes no
// state.
func FuzzReplicaApplyLarge(f *testing.F) {
	s := newSchema(f)
	w := NewWorld(s.table)
	p := w.NewPeer(50)
	s.spawnHoard(w, hoard{Gold: 3, Loot: list4k()[:300]}, 50)
	w.Capture(50)
	snap(p, 50, wide)
	record := p.Large()[0]
	f.Add(record[6:], uint16(0), byte(0))
	f.Add(record[6:], uint16(9), byte(0x41))
	f.Add(record[6:], uint16(1), record[1])
	f.Add([]byte{1, 4, 0, 0, 0, 2, 1, 0, 0, 0}, uint16(0), byte(0))
	f.Add([]byte{1, 5}, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip byte) {
		_, r, next := scene(t)
		b = append(wire.AppendUint32([]byte{packet.Coder, 0}, 53), b...)
		if int(at) < len(b) {
			b[at] ^= flip
		}
		before, living := picture(r), len(ids(r))
		if _, err := r.ApplyLarge(b); err != nil {
			if !bytes.Equal(before, picture(r)) || len(r.Events()) != 0 {
				t.Fatalf("refused, but something changed: %v", err)
			}
			return
		}
		mustPair(r, t, living)
		for _, packet := range next {
			_, _ = r.Apply(packet) // with any result: no panic
		}
	})
}

// Sending the same large value repeatedly does not allocate.
func TestCuttingLargeRecordsDoesNotAllocate(t *testing.T) {
	q := newPair(t, 0)
	q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	var packets [][]byte
	round := func() {
		q.tick++
		q.w.Capture(q.tick)
		q.p.RequestFull()
		packets, _ = q.p.AppendSnapshot(packets[:0], q.tick, wide)
		q.p.AckLarge(q.p.large.last)
	}
	for range 10 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 || q.p.large.last < 100 {
		t.Errorf("%v allocations for each of %d", n, q.p.large.last)
	}
}

// A record that finds no room on the stream reserves all remaining room, so that smaller records
// wait too.
func TestARecordWithoutRoomReservesTheStream(t *testing.T) {
	c := cutter{lim: Limit{Reliable: true}, largeRoom: 1000, left: 3200 + 4800 + 1}
	for i, set := range []struct {
		bytes, room int
		fits        bool
	}{{400, 600, true}, {600, 0, true}, {1, 0, false}} {
		n := candidate{size: uint32(8 * set.bytes), packet: unplaced}
		if got := c.takeLarge(&n); got != set.fits || c.largeRoom != set.room {
			t.Errorf("record %d: %v, and %d bytes are left, want %v and %d", i, got, c.largeRoom, set.fits, set.room)
		}
		if set.fits != (n.packet == onStream) || set.fits == (n.why == WhyStreamFull) {
			t.Errorf("record %d has the place %d, for reason %d", i, n.packet, n.why)
		}
	}
	if c.waitedLarge != 1 || c.left != 1 {
		t.Errorf("%d found no room, and the budget has %d bits left", c.waitedLarge, c.left)
	}
	c.largeRoom = 1000
	if c.takeLarge(&candidate{size: 8*1000 + 1}) || c.largeRoom != 0 {
		t.Errorf("a record of a bit too much leaves %d bytes", c.largeRoom)
	}
}
