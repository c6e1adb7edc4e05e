package netvar

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// pair is a world with one client; the test decides which packets arrive.
type pair struct {
	schema
	t    *testing.T
	w    *World
	p    *Peer
	r    *replica.Replica
	tick uint64
	from uint64 // no earlier moment is drawn
}

func newPair(t *testing.T, tick uint64) *pair {
	s := newSchema(t)
	q := &pair{schema: s, t: t, w: NewWorld(s.table), r: replica.New(s.table), tick: tick}
	q.p = q.w.NewPeer(tick + 1)
	q.r.StartAt(tick)
	return q
}

// next is one tick of the server: capture and snapshot.
func (q *pair) next() (packets [][]byte, first uint64) {
	q.tick++
	q.w.Capture(q.tick)
	return snap(q.p, q.tick, wide)
}

// deliver is a tick in which all packets arrive and are acknowledged.
func (q *pair) deliver() {
	q.t.Helper()
	packets, _ := q.next()
	mustApply(q.t, q.r, q.p, packets...)
}

func (q *pair) rock(id state.ID) rock {
	q.t.Helper()
	o, ok := q.r.Get(id)
	if !ok {
		q.t.Fatalf("client has no object %x", uint64(id))
	}
	return *live[rock](o)
}

func (q *pair) edit(o *state.Object) *rock { q.w.Edit(o); return live[rock](o) }

func kinds(events []replica.Event) (s string) {
	for _, e := range events {
		s += [...]string{replica.Spawn: "S", replica.Change: "C", replica.Despawn: "D"}[e.Kind]
	}
	return s
}

// Rule 2: pending is determined by the tick of the change. The client applied B, its
// acknowledgement is lost, and after the return to A no value differs from the acknowledged
// version: A must be sent all the same.
func TestABAEditAcrossALostAcknowledgement(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver() // A is acknowledged
	q.edit(o).X = 2
	b, _ := q.next()
	mustApply(t, q.r, nil, b...) // B arrives, its acknowledgement does not
	q.edit(o).X = 1
	a, _ := q.next()
	mustApply(t, q.r, q.p, a...)
	if got := q.rock(o.ID()); got.X != 1 {
		t.Errorf("client shows %+v", got)
	}
	if q.w.stats.Deltas != 2 {
		t.Errorf("%d deltas, want 2", q.w.stats.Deltas)
	}
}

// Rule 5: an acknowledgement of a version that the server has dropped since makes it the baseline,
// and the next record is full, counted as evicted.
func TestLateAcknowledgementFromBeforeTheBaselineWasEvicted(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	old, first := q.next()
	mustApply(t, q.r, nil, old...)
	for range state.Horizon + 10 {
		q.edit(o).X++
		q.tick++
		q.w.Capture(q.tick) // no snapshot: the window is closed
	}
	q.p.Ack([]Range{{first, first}})
	q.edit(o).X++
	q.deliver()
	if st := q.w.Stats(); st.FullEvicted != 1 || st.Deltas != 0 {
		t.Errorf("%d full evicted, %d deltas", st.FullEvicted, st.Deltas)
	}
	if got := q.rock(o.ID()); got.X != state.Horizon+11 {
		t.Errorf("client shows %+v", got)
	}
	q.edit(o).X = 0
	q.deliver()
	if q.rock(o.ID()).X != 0 || q.w.stats.Deltas != 1 {
		t.Error("no delta after the full record was acknowledged")
	}
}

// Rule 4: acknowledgements of the slot's former object do not count for the new one.
func TestObjectRespawnedInTheSameSlot(t *testing.T) {
	q := newPair(t, 0)
	a := q.spawnRock(q.w, rock{X: 1}, 1)
	b, first := q.next()
	mustApply(t, q.r, nil, b...)
	q.w.Despawn(a)
	q.next() // the despawn is lost
	c := q.spawnShip(q.w, ship{Name: "c"}, 7, q.tick)
	if c.ID().Slot() != a.ID().Slot() || c.ID() == a.ID() {
		t.Fatalf("ids %x and %x", uint64(a.ID()), uint64(c.ID()))
	}
	n, _ := q.next()
	q.p.Ack([]Range{{first, first}}) // late, of the rock
	mustApply(t, q.r, q.p, n...)
	events := q.r.Events()
	if got := kinds(events); got != "SDS" {
		t.Fatalf("events %s, want spawn, despawn, spawn", got)
	}
	if _, ok := q.r.Get(a.ID()); ok || events[0].Object.Alive() {
		t.Error("the former object is still found")
	}
	o, ok := q.r.Get(c.ID())
	if !ok || live[ship](o).Name != "c" || o.Owner() != 7 {
		t.Error("the new object is not there as it is")
	}
	q.w.Despawn(c)
	q.deliver()
	if got := kinds(q.r.Events()); got != "D" {
		t.Errorf("events %s, want despawn", got)
	}
}

