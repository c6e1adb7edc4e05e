package netvar

import (
	"bytes"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// Clients with the same marks and different due sets of the same neighbours: for the first client
// they are encoded together. Then each object is encoded once more and cached, for any number of
// sets.
func TestRunsOfDifferentSetsShareTheirObjects(t *testing.T) {
	f := newFleet(t, 64, 6, []uint64{3}, 0)
	for i := range f.clients {
		f.clients[i].peer.Handle = i
	}
	for i := 1; i < 6; i++ { // each of these clients may not see one of them
		f.w.SetAudience(f.crates[i], clientSet(0b111111&^(1<<i)))
	}
	for range 20 {
		f.step(64)
	}
	f.begin()
	f.step(64)
	st := f.w.Stats()
	if n := st.InRuns - f.counts.InRuns; n != 64+5*63 {
		t.Errorf("%d records in runs, want %d", n, 64+5*63)
	}
	if n := st.Encoded - f.counts.Encoded; n < 128 || n > 128+8 { // plus samples
		t.Errorf("%d encodings of 64 objects for 6 sets of them, want 128", n)
	}
}

// In blocks of large records longer runs are tried again in each tick that is a multiple of
// widthTicks, and in no other.
func TestLongerRunsAreTriedAgain(t *testing.T) {
	w := newPair(t, 0).w
	for _, c := range []struct {
		tick uint64
		want int
	}{{1, 64}, {2, 8}, {widthTicks - 1, 8}, {widthTicks, 64}, {widthTicks + 1, 8}, {3*widthTicks + 1, 8}, {4 * widthTicks, 64}} {
		w.tick = c.tick
		if s := w.runsOf(1); s.width != c.want || s.fullWidth != c.want || s.epoch != c.tick {
			t.Errorf("tick %d: runs extend over %d and %d slots, want %d", c.tick, s.width, s.fullWidth, c.want)
		}
		w.runs[1].width, w.runs[1].fullWidth = 8, 8
		if s := w.runsOf(1); s.width != 8 {
			t.Errorf("tick %d: longer runs are tried twice", c.tick)
		}
	}
}

// If records are too large for a run of 64, later clients are sent shorter runs at once; if they
// are only too large for the packets of this client, they are not.
func TestRecordsThatAreLargeGoInShorterRuns(t *testing.T) {
	for _, set := range []struct {
		logged, size, width int
	}{{0, packet.MaxSize, 64}, {0, 100, 64}, {2, packet.MaxSize, 8}, {16, packet.MaxSize, 2}} {
		f := newFleetOf(t, classOf[barge](t, "barge"), 64, 1, []uint64{3}, 0)
		for f.tick%widthTicks != 0 {
			f.step(64)
		}
		for _, o := range f.crates {
			f.w.Edit(o)
			for i := range set.logged {
				live[barge](o).Log[i] += 1 << 60
			}
		}
		f.tick++
		f.move(64)
		f.acknowledge()
		f.w.Capture(f.tick)
		snap(f.clients[0].peer, f.tick, Limit{Packets: packet.MaxPackets, PacketSize: set.size})
		if got := f.w.runs[0].width; got != set.width {
			t.Errorf("%d large numbers, packets of %d bytes: runs extend over %d slots, want %d", set.logged, set.size, got, set.width)
		}
	}
}

// The records of a run are those of its slots, in their order.
func TestSlotsOfARun(t *testing.T) {
	var r run
	r.begin(1, 1<<3|1<<5|1<<63)
	for n, want := range []int{67, 69, 127} {
		if got := r.slot(n); got != want {
			t.Errorf("record %d is of slot %d, want %d", n, got, want)
		}
	}
	if r.first != 67 || r.last != 127 || r.records != 3 {
		t.Errorf("slots %d to %d, %d records", r.first, r.last, r.records)
	}
}

// No more classes are counted than a run has room for.
func TestClassesOfARun(t *testing.T) {
	var r run
	for i := range uint32(3 * maxKinds) {
		if ok := r.addBits(i%(maxKinds+1), 10+i); ok != (i%(maxKinds+1) < maxKinds) {
			t.Errorf("class %d is counted: %v", i%(maxKinds+1), ok)
		}
	}
	sum := uint32(0)
	for _, c := range r.classes[:r.kinds] {
		sum += c.bits
	}
	want := uint32(0)
	for i := range uint32(3 * maxKinds) {
		if i%(maxKinds+1) < maxKinds {
			want += 10 + i
		}
	}
	if r.kinds != maxKinds || sum != want {
		t.Errorf("%d classes, %d bits, want %d", r.kinds, sum, want)
	}
}

// asker requests runs of the first 64 slots of a world, before any snapshot of its tick is cut.
type asker struct {
	*fleet
	t *testing.T
	s *blockRuns
}

// newAsker makes a world of captains that belong to the first three of six clients. The other three
// may read the same fields.
func newAsker(t *testing.T) *asker {
	f := newFleetOf(t, classOf[captain](t, "captain"), 64, 6, []uint64{3}, 0)
	for i, o := range f.crates {
		f.w.SetOwner(o, uint64(1+i%3))
	}
	for range 20 {
		f.step(64)
	}
	f.tick++
	f.move(64)
	f.acknowledge()
	f.w.Capture(f.tick)
	return &asker{f, t, f.w.runsOf(0)}
}

// ask requests the run of a mask for a client, and checks its bits against the due records.
func (a *asker) ask(client int, mask uint64) *run {
	a.t.Helper()
	p := a.clients[client].peer
	c := &p.cut
	a.w.stats.Snapshots++ // each request is for another snapshot
	c.begin(nil, a.tick, wide)
	if p.makeDerived(0, mask) != mask {
		a.t.Fatalf("not all objects are steady for client %d", client)
	}
	got := c.findRun(0, mask, 64)
	var want run
	want.begin(0, mask)
	c.encodeRun(&want, mask, maxRunBits(8*packet.MaxSize, 64), false)
	if got.size == 0 || got.size != want.size || !bytes.Equal(bitsOf(got), bitsOf(&want)) || got.classes != want.classes {
		a.t.Errorf("client %d gets a run of %d bits, want %d", client, got.size, want.size)
	}
	return got
}

// bitsOf returns the bits of a run after one other bit, because in a packet a run begins at any
// bit.
func bitsOf(r *run) []byte {
	var b wire.BitWriter
	b.Put(1, 1)
	r.put(&b)
	b.Flush()
	return b.Bytes()
}

// fill takes all places for runs that are not used any more. The first is evicted next.
func (a *asker) fill() {
	for len(a.s.by) < maxRuns {
		a.s.by = append(a.s.by, 0)
		a.s.keys[len(a.s.by)-1] = runKey{}
	}
	for a.next() != 0 {
		a.s.rng++
	}
}

// next returns the place that is evicted next.
func (a *asker) next() int {
	d := a.s.rng
	return d.below(maxRuns)
}

// kept reports whether a run is cached.
func (a *asker) kept(r *run) bool {
	for i := range a.s.by {
		if r == &a.s.runs[i] {
			return true
		}
	}
	return false
}

// A run that differs from another one in its views only is cached once two consecutive clients have
// requested it. Until then each client uses an uncached run.
func TestARunWithOtherViewsHasToBeAskedForTwiceInARow(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	for _, step := range []struct{ client, places int }{{0, 1}, {3, 1}, {1, 1}, {4, 1}, {5, 2}, {0, 2}, {3, 2}} {
		got := a.ask(step.client, all)
		kept := a.kept(got)
		if want := step.client == 0 || step.places == 2; len(a.s.by) != step.places || kept != want {
			t.Errorf("client %d gets a run with a place: %v, want %v; there are %d, want %d", step.client, kept, want, len(a.s.by), step.places)
		}
	}
}

// A run may evict its donor.
func TestARunTakesThePlaceOfItsDonor(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	donor := a.ask(0, all)
	a.ask(3, all)
	a.fill()
	if got := a.ask(4, all); got != donor {
		t.Error("the run has another place than the one that goes")
	}
	if got := a.ask(5, all); got != donor {
		t.Error("the next client alike gets another run")
	}
}

// The views of the last request are cleared when another run takes the place.
func TestAReplacedRunClearsItsViews(t *testing.T) {
	a := newAsker(t)
	const all, but = ^uint64(0), ^uint64(0) &^ (1 << 1) // client 1 owns the object in slot 1
	a.ask(0, all)
	a.ask(1, all)
	a.fill()
	first := a.ask(0, but)
	if second := a.ask(1, but); first != &a.s.runs[0] || a.kept(second) {
		t.Error("a run has taken a place that was asked for once")
	}
}

// A donor is not evicted until the snapshot that copies it is cut.
func TestARunStaysWhileAnotherIsCopiedFromIt(t *testing.T) {
	a := newAsker(t)
	const all, but = ^uint64(0), ^uint64(0) &^ 2
	donor := a.ask(0, all)
	a.fill()
	copied := a.ask(3, all)
	if copied.whole != donor {
		t.Fatal("client 3 gets no run that is copied from that of client 0")
	}
	before, c := bitsOf(copied), &a.clients[3].peer.cut
	a.fill()
	if got := c.findRun(0, but, 64); got == donor {
		t.Error("another run of the snapshot takes the place of the one that is copied")
	}
	if !bytes.Equal(bitsOf(copied), before) {
		t.Error("a run has changed before its snapshot was cut")
	}
}

// A run with too large records is no donor.
func TestATooLargeRunIsNoDonor(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	donor := a.ask(0, all)
	donor.size, donor.ends = 0, nil
	c := &a.clients[3].peer.cut
	a.w.stats.Snapshots++
	c.begin(nil, a.tick, wide)
	c.p.makeDerived(0, all)
	if got := c.findRun(0, all, 64); got.size != 0 || got == donor {
		t.Errorf("a run of %d bits came out of none", got.size)
	}
}

// The runs of a packet fill it, behind its header: maxShare of the largest, or twice as many of
// narrower ones.
func TestTheLargestRunsFillAPacket(t *testing.T) {
	for _, room := range []int{1000, 8 * 1100, 8 * 9000} {
		wide, narrow := maxRunBits(room, 64), maxRunBits(room, 63)
		if left := room - 8*packet.MaxHeader - maxShare*wide; left < 0 || left >= maxShare {
			t.Errorf("%d bits: %d runs of %d leave %d", room, maxShare, wide, left)
		}
		if narrow != wide/2 {
			t.Errorf("%d bits: narrow runs have %d, wide ones %d", room, narrow, wide)
		}
	}
}

// neighbours returns an aligned group of slots.
func TestNeighboursAreABlock(t *testing.T) {
	for width := 1; width <= 64; width *= 2 {
		for slot := range 64 {
			mask := neighbours(1<<slot|1<<63, width)
			for other := range 64 {
				if same, in := other/width == slot/width, mask&(1<<other) != 0; same != in {
					t.Fatalf("width %d: slot %d is a neighbour of %d: %v", width, other, slot, in)
				}
			}
		}
	}
}
