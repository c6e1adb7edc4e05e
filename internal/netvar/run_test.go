package netvar

import (
	"bytes"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/wire"
)

// Clients with the same marks to which different sets of the same neighbours are due: the first
// takes them all together, and then each object is encoded once more and kept, for however many
// sets there are.
func TestRunsOfDifferentSetsShareTheirObjects(t *testing.T) {
	f := newFleet(t, 64, 6, []uint64{3}, 0)
	for i := range f.clients {
		f.clients[i].peer.Handle = i
	}
	for i := 1; i < 6; i++ { // each of these may not see one of them
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
	if n := st.Encoded - f.counts.Encoded; n < 128 || n > 128+8 { // and samples
		t.Errorf("%d encodings of 64 objects for 6 sets of them, want 128", n)
	}
}

// From the third client alike on the records of a world in which little moves are copied as one;
// what leaves is the same.
func TestTheThirdClientAlikeGetsABundle(t *testing.T) {
	f := newFleet(t, 512, 4, []uint64{3}, 0)
	for range 20 {
		f.step(8)
	}
	f.step(8)
	if b := &f.w.bundles; len(b.list) != 1 || b.list[0].asked != 4 || b.all[0].run.size == 0 {
		t.Fatalf("%d bundles, of the first %d clients have asked, %d bits", len(b.list), b.list[0].asked, b.all[0].run.size)
	}
	for i := range f.clients {
		c := &f.clients[i]
		if n := len(c.peer.cut.list); (n == 1) != (i >= 2) {
			t.Errorf("client %d is sent %d runs", i, n)
		}
		if !bytes.Equal(c.packets[0], f.clients[0].packets[0]) {
			t.Errorf("client %d is sent other bytes", i)
		}
		if c.peer.sentOnce.count() != f.clients[0].peer.sentOnce.count() || c.peer.sentTwice.count() != f.clients[0].peer.sentTwice.count() {
			t.Errorf("client %d has other records under way", i)
		}
	}
	for range 20 { // until all that was in flight has come
		f.step(1)
	}
	if b := &f.w.bundles; len(b.list) != 1 || b.list[0].asked != 4 || b.all[0].run.records < 1 || len(f.clients[3].peer.cut.list) != 1 {
		t.Errorf("%d bundles of what little moves", len(b.list))
	}
	f.step(512)
	if n := len(f.w.bundles.list); f.w.bundles.epoch == f.w.tick && n != 0 {
		t.Errorf("%d bundles of 512 records", n)
	}
}

// Where records were large, longer runs are tried again in each tick that is a multiple of
// widthTicks, and in none between.
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

// Where there is nothing due there is no bundle; one record makes one.
func TestABundleHasARecordAtLeast(t *testing.T) {
	f := newFleet(t, 64, 2, []uint64{3}, 0)
	for range 20 {
		f.step(64)
	}
	p := f.clients[0].peer
	c := &p.cut
	for n := range 2 {
		f.tick++
		c.begin(nil, f.tick, wide)
		f.w.tick = f.tick
		clear(p.owed)
		clear(p.sentTwice)
		if n > 0 {
			p.owed.set(7)
		}
		if all, asked := c.findBundle(); (all != nil) != (n > 0) || int(asked) != n {
			t.Errorf("of %d records there is a bundle: %v, %d have asked", n, all != nil, asked)
		}
	}
}

// Where records are too large for 64 of them to be one run, the runs of later clients are shorter
// at once; where they are only too large for the packets of this client, they are not.
func TestRecordsThatAreLargeGoInShorterRuns(t *testing.T) {
	for _, set := range []struct {
		logged, size, width int
	}{{0, MaxPacket, 64}, {0, 100, 64}, {2, MaxPacket, 8}, {16, MaxPacket, 2}} {
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
		snap(f.clients[0].peer, f.tick, Limit{Packets: MaxPackets, PacketSize: set.size})
		if got := f.w.runs[0].width; got != set.width {
			t.Errorf("%d large numbers, packets of %d bytes: runs extend over %d slots, want %d", set.logged, set.size, got, set.width)
		}
	}
}

// A bundle fills its share of a packet at most, to the bit, and it has nothing but runs.
func TestABundleFillsAShareOfAPacket(t *testing.T) {
	f := newFleet(t, 512, 2, []uint64{3}, 0)
	for range 20 {
		f.step(8)
	}
	size := int(f.w.bundles.all[0].run.size)
	c := &f.clients[1].peer.cut // its snapshot has the runs of which the bundle was put together
	if len(c.list) < 2 || size == 0 {
		t.Fatalf("%d runs of %d bits", len(c.list), size)
	}
	for _, set := range []struct{ room, want int }{{maxShare * size, size}, {maxShare*size - 1, 0}, {8 * MaxPacket, size}} {
		var a bundle
		c.room = set.room
		if a.assemble(c); int(a.run.size) != set.want {
			t.Errorf("in packets of %d bits the bundle has %d, want %d", set.room, a.run.size, set.want)
		}
	}
	c.list = append(c.list, candidate{slot: 511, steady: true})
	var a bundle
	if a.assemble(c); a.run.size != 0 {
		t.Error("a bundle was put together of runs and something else")
	}
}

// A snapshot with a digest has everything, and so no bundle; nor is there one of another origin.
func TestDigestsAndOtherMarksGetNoBundle(t *testing.T) {
	f := newFleet(t, 512, 6, []uint64{3, 3, 3, 6, 6, 6}, 0)
	for range 20 {
		f.step(8)
	}
	f.clients[2].peer.RequestDigest(1)
	f.step(8)
	b := &f.w.bundles
	if len(b.list) != 2 || b.list[0].asked != 2 || b.all[0].run.size != 0 && len(f.clients[2].peer.cut.list) == 1 {
		t.Errorf("%d bundles, of the first %d have asked", len(b.list), b.list[0].asked)
	}
	if whole := f.clients[2].packets[0]; len(f.clients[2].packets) != 1 || whole[atFlags]&(flagDigest|flagComplete) != flagDigest|flagComplete {
		t.Errorf("the snapshot with a digest is not complete: flags %b", whole[atFlags])
	}
	if b.list[1].asked != 3 || b.all[1].run.size == 0 || b.all[1].origin == b.all[0].origin {
		t.Errorf("the second: %d have asked, from %v as the first from %v", b.list[1].asked, b.all[1].origin, b.all[0].origin)
	}
}

// A client that lacks something gets no bundle, even if the same is due to it as to others: what it
// lacks leads from a version that it has.
func TestHolesGetNoBundle(t *testing.T) {
	f := newFleet(t, 512, 4, []uint64{3}, 0)
	for range 20 {
		f.step(8)
	}
	f.tick++
	f.move(8)
	f.acknowledge()
	f.w.Capture(f.tick)
	last := f.clients[3].peer
	moved := last.owed.next(0)
	for last.sentTwice.has(moved) {
		moved = last.owed.next(moved + 1)
	}
	var lacks bitset
	lacks.set(moved)
	last.marks.setMissing(lacks)
	for i := range f.clients {
		snap(f.clients[i].peer, f.tick, wide)
		list := f.clients[i].peer.cut.list
		alone := slices.ContainsFunc(list, func(n candidate) bool { return n.run == nil && int(n.slot) == moved })
		if bundled := len(list) == 1; bundled != (i == 2) || alone != (i == 3) {
			t.Errorf("client %d gets a bundle: %v, and slot %d alone: %v", i, bundled, moved, alone)
		}
	}
}

// There are bundles of so many sets, and what is beyond that goes as runs.
func TestBundlesAreBounded(t *testing.T) {
	const clients = maxBundles + 4
	f := newFleet(t, 256, 3*clients, []uint64{3}, 0)
	for i := range f.clients {
		f.clients[i].peer.Handle = i % clients
	}
	for i := range clients {
		f.w.SetAudience(f.crates[8*i], allBut(i))
	}
	for range 30 {
		f.step(32)
	}
	for f.tick%8 != 7 {
		f.step(32)
	}
	f.begin()
	f.step(32) // each eighth crate: all sets differ
	if n := len(f.w.bundles.list); n != maxBundles {
		t.Errorf("%d bundles for %d sets", n, clients)
	}
	whole := 0
	for i := range f.clients {
		c := &f.clients[i]
		if n := len(c.peer.cut.list); n == 1 && i < 2*clients {
			t.Errorf("client %d is sent %d runs", i, n)
		} else if n == 1 {
			whole++
		}
		if i >= clients && !bytes.Equal(c.packets[0], f.clients[i%clients].packets[0]) {
			t.Errorf("client %d is sent other bytes", i)
		}
	}
	if whole < maxBundles*3/4 || whole > maxBundles {
		t.Errorf("%d snapshots are whole, of %d sets", whole, clients)
	}
	if st := f.w.Stats(); st.Records-f.counts.Records != st.Deltas-f.counts.Deltas {
		t.Errorf("%d records, %d deltas", st.Records-f.counts.Records, st.Deltas-f.counts.Deltas)
	}
}

// allBut is an audience without those whose handle is this number.
type allBut int

func (n allBut) Includes(p *Peer) bool { return p.Handle.(int) != int(n) }

// The records of a run are counted through all of its words.
func TestSlotsOfARun(t *testing.T) {
	var r run
	r.begin()
	r.addSlots(1, 1<<3|1<<5|1<<63)
	r.addSlots(4, 1<<0|1<<7)
	for n, want := range []int{67, 69, 127, 256, 263} {
		if got := r.slot(n); got != want {
			t.Errorf("record %d is of slot %d, want %d", n, got, want)
		}
	}
	if r.first != 67 || r.last != 263 || r.records != 5 {
		t.Errorf("slots %d to %d, %d records", r.first, r.last, r.records)
	}
}

// No more classes are counted than there is room for.
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

// asker asks for runs of the first 64 slots of a world, before any snapshot of its tick is cut.
type asker struct {
	*fleet
	t *testing.T
	s *blockRuns
}

// newAsker makes a world of captains that belong to the first three of six clients. The other three
// may read the same as each other.
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

// ask asks for the run of a mask for a client, and checks that its bits are those of what is due.
func (a *asker) ask(client int, mask uint64) *run {
	a.t.Helper()
	p := a.clients[client].peer
	c := &p.cut
	a.w.stats.Snapshots++ // each one asks for the snapshot of another
	c.begin(nil, a.tick, wide)
	if p.makeSteady(0, mask) != mask {
		a.t.Fatalf("not all objects are steady for client %d", client)
	}
	got := c.findRun(0, mask, 64)
	var want run
	want.addSlots(0, mask)
	c.encodeRun(&want, mask, mostBits(8*MaxPacket, 64), false)
	if got.size == 0 || got.size != want.size || !bytes.Equal(bitsOf(got), bitsOf(&want)) || got.classes != want.classes {
		a.t.Errorf("client %d gets a run of %d bits, want %d", client, got.size, want.size)
	}
	return got
}

// bitsOf returns the bits of a run behind one other bit, which a packet has there as often as not.
func bitsOf(r *run) []byte {
	var b wire.BitWriter
	b.Put(1, 1)
	r.put(&b)
	b.Flush()
	return b.Bytes()
}

// fill takes all places but the first for runs that other clients ask for again and again, and lets
// the first go. free more of them may go.
func (a *asker) fill(free int) {
	for len(a.s.list) < maxRuns {
		a.s.list = append(a.s.list, share{crowd: 1 << 20, asked: 2})
		a.s.keys[len(a.s.list)-1] = runKey{}
	}
	for i := range 1 + free {
		a.s.list[i].crowd = 1
	}
}

// A run that differs from another one in its views alone takes a place once two clients in a row
// have asked for it. Until then each client gets a run of its own.
func TestARunWithOtherViewsHasToBeAskedForTwiceInARow(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	for _, step := range []struct{ client, places int }{{0, 1}, {3, 1}, {1, 1}, {4, 1}, {5, 2}, {0, 2}, {3, 2}} {
		got := a.ask(step.client, all)
		kept := false
		for i := range a.s.list {
			kept = kept || got == &a.s.runs[i]
		}
		if want := step.client == 0 || step.places == 2; len(a.s.list) != step.places || kept != want {
			t.Errorf("client %d gets a run with a place: %v, want %v; there are %d, want %d", step.client, kept, want, len(a.s.list), step.places)
		}
	}
}

// A run may take the place of the one that it would be made out of.
func TestARunTakesThePlaceOfItsDonor(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	donor := a.ask(0, all)
	a.ask(3, all)
	a.fill(0)
	if got := a.ask(4, all); got != donor {
		t.Error("the run has another place than the one that goes")
	}
	if got := a.ask(5, all); got != donor {
		t.Error("the next client alike gets another run")
	}
}

// With what views a run was asked for last is forgotten when another run takes its place.
func TestAPlaceForgetsWithWhatViewsItsRunWasAskedFor(t *testing.T) {
	a := newAsker(t)
	const all, but = ^uint64(0), ^uint64(0) &^ (1 << 1) // client 1 owns the object in slot 1
	a.ask(0, all)
	a.ask(1, all)
	a.fill(1)
	first := a.ask(0, but)
	second := a.s.keys[1]
	if a.ask(1, but); first != &a.s.runs[0] || a.s.keys[1] != second {
		t.Error("a run has taken a place that was asked for once")
	}
}

// A run of which another one is copied keeps its place until the snapshot is cut, even if it is the
// only one that may go.
func TestARunStaysWhileAnotherIsCopiedFromIt(t *testing.T) {
	a := newAsker(t)
	const all, but = ^uint64(0), ^uint64(0) &^ 2
	donor := a.ask(0, all)
	a.fill(0)
	copied := a.ask(3, all)
	if copied.whole != donor {
		t.Fatal("client 3 gets no run that is copied from that of client 0")
	}
	before, c := bitsOf(copied), &a.clients[3].peer.cut
	if got := c.findRun(0, but, 64); got == donor {
		t.Error("another run of the snapshot takes the place of the one that is copied")
	}
	if !bytes.Equal(bitsOf(copied), before) {
		t.Error("a run has changed before its snapshot was cut")
	}
}

// Nothing is made out of a run whose records are too many for one.
func TestNothingIsSplicedOutOfWhatIsTooLarge(t *testing.T) {
	a := newAsker(t)
	const all = ^uint64(0)
	donor := a.ask(0, all)
	donor.size, donor.ends = 0, nil
	c := &a.clients[3].peer.cut
	a.w.stats.Snapshots++
	c.begin(nil, a.tick, wide)
	c.p.makeSteady(0, all)
	if got := c.findRun(0, all, 64); got.size != 0 || got == donor {
		t.Errorf("a run of %d bits came out of none", got.size)
	}
}

// The bits of a bundle are counted by class, each of them once and the gaps too.
func TestTheClassesOfABundle(t *testing.T) {
	c := &cutter{p: &Peer{w: &World{}}, room: 1000}
	for k := range 3 {
		r := &run{bits: make([]byte, 8), size: 20, kinds: 2, classes: [maxKinds]classBits{{4, 13}, {uint32(5 + k%2), 7}}}
		r.addSlots(9*k, 1<<3|1<<7)
		c.list = append(c.list, candidate{run: r})
	}
	var a bundle
	a.assemble(c)
	sum := uint32(0)
	for _, s := range a.run.classes[:a.run.kinds] {
		sum += s.bits
	}
	if a.run.kinds != 3 || sum != a.run.size || sum <= 60 || a.run.records != 6 {
		t.Errorf("%d records of %d bits, %d of them counted for %d classes", a.run.records, a.run.size, sum, a.run.kinds)
	}
}

// The runs of a packet fill it, behind its header: maxShare of the largest, or twice as many of
// those that are narrower.
func TestTheLargestRunsFillAPacket(t *testing.T) {
	for _, room := range []int{1000, 8 * 1100, 8 * 9000} {
		wide, narrow := mostBits(room, 64), mostBits(room, 63)
		if left := room - 8*maxHeader - maxShare*wide; left < 0 || left >= maxShare {
			t.Errorf("%d bits: %d runs of %d leave %d", room, maxShare, wide, left)
		}
		if narrow != wide/2 {
			t.Errorf("%d bits: narrow runs have %d, wide ones %d", room, narrow, wide)
		}
	}
}

// The slots among which one lies are a block of the width that begins at a multiple of it.
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

// What is due is gathered with what of it the client may not read, if it is little.
func TestABundleKnowsWhatOfItMayNotBeRead(t *testing.T) {
	f := newFleetOf(t, classOf[captain](t, "captain"), 128, 3, []uint64{3}, 0)
	for range 20 {
		f.step(128)
	}
	for range 10 { // all of it is acknowledged
		f.step(1)
	}
	for i, c := range []struct {
		due   bitset
		count int
		views [3][]uint64 // by client: the slots of each block that it may not read
	}{
		{bitset{1, 0}, 1, [3][]uint64{{0, 0}, {1, 0}, {1, 0}}}, // its owner is the first client
		{bitset{1 << 1, 1 << 1}, 2, [3][]uint64{{1 << 1, 1 << 1}, {0, 1 << 1}, {1 << 1, 0}}},
		{bitset{^uint64(0) >> 1, 1}, 64, [3][]uint64{nil, nil, nil}},
		{bitset{^uint64(0), 1}, 65, [3][]uint64{nil, nil, nil}},
	} {
		f.tick++
		for _, client := range f.clients {
			p := client.peer
			p.cut.begin(nil, f.tick, wide)
			copy(p.owed, c.due)
			clear(p.sentTwice)
			hash := uint64(fnvStart)
			var want []blockView
			for k, due := range c.due {
				if due == 0 {
					continue
				}
				if hash = (hash ^ due ^ uint64(k)) * fnvPrime; c.views[0] != nil && c.views[p.Handle.(int)][k] != 0 {
					want = append(want, blockView{k, masked{c.views[p.Handle.(int)][k], 1 << 1}})
				}
			}
			count, got := p.cut.gatherDue()
			if count != c.count || count <= 64 && (got != hash || !slices.Equal(p.cut.due, c.due)) {
				t.Errorf("set %d: %d records are due in %x, hash %x, want %d in %x, %x", i, count, p.cut.due, got, c.count, c.due, hash)
			}
			if c.views[0] != nil && !slices.Equal(p.cut.views, want) {
				t.Errorf("set %d: client %d may not read %+v, want %+v", i, p.Handle, p.cut.views, want)
			}
		}
	}
}