// Rule 8: a client that missed the despawn is told of it even if the slot's next object dies before
// its first record was sent.
func TestDespawnIsRememberedAcrossLifetimes(t *testing.T) {
	q := newPair(t, 0)
	a := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.w.Despawn(a)
	q.tick++
	q.w.Capture(q.tick)
	c := q.spawnRock(q.w, rock{}, q.tick)
	q.tick++
	q.w.Capture(q.tick)
	q.w.Despawn(c)
	q.deliver()
	if got := kinds(q.r.Events()); got != "SD" {
		t.Errorf("events %s, want SD", got)
	}
	if packets, _ := q.next(); len(packets[0]) > packet.MaxHeader || q.p.pending.Count() != 0 {
		t.Error("the despawn is still owed after its acknowledgement")
	}
}

func TestJoinerWithPendingChanges(t *testing.T) {
	q := newPair(t, 40)
	o := q.spawnRock(q.w, rock{X: 1}, 41)
	q.deliver()
	q.edit(o).X = 2 // not captured yet
	d := q.spawnRock(q.w, rock{X: 9}, 41)
	gone := q.spawnRock(q.w, rock{}, 41)
	q.deliver()
	q.w.Despawn(gone)
	q.edit(o).X = 3
	p, r := q.w.NewPeer(q.tick+1), replica.New(q.table)
	q.deliver()
	packets, first := snap(p, q.tick, wide)
	if first != 1 {
		t.Errorf("first packet is %d, want 1", first)
	}
	mustApply(t, r, p, packets...)
	if got := kinds(r.Events()); got != "SS" {
		t.Errorf("events %s, want SS", got)
	}
	for id, want := range map[state.ID]int32{o.ID(): 3, d.ID(): 9} {
		if got, ok := r.Get(id); !ok || live[rock](got).X != want {
			t.Errorf("joiner shows %+v of %x", got, uint64(id))
		}
	}
	if p.pending.Count() != 0 {
		t.Error("something is still owed to the joiner")
	}
}

func TestSpawnAndDespawnInOneTickIsNothing(t *testing.T) {
	q := newPair(t, 0)
	q.w.Despawn(q.spawnRock(q.w, rock{}, 1))
	packets, _ := q.next()
	if len(packets) != 1 || q.w.stats.Records != 0 {
		t.Errorf("%d packets, %d records", len(packets), q.w.stats.Records)
	}
	if o := q.spawnRock(q.w, rock{}, 2); o.ID() != state.MakeID(0, 2) {
		t.Errorf("id %x: the slot should be free and its generation another", uint64(o.ID()))
	}
}

func TestEditWithNoClient(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	o := s.spawnRock(w, rock{}, 1)
	for tick := uint64(1); tick < 300; tick++ {
		w.Edit(o)
		live[rock](o).X++
		w.Capture(tick)
	}
	if o.Fields[1] != 299 || o.Fields[2] != 1 {
		t.Errorf("X changed at %d, Y at %d", o.Fields[1], o.Fields[2])
	}
	if o.Changed() != 299 || o.Hist.Len() != state.Horizon+1 { // and the newest older one
		t.Errorf("version %d, %d kept", o.Changed(), o.Hist.Len())
	}
}

// Rule 5 with an idle object: its newest version remains the baseline at any age.
func TestObjectIdleBeyondTheHorizonStillGetsADelta(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.tick += 5 * state.Horizon
	for range 3 {
		q.edit(o).X++
		q.next() // all lost: the baseline is still the first version
	}
	q.edit(o).X++
	q.deliver()
	if st := q.w.Stats(); st.FullEvicted != 0 || st.Deltas != 4 || q.rock(o.ID()).X != 4 {
		t.Errorf("%+v, client shows %+v", st, q.rock(o.ID()))
	}
	q.tick += state.Horizon
	q.edit(o).X++
	q.deliver() // the version before is the newest older one
	if st := q.w.Stats(); st.FullEvicted != 0 || q.rock(o.ID()).X != 5 {
		t.Errorf("%+v", st)
	}
}

