package netvar

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// A snapshot with a digest includes records that the world would shed. Otherwise no client could be
// compared while a server is overloaded.
func TestADigestIsComparedWhileTheWorldSheds(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver()
	q.w.SetWeight(o, 0.5)
	q.w.Shed(1000)
	q.edit(o).X = 2
	q.deliver()
	if q.rock(o.ID()).X != 1 || q.w.stats.Shed != 1 {
		t.Fatalf("the rock is at %d, %d were shed", q.rock(o.ID()).X, q.w.stats.Shed)
	}
	q.p.RequestDigest(1)
	q.deliver()
	if state, _ := q.r.Digest(); state != replica.DigestEqual || q.rock(o.ID()).X != 2 || q.w.stats.Shed != 1 {
		t.Errorf("the digest says %d, the rock is at %d, %d were shed", state, q.rock(o.ID()).X, q.w.stats.Shed)
	}
}

// A client lags in a shed object, by the ticks since its last record, but not if that record is in
// flight: then only its copy is shed.
func TestAShedCopyIsNoLag(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.w.SetWeight(o, 0.5)
	q.deliver()
	q.edit(o).X++
	q.next() // it may still arrive
	q.w.Shed(1000)
	for _, c := range []struct{ shed, behind uint64 }{{1, 0}, {2, 2}} {
		packets, _ := q.next()
		a, err := q.r.Apply(packets[0])
		if err != nil || q.w.stats.Shed != c.shed || q.tick-a.Reached != c.behind {
			t.Errorf("%v: %d were shed, want %d; the client is at tick %d of %d", err, q.w.stats.Shed, c.shed, a.Reached, q.tick)
		}
		var h packet.Header
		in := wire.NewReader(packets[0])
		if packet.ReadHeader(&in, q.tick, &h); h.HasBehind != (c.behind > 0) {
			t.Errorf("the packet says whether the client is behind: %v", h.HasBehind)
		}
		q.edit(o).X++ // the record in flight is not the newest any more
	}
}

// newRockPair is a client that lacks so many rocks.
func newRockPair(t *testing.T, rocks int) *pair {
	q := newPair(t, 0)
	for i := range rocks {
		q.spawnRock(q.w, rock{X: int32(i * i * 37)}, 1)
	}
	return q
}

// A record leads from an object's version at a tick if the client has acknowledged that version, or
// if the object did not exist then; not from an unknown version.
func TestARecordLeadsFromAnAcknowledgedVersion(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	for q.tick < 8 {
		q.edit(o).X++
		q.next()
	}
	for _, c := range []struct {
		tick, since, acked uint64
		want               bool
	}{
		{0, 0, 0, true}, // it was spawned later
		{5, 0, 1 << (8 - 5), true},
		{5, 0, ^uint64(1 << (8 - 5)), false},
		{5, 6, ^uint64(0), false}, // as of then the client had another view of it
	} {
		e := entry{detail: &detail{base: 8, ackedSet: c.acked}}
		if got := leadsFrom(c.tick, o, &e, state.View{Since: c.since, Withheld: ownerRule}); got != c.want {
			t.Errorf("from tick %d, seen alike since %d: %v, want %v", c.tick, c.since, got, c.want)
		}
	}
}

// A packet's buffer has room for the largest packet and for the end of its last word; an existing
// buffer is reused.
func TestAPacketGetsItsMemoryAtOnce(t *testing.T) {
	q := newRockPair(t, 100)
	q.tick++
	q.w.Capture(q.tick)
	used := make([]byte, 5, 300)
	packets, _ := q.p.AppendSnapshot([][]byte{used, nil}[:0], q.tick, Limit{Packets: 3, PacketSize: 200})
	if len(packets) < 2 || &packets[0][0] != &used[0] || cap(packets[1]) != 200+8 {
		t.Errorf("%d packets, room for %d and %d bytes", len(packets), cap(packets[0]), cap(packets[1]))
	}
	packets, _ = q.w.NewPeer(q.tick).AppendSnapshot(nil, q.tick, Limit{Packets: 1, PacketSize: 10})
	if cap(packets[0]) != packet.MaxHeader+8 {
		t.Errorf("room for %d bytes, want that of a header, %d", cap(packets[0]), packet.MaxHeader+8)
	}
}

