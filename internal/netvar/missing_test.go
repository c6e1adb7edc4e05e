package netvar

import (
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// rocks is a world of rocks that all move, with one client that has them, and snapshots of very
// small packets.
type rocks struct {
	*pair
	all []*state.Object
	lim Limit
}

func newRocks(t *testing.T, n, size int) *rocks {
	s := &rocks{pair: newPair(t, 0), lim: Limit{Packets: packet.MaxPackets, PacketSize: size}}
	for i := range n {
		s.all = append(s.all, s.spawnRock(s.w, rock{X: int32(1000 * i)}, 1))
	}
	for range 12 {
		s.apply(s.cut())
	}
	if n := s.p.derived.Count(); n != len(s.all) {
		t.Fatalf("%d of %d are steady", n, len(s.all))
	}
	return s
}

// cut is a tick in which all rocks move.
func (s *rocks) cut() [][]byte {
	for i, o := range s.all {
		s.edit(o).X += int32((s.tick*2654435761 ^ uint64(i+1)*40503) >> 3 % 4096)
	}
	return s.again()
}

// again is a tick without moves.
func (s *rocks) again() [][]byte {
	s.tick++
	s.w.Capture(s.tick)
	packets, _ := snap(s.p, s.tick, s.lim)
	return packets
}

// apply applies and acknowledges packets.
func (s *rocks) apply(packets [][]byte) {
	s.t.Helper()
	mustApply(s.t, s.r, s.p, packets...)
	s.check()
}

func (s *rocks) check() {
	s.t.Helper()
	if fault := s.p.unsound() + s.p.unlike(s.r); fault != "" {
		s.t.Fatalf("tick %d: %s", s.tick, fault)
	}
}

// same ends the movement, and checks that the client has the server's state.
func (s *rocks) same() {
	s.t.Helper()
	for range 4 {
		s.apply(s.again())
	}
	for _, o := range s.all {
		if got := s.rock(o.ID()); got != *live[rock](o) {
			s.t.Fatalf("rock %v is %+v, want %+v", o.ID(), got, *live[rock](o))
		}
	}
	if n := s.p.pending.Count(); n != 0 {
		s.t.Errorf("%d are owed", n)
	}
}

// exact returns the number of records in the last snapshot that named their version.
func (s *rocks) exact() (n int) {
	for _, o := range s.all {
		if s.p.cut.basis(o).exact {
			n++
		}
	}
	return n
}

// If few records were lost, each of them names its version, and the others lead from the newest
// mark. If many were lost, the snapshot leads from an earlier mark, and no record names its
// version.
func TestFewThatWereLostNameTheirVersion(t *testing.T) {
	for _, set := range []struct {
		size int
		few  bool
	}{{29, true}, {100, false}} {
		s := newRocks(t, 100, set.size)
		packets := s.cut()
		s.apply(packets[1:]) // the first packet is lost once a later one arrives
		newest := s.tick
		lost := s.p.ackedTicks.missing(newest).Count()
		if lost == 0 || (lost <= fewMissing) != set.few || lost > 60 {
			t.Fatalf("%d records in a packet of %d bytes", lost, set.size)
		}
		next := s.cut()
		named, at := s.exact(), s.p.cut.origin.AsOf
		switch {
		case set.few && (at != newest || named != lost):
			t.Errorf("%d lost: the snapshot leads from %d, the newest mark is %d, and %d records name their version", lost, at, newest, named)
		case !set.few && (at != newest-1 || named != 0):
			t.Errorf("%d lost: the snapshot leads from %d, the mark before %d, and %d records name their version", lost, at, newest, named)
		}
		s.apply(next)
		s.same()
	}
}

// Records that a packet in flight repeats are not missing if the client has acknowledged them
// before.
func TestACopyUnderWayIsNoHole(t *testing.T) {
	s := newRocks(t, 100, 100)
	first, copies := s.cut(), s.again()
	if len(copies) < 2 {
		t.Fatal("no copies")
	}
	s.apply(first)
	s.apply(copies[:1])
	if n := len(s.p.ackedTicks.missingAt); n != 0 || s.p.ackedTicks.newest != s.tick {
		t.Errorf("%d holes as of marks up to %d, and the client has all as of %d", n, s.p.ackedTicks.newest, s.tick)
	}
	s.apply(s.cut())
	s.same()
}

// Later acknowledgements of other packets of a tick reduce the hole in its mark.
func TestTheRestOfASnapshotFillsTheHole(t *testing.T) {
	s := newRocks(t, 100, 100)
	packets := s.cut()
	before := len(s.all)
	for i := len(packets) - 1; i >= 0; i-- {
		s.apply(packets[i : i+1])
		n := s.p.ackedTicks.missing(s.tick).Count()
		if n >= before || (n == 0) != (i == 0) {
			t.Fatalf("with %d packets to come %d are missing, and %d were", i, n, before)
		}
		before = n
	}
	s.cut()
	if s.exact() != 0 || s.p.cut.origin.AsOf != s.tick-1 {
		t.Errorf("%d records name their version, and the snapshot leads from %d", s.exact(), s.p.cut.origin.AsOf)
	}
}

// After a silence of the client that is longer than a trend, its baselines are still usable, even
// those of objects in packets in flight.
func TestBaselinesSurviveASilence(t *testing.T) {
	s := newRocks(t, 100, 100)
	s.all = append(s.all, s.spawnRock(s.w, rock{X: -5}, s.tick))
	s.apply(s.cut())
	packets := s.cut()
	s.apply(packets[:1]) // the new rock is in the last packet
	before := *s.w.Stats()
	for range maxAckedTicks + 5 {
		s.cut()
	}
	if st := s.w.Stats(); st.FullFirst != before.FullFirst || st.FullEvicted != before.FullEvicted {
		t.Errorf("%d full records", st.FullFirst-before.FullFirst+st.FullEvicted-before.FullEvicted)
	}
	s.p.RequestDigest(1)
	s.apply(s.cut())
	s.same()
}

// Old marks are dropped, also while no snapshot is cut, and objects known from them only get
// entries with details.
func TestOldMarksLeaveEntriesBehind(t *testing.T) {
	s := newRocks(t, 100, 100)
	s.apply(s.cut()[1:]) // the client never receives the first packet
	lost := s.p.ackedTicks.missing(s.tick)
	slot := lost.Next(0)
	had := s.p.peek(slot).base
	var all [][][]byte
	for range maxAckedTicks + 3 {
		all = append(all, s.cut())
	}
	var acks []Range
	for _, packets := range all { // the first packet, which has the rock, is lost each time
		for _, b := range packets[1:] {
			a, err := s.r.Apply(b)
			if err != nil {
				t.Fatal(err)
			}
			acks = append(acks, Range{a.Packet, a.Packet})
		}
	}
	s.p.Ack(acks)
	s.check()
	if e := s.p.peek(slot); e.base != had || s.p.derived.Has(slot) || had == 0 {
		t.Errorf("slot %d was known as of %d, and now of %d", slot, had, e.base)
	}
	if m := &s.p.ackedTicks; m.newest-m.oldest >= maxAckedTicks || m.set>>(m.newest-m.oldest)&1 == 0 {
		t.Errorf("marks from %d to %d", m.oldest, m.newest)
	}
	before := s.w.Stats().Records - s.w.Stats().Deltas
	s.apply(s.cut())
	if n := s.w.Stats().Records - s.w.Stats().Deltas - before; n != 0 {
		t.Errorf("%d full records", n)
	}
	s.same()
}

// Packets given up for lack of acknowledgements are sent again, whether they arrive or not.
func TestPacketsGivenUpAreHoles(t *testing.T) {
	s := newRocks(t, 40, 200)
	var kept [][]byte
	for i := range MaxInFlight + 100 {
		if packets := s.cut(); i%7 == 0 {
			kept = append(kept, packets[len(packets)-1])
		}
	}
	if s.w.Stats().Overrun == 0 {
		t.Fatal("nothing was given up")
	}
	for len(kept) > 5 {
		s.apply(kept[len(kept)-2:])
		kept = kept[:len(kept)-5]
		s.cut()
		s.check()
	}
	s.same()
}

// With any acknowledgements there are at most as many holes as marks, none has more slots than the
// world, and in the steady state no memory is allocated for them.
func TestHolesAreBounded(t *testing.T) {
	f := newFleet(t, 640, 3, []uint64{2, 3, 7}, 0)
	lim := Limit{Packets: 12, PacketSize: 300}
	rng := rand.New(rand.NewPCG(4, 4))
	acks := make([]Range, 0, 8)
	step := func() {
		f.tick++
		f.move(640)
		f.w.Capture(f.tick)
		for i := range f.clients {
			c := &f.clients[i]
			var first uint64
			c.packets, first = c.peer.AppendSnapshot(c.packets[:0], f.tick, lim)
			c.sent[f.tick%32] = Range{first, first + uint64(len(c.packets)) - 1}
			if i == 2 && f.tick%20 != 0 {
				continue
			}
			acks = acks[:0]
			for range 1 + rng.IntN(4) {
				r := c.sent[(f.tick-c.delay-rng.Uint64N(4))%32]
				id := r.First + rng.Uint64N(r.Last-r.First+1)
				acks = append(acks, Range{id, id + rng.Uint64N(2)})
			}
			c.peer.Ack(acks)
		}
	}
	ticks := 1500
	if testing.Short() {
		ticks = 300
	}
	for range ticks {
		step()
		for i := range f.clients {
			p := f.clients[i].peer
			if fault := p.unsound(); f.tick%16 == 0 && fault != "" {
				t.Fatal(fault)
			}
			if n := len(p.ackedTicks.missingAt); n > maxAckedTicks {
				t.Fatalf("%d holes", n)
			}
		}
	}
	for i := range f.clients {
		m := &f.clients[i].peer.ackedTicks
		for _, h := range m.missingAt[:cap(m.missingAt)] {
			if len(h.slots) > (f.w.Slots()+63)/64 {
				t.Errorf("a hole of %d words", len(h.slots))
			}
		}
		if cap(m.missingAt) > 2*maxAckedTicks {
			t.Errorf("room for %d holes", cap(m.missingAt))
		}
	}
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("a tick allocates %v times", n)
	}
}

