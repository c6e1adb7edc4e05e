package netvar

import (
	"fmt"
	"testing"
	"unsafe"
)

// oddClients is how many clients acknowledge like nobody else: as many as there are places for the
// runs of 64 slots.
const oddClients = 48

// oddFleet is a fleet of clients near and far, and in front of them so many that each acknowledge
// after a delay of their own.
func oddFleet(tb testing.TB, crates, odd, clients int) *fleet {
	var delays []uint64
	for i := range odd {
		delays = append(delays, 9+uint64(i))
	}
	for i := range clients {
		delays = append(delays, twoBaselines[i%2])
	}
	f := newFleet(tb, crates, odd+clients, delays, 0)
	f.odd = odd
	return f
}

// forOthers is how many records were encoded since begin for the clients that are not odd.
func (f *fleet) forOthers() (encoded uint64) {
	for i := range f.clients[f.odd:] {
		encoded += f.clients[f.odd+i].encoded
	}
	return encoded
}

// Whoever acknowledges like nobody else keeps nobody from what is shared, though it has joined
// first: runs, and the variants of an object where each goes by itself.
func TestOddClientsInFrontKeepNobodyFromSharing(t *testing.T) {
	const crates, clients = 64, 20
	for _, set := range []struct {
		name   string
		moving int
		alone  bool // each object goes by itself
	}{{"runs", crates, false}, {"variants", crates, true}} {
		t.Run(set.name, func(t *testing.T) {
			play := func(odd int) (f *fleet, inRuns int) {
				f = oddFleet(t, crates, odd, clients)
				for range 80 { // the odd ones' acknowledgements are that late
					f.step(set.moving)
				}
				f.begin()
				for range 8 {
					for i := range f.clients {
						if set.alone {
							f.clients[i].peer.alone()
						}
					}
					f.step(set.moving)
					for i := range f.clients[odd:] {
						list := f.clients[odd+i].peer.cut.list
						for j := range list {
							if list[j].run != nil {
								inRuns += list[j].run.records
							}
						}
					}
				}
				return f, inRuns
			}
			alike, inRuns := play(0)
			mixed, inRunsToo := play(oddClients)
			want, got := alike.forOthers(), mixed.forOthers()
			t.Logf("%d records were encoded for %d clients alike, %d with others in front; %d and %d go in runs", want, clients, got, inRuns, inRunsToo)
			if want == 0 || 2*got > 3*want {
				t.Errorf("%d records were encoded for them, and %d without the others", got, want)
			}
			if inRunsToo < inRuns || set.alone != (inRuns == 0) {
				t.Errorf("%d of their records go in runs, and %d without the others", inRunsToo, inRuns)
			}
		})
	}
}

// BenchmarkOddClients: 1 000 objects that all move, to 200 clients near and far, with and without
// 48 others in front of which each acknowledges like nobody else. What the 200 take is to be at
// most 1.5 times as much.
func BenchmarkOddClients(b *testing.B) {
	for _, odd := range []int{0, oddClients} {
		b.Run(fmt.Sprint("odd=", odd), func(b *testing.B) {
			f := oddFleet(b, 1000, odd, 200)
			f.begin()
			for b.Loop() {
				f.step(1000)
			}
			b.ReportMetric(f.spent.others.Seconds()*1000/float64(f.spent.ticks), "others-ms/tick")
			b.ReportMetric(f.spent.encode.Seconds()*1000/float64(f.spent.ticks), "encode-ms/tick")
			b.ReportMetric(float64(f.forOthers())/float64(f.spent.ticks), "others-encoded/tick")
		})
	}
}