// A packet is full when no bit is left, and a budget is used up when it is 0, not before.
func TestARecordMayTakeTheLastBit(t *testing.T) {
	packets, budgets := 0, [8]int{} // budgets by the number of used bits in a byte
	for n := 2; n < 40; n++ {
		q := newRockPair(t, n)
		whole, _ := q.next()
		size, bits := len(whole[0]), 0
		last := &q.p.cut.list[n-1]
		for i := range q.p.cut.list[:n-1] {
			bits += int(q.p.cut.list[i].size)
		}
		if whole[0][packet.AtFlags]>>packet.AtPadding == 0 {
			packets++
			for less := range 2 {
				q := newRockPair(t, n)
				q.tick++
				q.w.Capture(q.tick)
				snap(q.p, q.tick, Limit{Packets: 1, PacketSize: size - less})
				if fits := q.w.stats.Waited == 0; fits != (less == 0) {
					t.Errorf("%d records of %d bytes fit a packet of %d: %v", n, size, size-less, fits)
				}
			}
		}
		budgets[bits%8]++
		for bytes := bits / 8; bytes <= bits/8+1; bytes++ {
			q := newRockPair(t, n)
			q.p.SetBudget(Budget{PerTick: bytes, Burst: bytes})
			q.next()
			if went := q.w.stats.Waited == 0; went != (8*bytes > bits) {
				t.Errorf("after records of %d bits one of %d goes on a budget of %d bytes: %v", bits, last.size, bytes, went)
			}
		}
	}
	if packets == 0 || budgets[0] == 0 || budgets[7] == 0 {
		t.Errorf("%d packets were full to the bit, of budgets %d were used up and of %d a bit was left", packets, budgets[0], budgets[7])
	}
}

// A snapshot subtracts the size of its records from the bucket, rounded up to bytes.
func TestASnapshotSpendsTheSizeOfItsRecords(t *testing.T) {
	whole := 0
	for n := 1; n < 30; n++ {
		q := newRockPair(t, n)
		q.p.SetBudget(Budget{PerTick: 1, Burst: 5000})
		q.next()
		bits := 0
		for i := range q.p.cut.list {
			bits += int(q.p.cut.list[i].size)
		}
		if got, want := 5000-q.p.bucket.tokens, (bits+7)/8; got != want {
			t.Errorf("%d records of %d bits take %d bytes, want %d", n, bits, got, want)
		}
		if bits%8 == 0 {
			whole++
		}
	}
	if whole == 0 {
		t.Error("none took whole bytes")
	}
}

// cutting begins a snapshot of the pending objects, listed individually.
func (q *pair) cutting(lim Limit) *cutter {
	q.tick++
	q.w.Capture(q.tick)
	c := &q.p.cut
	c.begin(nil, q.tick, lim)
	c.gather(false)
	c.next()
	return c
}

// The measured size of a record is its size behind its neighbour, and the estimated size of n gaps
// is about right if all are equal.
func TestTheEstimateIsNear(t *testing.T) {
	q := newRockPair(t, 60)
	c := q.cutting(wide)
	for i := range c.list {
		n := &c.list[i]
		c.put(n)
		if size := int(n.size); c.measure(n) != size {
			t.Errorf("record %d takes %d bits, and is measured as %d", i, size, c.measure(n))
		}
	}
	for _, slots := range []int{1, 7, 64, 1000} {
		c.p.entries = make([]entry, slots)
		for n := 1; n <= slots; n++ {
			var w wire.BitWriter
			for range n {
				packet.PutGap(&w, slots/n-1)
			}
			if got := n + c.gaps(n); 5*got < 3*w.Len() || 3*got > 5*w.Len() || n == slots && got != n {
				t.Fatalf("the gaps of %d records among %d slots take %d bits, want %d", n, slots, got, w.Len())
			}
		}
	}
}