// A repeated acknowledgement has almost no cost: a client may send any number of them.
func TestAStaleAcknowledgementLooksAtNothing(t *testing.T) {
	s := newRocks(t, 100, 100)
	s.apply(s.cut()[1:])
	s.apply(s.cut()[1:]) // the first packet of the last snapshot is lost
	if !s.p.losses.any {
		t.Fatal("nothing was lost")
	}
	// scratch of functions that read the packets in flight
	s.p.losses.sent = bitset.Set{1 << 63, 1 << 63}
	s.p.Ack([]Range{{1, 5}, {s.p.flight.next + 5, s.p.flight.next + 9}})
	s.p.Ack(nil)
	if s.p.losses.sent[0] != 1<<63 {
		t.Error("all packets in flight were looked at")
	}
	if s.cut(); s.p.losses.sent[0] != 1<<63 {
		t.Error("a snapshot has looked at all packets in flight, though it has given up none")
	}
	s.same()
}

// After a full request the client's lag counts from its last records, not from the ticks at which
// its objects became steady.
func TestAFullRequestForgetsNoTicks(t *testing.T) {
	s := newRocks(t, 100, 400)
	for range 300 {
		s.apply(s.cut())
	}
	s.p.RequestFull()
	for _, o := range s.all {
		if e := s.p.peek(o.Slot()); e.reached(s.tick)+1 < s.tick {
			t.Fatalf("%v is behind since %d, now is %d", o.ID(), e.reached(s.tick), s.tick)
		}
	}
}