// Places go to whom the most others come after; those alike drive each other out seldom, and never
// what has been asked for again or is still to be sent.
func TestPlacesGoToTheLargerCrowd(t *testing.T) {
	const most = 6
	var s shares
	snapshot := uint64(0)
	admit := func(crowd uint32, want int) {
		t.Helper()
		snapshot++
		if got := s.admit(most, crowd, snapshot); got != want {
			t.Errorf("one of a crowd of %d gets place %d, want %d: %+v", crowd, got, want, s.list)
		}
	}
	for i := range most {
		admit(uint32(3+i), i)
	}
	s.ask(0, 100) // crowds 3 and 4 are asked for again
	s.ask(1, 100)
	if s.ask(5, snapshot); s.list[5].asked != 1 {
		t.Error("a snapshot that asks twice counts twice")
	}
	admit(3, -1)
	// For crowd 5, the least that nobody has asked for again.
	admit(6, 2)
	if got := s.admit(most, 9, snapshot); got != 3 { // for crowd 6, but not its own
		t.Errorf("crowd 9 gets place %d, want 3", got)
	}
	admit(9, 2)  // for crowd 6
	admit(9, 4)  // for crowd 7
	admit(9, 5)  // for crowd 8
	admit(4, 0)  // for crowd 3, though that was asked for again: all else is of more
	admit(4, -1) // as many, and the other was asked for again
	for range 3 {
		snapshot++
		s.ask(0, snapshot)
	}
	admit(1, 0) // nobody is left to ask for what is there
	admit(1, 0) // likewise
	admit(4, 0)
	s.reset()
	got := 0
	for range most + 5*oneIn {
		if snapshot++; s.admit(most, 7, snapshot) >= 0 {
			got++
		}
	}
	if got != most+5 {
		t.Errorf("%d of those alike have had a place, want %d", got, most+5)
	}
}

// However many clients acknowledge like nobody else, 64 slots keep no more than 48 runs.
func TestRunsHaveSoManyPlaces(t *testing.T) {
	f := oddFleet(t, 8, oddClients+4, 0)
	for range 80 { // until the last one's acknowledgements come
		f.step(8)
	}
	if n := len(f.w.runs[0].list); n != oddClients {
		t.Errorf("%d runs are kept of as many clients, want %d", n, oddClients)
	}
}

// Clients are counted by their newest mark and the trend there.
func TestCrowdsAreCounted(t *testing.T) {
	f := oddFleet(t, 4, 3, 6)
	w := f.w
	for i, want := range []uint32{1, 1, 1, 3, 3} {
		if got := w.crowds.sharing(f.clients[i].peer.cut.origin); got != want {
			t.Errorf("client %d has a crowd of %d, want %d", i, got, want)
		}
	}
	two := f.clients[4].peer.cut.origin
	for _, other := range []origin{{}, {asOf: two.asOf, trendFrom: two.trendFrom - 1}, {asOf: two.asOf, trendFrom: two.asOf}, {asOf: two.asOf - maxMarks, trendFrom: two.asOf - maxMarks}, {asOf: two.asOf - 1, trendFrom: two.trendFrom}} {
		if got := w.crowds.sharing(other); got != 0 {
			t.Errorf("%v has a crowd of %d", other, got)
		}
	}
	o := f.crates[0]
	for _, set := range []struct {
		from basis
		want uint32
	}{
		{basis{}, 1<<32 - 1},
		{basis{origin: origin{asOf: two.asOf, trendFrom: two.trendFrom}}, 3},
		{basis{origin: origin{asOf: two.asOf}, exact: true}, 3},
		{basis{origin: origin{asOf: two.asOf + 1}, exact: true}, 0},
		{basis{origin: origin{asOf: f.tick - 9}, exact: true}, 1},
		{basis{origin: origin{asOf: f.tick}, exact: true}, 0}, // the newest
	} {
		if got := w.crowd(o, set.from); got != set.want {
			t.Errorf("%+v has a crowd of %d, want %d", set.from, got, set.want)
		}
	}
	if n := w.crowds.between(0, f.tick+9); n != 9 {
		t.Errorf("%d clients in all, want 9", n)
	}
	last := basis{origin: origin{asOf: o.hist.tick(int(o.hist.n) - 2)}, exact: true}
	w.crowds.add(&marks{newest: last.asOf, oldest: last.asOf, made: 1})
	if got := w.crowd(o, last); got != 1 {
		t.Errorf("%d clients lead from the last version but one, want 1", got)
	}
	fresh := w.Spawn(o.class, unsafe.Pointer(&crate{}), 0, f.tick)
	for range 3 {
		f.tick++
		w.Capture(f.tick) // and nobody moves: versions reach up to now
	}
	if got := w.crowd(fresh, basis{origin: origin{asOf: f.tick - maxMarks/2}, exact: true}); got != 0 {
		t.Errorf("%d clients lead from a version that there is not", got)
	}
	if got := w.crowd(o, basis{origin: origin{asOf: o.hist.tick(int(o.hist.n) - 2)}, exact: true}); got != 0 {
		t.Errorf("%d clients lead from the last version but one, which none has acknowledged", got)
	}
}