// Each record is assigned to the current packet as long as it fits by the estimate, and then to the
// next one; records that do not fit the last packet wait.
func TestPacketsAreFilledToTheEstimate(t *testing.T) {
	var same, next, wait int
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 35))
		q := newPair(t, 0)
		for range 20 + rng.IntN(100) {
			if o := q.spawnRock(q.w, rock{X: rng.Int32() >> rng.IntN(31)}, 1); rng.IntN(3) == 0 {
				q.w.SetWeight(o, 1+rng.Float64())
			}
		}
		c := q.cutting(Limit{Packets: 1 + rng.IntN(4), PacketSize: 60 + rng.IntN(60)})
		c.weigh()
		room := c.room - c.open.Len()
		c.choose(room)
		var tried []*candidate
		for i := range c.list {
			if n := &c.list[i]; n.why != 0 {
				tried = append(tried, n)
			}
		}
		slices.SortFunc(tried, func(a, b *candidate) int { return cmp.Compare(a.order, b.order) })
		packet, used, count := 0, 0, 0
		for i, n := range tried {
			size := c.measure(n)
			fits, last := used+size+c.gaps(count+1) <= room, packet+1 == c.lim.Packets
			switch {
			case int(n.packet) == packet && fits:
				used, count, same = used+size, count+1, same+1
			case int(n.packet) == packet+1 && !fits && !last:
				packet, used, count, next = packet+1, size, 1, next+1
			case n.packet == unplaced && !fits && last:
				wait++
			default:
				t.Fatalf("seed %d: number %d is put into packet %d; in packet %d of %d it fits: %v", seed, i, n.packet, packet, c.lim.Packets, fits)
			}
		}
	}
	if same == 0 || next == 0 || wait == 0 {
		t.Errorf("%d go into the same packet, %d into the next, %d wait", same, next, wait)
	}
}

// If the estimate was too low, the records of the lowest priority in a packet wait, and no more
// than necessary.
func TestTheLeastNeededOfAPacketWait(t *testing.T) {
	dropped := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 36))
		q := newPair(t, 0)
		for range 40 {
			q.spawnRock(q.w, rock{X: rng.Int32() >> rng.IntN(31)}, 1)
		}
		c := q.cutting(wide)
		head, left, list := c.open.Len(), c.left, make([]uint32, len(c.list))
		for i, order := range rng.Perm(len(c.list)) {
			list[i] = uint32(i)
			c.list[i].packet, c.list[i].order = 0, uint32(order)
		}
		c.fill(list)
		all := c.open.Len()
		c.open.Reset(c.open.Bytes()[:head/8])
		c.context.Put(&c.open)
		c.left, c.room = left, head+rng.IntN(all-head)
		c.fill(list)
		if c.open.Len() > c.room || left-c.left != c.open.Len()-head {
			t.Fatalf("seed %d: %d bits of %d, and %d are spent", seed, c.open.Len(), c.room, left-c.left)
		}
		first, smallest := uint32(len(list)), 1<<20 // of the waiting ones
		for i := range c.list {
			if n := &c.list[i]; n.packet == unplaced {
				first, smallest, dropped = min(first, n.order), min(smallest, int(n.size)), dropped+1
			}
		}
		for i := range c.list {
			if n := &c.list[i]; (n.packet == unplaced) != (n.order >= first) {
				t.Fatalf("seed %d: number %d is in packet %d, and number %d waits", seed, n.order, n.packet, first)
			}
		}
		if spare := c.room - c.open.Len(); spare > 3*40*32 {
			t.Errorf("seed %d: %d bits are empty", seed, spare)
		}
	}
	if dropped == 0 {
		t.Error("all fit")
	}
}