// Rule 14.
func TestWireTicksWrapAround(t *testing.T) {
	for _, start := range []uint64{1<<32 - 3, 7<<32 - 3, 1<<31 - 3} {
		q := newPair(t, start)
		o := q.spawnRock(q.w, rock{}, start+1)
		for i := range int32(8) {
			q.edit(o).X = i
			q.deliver()
			if q.r.Tick() != q.tick || q.rock(o.ID()).X != i {
				t.Fatalf("tick %d became %d", q.tick, q.r.Tick())
			}
		}
	}
}

// Rule 4: packets of one tick may arrive in any order; none of them makes another one lost.
func TestTwoPacketsOfOneSnapshotSwapped(t *testing.T) {
	q := newPair(t, 0)
	for i := range 40 {
		q.spawnRock(q.w, rock{X: int32(i)}, 1)
	}
	q.tick++
	q.w.Capture(1)
	packets, first := snap(q.p, 1, Limit{Packets: 10, PacketSize: 120})
	if len(packets) != 2 || first != 1 {
		t.Fatalf("%d packets from %d", len(packets), first)
	}
	for i, j := range []int{1, 0} {
		a, err := q.r.Apply(packets[j])
		if err != nil || !a.Ack || a.Index != j || a.Count != 2 || a.Packet != uint64(1+j) || a.SnapshotComplete != (i == 1) {
			t.Errorf("%+v, %v", a, err)
		}
		q.p.Ack([]Range{{a.Packet, a.Packet}})
	}
	for i, b := range packets {
		if a, err := q.r.Apply(b); err != nil || !a.Ack || a.SnapshotComplete || q.r.Stats().Repeated != uint64(i+1) || q.r.Stats().Packets != 2 {
			t.Errorf("repeated: %+v, %v, %+v", a, err, *q.r.Stats())
		}
	}
	if st := q.w.stats; st.Acked != 2 || st.Lost != 0 || q.p.pending.Count() != 0 {
		t.Errorf("%+v", st)
	}
	if got := kinds(q.r.Events()); got != strings.Repeat("S", 40) {
		t.Errorf("events %s", got)
	}
}

func TestAcknowledgementOfANeverSentPacket(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	packets, _ := q.next()
	q.p.Ack([]Range{{2, 2}, {9, math.MaxUint64}, {0, 0}, {5, 4}})
	if st := q.w.stats; st.AckUnknown != 4 || st.Acked != 0 || st.Lost != 0 {
		t.Errorf("%+v", st)
	}
	mustApply(t, q.r, q.p, packets...)
	q.edit(o).X = 4
	q.next()
	q.p.Ack([]Range{{0, math.MaxUint64}}) // false acknowledgements harm only their sender
	if st := q.w.stats; st.Acked != 2 || q.p.pending.Count() != 0 {
		t.Errorf("%+v", st)
	}
	q.next()
	q.p.Ack([]Range{{3, 3}, {1, 3}, {1, 3}, {1, 3}})
	if st := q.w.stats; st.AckStale != 4 || st.AckOverlapped != 1 {
		t.Errorf("%+v", st)
	}
}

// Overlapping ranges would cost the server more than the client, so processing stops at the first
// one.
func TestOverlappingRangesAreCutShort(t *testing.T) {
	q := newPair(t, 0)
	for range 4 { // of one tick each, all in flight
		q.next()
	}
	q.p.Ack([]Range{{2, 4}, {2, 4}, {1, 4}})
	if st := q.w.stats; st.AckOverlapped != 1 || st.Acked != 3 {
		t.Errorf("%+v", st)
	}
}

// The memory of a client for a hostile server's state is bounded.
func TestStoredStateIsBounded(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.spawnRock(q.w, rock{}, 1)
	q.next()
	q.r.SetBound(q.r.Size() * 3 / 2) // room for half of an object
	packets, _ := q.next()
	if _, err := q.r.Apply(packets[0]); !errors.Is(err, replica.ErrMemory) || len(ids(q.r)) != 1 || q.r.Stats().Refused != 1 {
		t.Errorf("error %v, %d objects", err, len(ids(q.r)))
	}
	q.r.SetBound(replica.MaxStored)
	mustApply(t, q.r, q.p, packets...)
	q.r.Clear()
	q.r.Events()
	q.r.Events()
	if q.r.Size() != 0 {
		t.Errorf("%d bytes stored of nothing", q.r.Size())
	}
}