// Those between two ticks are those whose newest mark is there, as far as marks reach back.
func TestCrowdsBetweenAgreeWithAPlainCount(t *testing.T) {
	const tick = 1000
	var s crowds
	s.begin(tick)
	for age := range uint64(maxMarks + 3) {
		for range 1 + age%3 {
			s.add(&marks{newest: tick - age, oldest: tick - age, made: 1})
		}
	}
	for since := uint64(0); since < 5; since++ {
		for before := uint64(0); before < 5; before++ {
			for _, near := range [][2]uint64{{tick - maxMarks - 2, tick - 2}, {tick - maxMarks - 2, tick - maxMarks - 2}, {tick - 3, tick - 2}} {
				since, before, want := near[0]+since, near[1]+before, uint32(0)
				for at := since; at < min(before, tick); at++ {
					if age := tick - at; age < maxMarks {
						want += uint32(1 + age%3)
					}
				}
				if got := s.between(since, before); got != want {
					t.Errorf("%d clients between %d and %d, want %d", got, since, before, want)
				}
			}
		}
	}
}

// Variants of an object that go for others leave their bits behind, but only so many.
func TestVariantsGoForOthersOnlySoOften(t *testing.T) {
	f := oddFleet(t, 4, 0, 1)
	w, o := f.w, f.crates[0]
	full := 0
	for back := range uint64(4 * maxResiduals) {
		at := f.tick - 1 - back%32
		from := basis{origin: origin{asOf: at, trendFrom: at - back/32}}
		w.crowds.newest[f.tick-at]++
		if w.crowds.count[f.tick-at] == nil {
			w.crowds.count[f.tick-at] = new([maxMarks]uint32)
		}
		w.crowds.count[f.tick-at][back/32] = uint32(1 + back) // each has more than the one before
		w.residual(o, from)
		if back == 2*maxResiduals-1 {
			full = len(w.arena)
		}
		if back >= 2*maxResiduals && len(w.arena) != full {
			t.Fatalf("variant %d: %d bytes, and %d before", back, len(w.arena), full)
		}
	}
	c := o.cache
	if c.n != maxResiduals || c.gone != maxResiduals {
		t.Errorf("%d are kept, %d have gone", c.n, c.gone)
	}
	for i := range c.list[:c.n] {
		if c.crowds[i] != w.crowds.sharing(c.list[i].origin) || c.crowds[i] <= maxResiduals {
			t.Errorf("kept: %+v of a crowd of %d", c.list[i].basis, c.crowds[i])
		}
	}
}

// For a client that cannot be sent all, no more is encoded than about what fits, though it shares
// with nobody.
func TestWhoIsShortCostsWhatFits(t *testing.T) {
	f := newFleet(t, 1280, 1, []uint64{3}, 0)
	c := &f.clients[0]
	for _, budget := range []int{0, 300} {
		c.peer.SetBudget(Budget{PerTick: budget})
		for range 8 {
			f.tick++
			f.move(1280)
			f.w.Capture(f.tick)
			before := *f.w.Stats()
			packets, first := c.peer.AppendSnapshot(nil, f.tick, Limit{Packets: 1, PacketSize: 600})
			c.peer.Ack([]Range{{first, first + uint64(len(packets)) - 1}})
			records, encoded := f.w.stats.Records-before.Records, f.w.stats.Encoded-before.Encoded
			if most := uint64(7 * 64); records == 0 || encoded > most {
				t.Errorf("budget %d: %d records are encoded to send %d, want at most %d", budget, encoded, records, most)
			}
		}
	}
}