// A run is put into a packet, and charged to a budget, that it fits to the bit; otherwise it has no
// effect.
func TestARunMayTakeTheLastBit(t *testing.T) {
	s := newRocks(t, 60, packet.MaxSize)
	s.cut()
	c := &s.p.cut
	s.tick++
	for _, o := range s.all {
		s.edit(o).X++
	}
	s.w.Capture(s.tick)
	c.begin(nil, s.tick, wide)
	if c.gather(true); len(c.list) != 1 || c.list[0].run == nil {
		t.Fatalf("%d candidates", len(c.list))
	}
	c.next()
	n, at, left := &c.list[0], c.open.Mark(), c.left
	start := c.open.Len()
	if !c.put(n) {
		t.Fatal("it does not fit")
	}
	size, room := c.open.Len()-start, c.room
	if int(n.size) != size || left-c.left != size {
		t.Errorf("a run of %d bits is counted as %d, and %d are spent", size, n.size, left-c.left)
	}
	for _, set := range []struct {
		room, left int
		fits       bool
	}{
		{start + size, left, true}, {start + size - 1, left, false},
		{room, int(n.run.size), true}, {room, int(n.run.size) - 1, false},
	} {
		c.open.Rewind(at)
		c.context.Prev = -1
		if c.room, c.left = set.room, set.left; c.put(n) != set.fits {
			t.Errorf("%d bits fit a packet of %d and a budget of %d: %v", size, set.room-start, set.left, !set.fits)
		}
		if !set.fits && (c.open.Len() != start || c.left != set.left) {
			t.Errorf("a run that does not fit leaves %d bits, and %d of the budget of %d", c.open.Len()-start, c.left, set.left)
		}
	}
}

// A second copy is sent after all first ones, at any weight. If only copies are left out the client
// does not lag.
func TestSecondCopiesAreSentLast(t *testing.T) {
	for _, steady := range []bool{false, true} {
		q := newPair(t, 0)
		heavy, light := q.spawnRock(q.w, rock{}, 1), q.spawnRock(q.w, rock{}, 1)
		q.w.SetWeight(heavy, state.MaxWeight)
		for range 8 {
			q.edit(heavy).X++
			q.edit(light).X++
			q.deliver()
		}
		q.edit(heavy).X++
		if q.next(); !q.p.derived.Has(heavy.ID().Slot()) || q.p.cut.list[0].rank != rankPending {
			t.Fatalf("%+v", q.p.cut.list)
		}
		if !steady {
			q.p.detailed(heavy.ID().Slot())
			q.p.detailed(light.ID().Slot())
		}
		q.edit(light).X += 12345 // a change of more than a byte
		q.p.SetBudget(Budget{PerTick: 1, Burst: 1})
		packets, _ := q.next()
		list := q.p.cut.list
		if list[0].rank != rankCopy || list[0].packet != unplaced || list[1].packet == unplaced || q.w.stats.Waited != 1 {
			t.Errorf("steady %v: %+v: the second should go", steady, list)
		}
		a, err := q.r.Apply(packets[0])
		if err != nil || a.Reached != q.tick {
			t.Errorf("steady %v: the client has reached %d of %d (%v)", steady, a.Reached, q.tick, err)
		}
	}
}

// A record of an object without a derived baseline leads from the marks of its packet too, from the
// first mark on and once both marks are of the client's current view. Until then it has to name its
// version.
func TestRecordsLeadFromMarksOfTheSameView(t *testing.T) {
	q := newSquad(t, 0)
	o, p := q.spawn(whole(), 1), q.p[2]
	turned := uint64(0)
	for q.tick < 30 {
		if q.tick == 12 {
			q.rules.team, turned = 1<<2, q.tick+1
			q.w.Recheck(o)
		}
		q.edit(o).X++
		packets := q.next()
		if from := p.cut.origin; from.AsOf > 0 {
			e := p.peek(0)
			if r, want := p.cut.residual(o, &e, q.tick), turned <= from.Oldest(); r.exact == want {
				t.Errorf("tick %d, turned at %d: the record leads from the marks %v: %v", q.tick, turned, from, !want)
			}
		} else if q.tick > 1 {
			t.Errorf("tick %d: there is no mark", q.tick)
		}
		for i := 1; i < 3; i++ {
			mustApply(t, q.r[i], q.p[i], packets[i])
		}
	}
	if p.derived.Has(0) {
		t.Error("the object is steady")
	}
}