// Rule 3: two snapshots carry a version, then it waits; once lost, it is sent again.
func TestTwoCopiesThenWait(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	records := func() uint64 { return q.w.stats.Records }
	var ids []uint64
	for i, want := range []uint64{1, 2, 2, 2} {
		_, id := q.next()
		if ids = append(ids, id); records() != want {
			t.Fatalf("snapshot %d: %d records, want %d", i, records(), want)
		}
	}
	q.p.Ack([]Range{{ids[1], ids[1]}}) // the second copy arrived, the first is lost
	if q.next(); records() != 2 || q.w.stats.Lost != 1 {
		t.Errorf("%d records, %d lost", records(), q.w.stats.Lost)
	}

	q = newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	q.next()
	q.next()
	packets, _ := q.next()
	mustApply(t, q.r, q.p, packets...) // both copies are lost
	if q.next(); records() != 3 || q.w.stats.Lost != 2 {
		t.Errorf("%d records, %d lost", records(), q.w.stats.Lost)
	}
}

// Rule 4: an older packet is discarded without acknowledgement, and has no effect.
func TestPacketOfAnEarlierTickIsDiscarded(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	old, _ := q.next()
	q.edit(o).X = 2
	q.deliver()
	q.r.Events()
	a, err := q.r.Apply(old[0])
	if err != nil || a.Ack || a.Tick != 1 || a.Packet != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if q.rock(o.ID()).X != 2 || len(q.r.Events()) != 0 || q.w.stats.Lost != 1 || q.r.Stats().Discarded != 1 {
		t.Error("an older packet had an effect")
	}
}

// Rule 6.
func TestEmptySnapshotIsOnePacket(t *testing.T) {
	q := newPair(t, 0)
	for want := uint64(1); want < 4; want++ {
		packets, first := q.next()
		if len(packets) != 1 || first != want || len(packets[0]) > 10 {
			t.Errorf("%d packets from %d", len(packets), first)
		}
		a, err := q.r.Apply(packets[0])
		if err != nil || !a.Ack || !a.SnapshotComplete || a.Tick != want {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// Rule 7: records that do not fit wait, and the oldest are sent first, so that objects take turns;
// despawns precede all others.
func TestRecordsThatDoNotFitWaitOldestFirst(t *testing.T) {
	const many = 120 // about three bytes each, and room for 210
	q := newPair(t, 0)
	rng := rand.New(rand.NewPCG(2, 9))
	var rocks []*state.Object
	for range many {
		rocks = append(rocks, q.spawnRock(q.w, rock{X: 1 << 30}, 1))
	}
	tight := Limit{Packets: 2, PacketSize: 120}
	lastSent := map[int]uint64{}
	for q.tick = 1; q.tick <= 60; q.tick++ {
		for _, o := range rocks {
			q.edit(o).Y = rng.Int32N(2000)
		}
		if q.tick == 40 {
			q.w.Despawn(rocks[many-1])
			rocks = rocks[:many-1]
		}
		q.w.Capture(q.tick)
		packets, _ := snap(q.p, q.tick, tight)
		if len(packets) > 2 || len(packets[0]) > 120 || len(packets[1]) > 120 {
			t.Fatalf("packets of %d and %d bytes", len(packets[0]), len(packets[1]))
		}
		for i, b := range packets {
			mustApply(t, q.r, q.p, b)
			last := packet.Delta
			for s := range q.r.Records {
				last = s.Kind
				if gap := q.tick - lastSent[s.Slot]; lastSent[s.Slot] != 0 && gap > 15 {
					t.Errorf("slot %d waited %d ticks", s.Slot, gap)
				}
				lastSent[s.Slot] = q.tick
			}
			if q.tick == 40 && i == 0 && last != packet.Despawn {
				t.Error("the despawn is not in the first packet")
			}
		}
		if _, ok := q.r.Get(state.MakeID(many-1, 1)); q.tick == 40 && ok {
			t.Error("the despawn waited")
		}
	}
	if len(lastSent) != many {
		t.Errorf("%d of %d objects were ever sent", len(lastSent), many)
	}
}

func TestProbeIsSmallAndNothingIsForgotten(t *testing.T) {
	q := newPair(t, 0)
	for i := range 30 {
		q.spawnShip(q.w, ship{Name: "probe probe", X: float32(i)}, 1, 1)
	}
	q.tick++
	q.w.Capture(1)
	packets, _ := snap(q.p, 1, Limit{Packets: 1, PacketSize: 100})
	if len(packets) != 1 || len(packets[0]) > 100 {
		t.Fatalf("%d packets, %d bytes", len(packets), len(packets[0]))
	}
	q.deliver()
	if n := len(q.r.Events()); n != 30 {
		t.Errorf("%d objects after the full snapshot, want 30", n)
	}
	if packets, _ := snap(q.p, q.tick+1, Limit{}); len(packets) != 1 {
		t.Error("a limit of nothing must still make a packet")
	}
}
