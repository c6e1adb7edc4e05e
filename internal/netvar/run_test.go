package netvar

import (
	"bytes"
	"testing"
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
	if b := &f.w.bundles; len(b.list) != 1 || b.all[0].asked != 4 || b.all[0].run.size == 0 {
		t.Fatalf("%d bundles, of the first %d clients have asked, %d bits", len(b.list), b.all[0].asked, b.all[0].run.size)
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
	f.step(512)
	if n := len(f.w.bundles.list); f.w.bundles.epoch == f.w.tick && n != 0 {
		t.Errorf("%d bundles of 512 records", n)
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
	if len(b.list) != 2 || b.all[0].asked != 2 || b.all[0].run.size != 0 && len(f.clients[2].peer.cut.list) == 1 {
		t.Errorf("%d bundles, of the first %d have asked", len(b.list), b.all[0].asked)
	}
	if b.all[1].asked != 3 || b.all[1].run.size == 0 || b.all[1].origin == b.all[0].origin {
		t.Errorf("the second: %d have asked, from %v as the first from %v", b.all[1].asked, b.all[1].origin, b.all[0].origin)
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