// A full request or a resume clears the missing slots.
func TestARestartClearsMissingSlots(t *testing.T) {
	for _, anew := range []func(*rocks){
		func(s *rocks) { s.p.RequestFull() },
		func(s *rocks) { s.p.Resume(false); s.r = replica.New(s.table); s.r.StartAt(s.tick) },
	} {
		s := newRocks(t, 100, 200)
		s.apply(s.cut()[1:])
		s.apply(s.cut()[1:])
		if s.p.losses.slots.Count() == 0 {
			t.Fatal("nothing was lost")
		}
		anew(s)
		s.apply(s.cut())
		s.apply(s.cut())
		if n := s.p.ackedTicks.missing(s.tick).Count(); n != 0 || s.p.losses.slots.Count() != 0 {
			t.Errorf("%d are missing", n)
		}
		s.same()
	}
}

// A record of an object without a derived baseline has no trend from a mark as of which the object
// was missing.
func TestAnEntryOfASteadyObjectHasNoMore(t *testing.T) {
	s := newRocks(t, 100, 100)
	s.apply(s.cut()[1:])
	at := s.tick
	lost := s.p.ackedTicks.missing(at)
	slot, other := lost.Next(0), s.all[99].Slot()
	s.apply(s.cut())
	s.p.ackedTicks.setOldest(at)
	if e := s.p.peek(slot); e.hasAcked(at) || e.base != s.tick {
		t.Errorf("slot %d has what was lost", slot)
	}
	if e := s.p.peek(other); !e.hasAcked(at) || e.base != s.tick {
		t.Errorf("slot %d has not what has arrived", other)
	}
}

// Captures must be later than snapshots, because the versions in a packet are derived from its
// tick.
func TestCaptureIsLaterThanSnapshots(t *testing.T) {
	q := newPair(t, 0)
	q.deliver()
	snap(q.p, q.tick+2, wide) // of the earlier capture
	for _, tick := range []uint64{q.tick + 1, q.tick + 2} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Capture(%d) after a snapshot of tick %d", tick, q.tick+2)
				}
			}()
			q.w.Capture(tick)
		}()
	}
	q.w.Capture(q.tick + 3)
}
