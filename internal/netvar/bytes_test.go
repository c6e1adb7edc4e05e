package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The bytes of records are counted by class exactly, and by field approximately, also in a world
// with a cycle of records as long as a gap.
func TestBytesAreCountedByClassAndField(t *testing.T) {
	u := newRush(t, 56)
	for range 8 {
		u.ships = append(u.ships, u.spawnShip(u.w, ship{Name: "eight of"}, 7, 1))
	}
	u.run(6000)
	u.w.Despawn(u.rocks[0])
	u.rocks = u.rocks[1:]
	u.run(1)
	rocks, ships, ends := u.w.SpentOn(u.schema.rock), u.w.SpentOn(u.ship), u.w.SpentOn(nil)
	all := rocks + ships + ends
	if padding := uint64(u.bytes) - all; all > uint64(u.bytes) || padding > 2*6001 || ends > 2 || ships == 0 {
		t.Errorf("rocks %d, ships %d, despawns %d: %d bytes were sent in 6001 packets", rocks, ships, ends, u.bytes)
	}
	if u.w.spent.classes[len(u.table.Classes())] == 0 {
		t.Error("the despawn is not counted")
	}
	fields := func(c *state.Class) map[string]float64 {
		m := map[string]float64{}
		for i, n := range u.w.SpentOnFields(c) {
			m[c.FieldName(i)] = float64(n)
		}
		return m
	}
	// In each tick X of a rock changes, and Angle of a ship. Other bytes are heads and a bit for no
	// mask.
	rock, ship := fields(u.schema.rock), fields(u.ship)
	const records = 6000 * 56
	if head := 8 * (float64(rocks) - rock["X"]) / records; head < 1 || head > 7 {
		t.Errorf("X of a rock takes %.1f bits, all of it %.1f", 8*rock["X"]/records, 8*float64(rocks)/records)
	}
	if angle, all := ship["Angle"], float64(ships); angle < 0.5*all || angle > 1.2*all {
		t.Errorf("Angle of the ships takes %.0f of %.0f bytes", angle, all)
	}
	if rock["Y"] > rock["X"]/10 || ship["Name"] > ship["Angle"]/10 {
		t.Errorf("what never changes takes bytes: %v, %v", rock, ship)
	}
}

// The sample agrees with the encoder's output.
func TestSampleAgreesWithTheEncoder(t *testing.T) {
	q := newPair(t, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	o := q.spawnShip(q.w, ship{}, 3, 1)
	sum := func(n *candidate) (all uint64) {
		fields := q.w.spent.fields[q.ship.Index()]
		clear(fields)
		q.p.cut.sample(n)
		for _, n := range fields {
			all += n
		}
		return all / (sampleEvery / 8)
	}
	change := func() {
		q.w.Edit(o)
		v := live[ship](o)
		v.X, v.Angle, v.Armed = rng.Float32()*1000, float32(rng.IntN(2)), rng.IntN(2) == 0
		v.Name = "n 12345678"[:rng.IntN(10)]
		v.Bag = make([]item, rng.IntN(4))
		for i := range v.Bag {
			v.Bag[i] = item{Name: "abc"[:rng.IntN(3)], Count: uint8(rng.IntN(9))}
		}
		if rng.IntN(3) == 0 {
			q.w.SetOwner(o, rng.Uint64N(1000))
		}
	}
	const mask = 1 + 2 + 9 // of a ship, which has nine leaves with its owner: see PutDelta
	for q.tick < 400 {
		change()
		q.deliver()
		change()
		q.tick++
		q.w.Capture(q.tick)
		full := int(q.w.residual(o, basis{}).n)
		if got := sum(&candidate{rank: rankPending, version: q.tick, full: true}); got > uint64(full) || got < uint64(full-mask) {
			t.Fatalf("a full record of %d bits measures %d", full, got)
		}
		// no trend
		q.p.cut.origin = packet.Origin{AsOf: q.p.ackedTicks.newest, TrendFrom: q.p.ackedTicks.newest}
		diff := int(q.w.residual(o, basis{Origin: packet.Origin{AsOf: q.p.detailed(0).base}, exact: true}).n)
		if got := sum(&candidate{rank: rankPending, version: q.tick}); got < uint64(diff-mask) || got > uint64(diff) {
			t.Fatalf("a delta of %d bits measures %d", diff, got)
		}
	}
}

// The record that ends a gap is sampled, at any place in a run. A run that ends before the gap does
// only shortens the gap.
func TestTheRecordThatEndsAGapIsSampled(t *testing.T) {
	const crates = 64
	f := newFleet(t, crates, 1, []uint64{3}, 0)
	s, c := &f.w.spent, &f.clients[0].peer.cut
	for gap := uint32(1); gap <= crates+2; gap++ {
		was, random := slices.Clone(s.fields[0]), s.random
		s.gap = gap
		f.step(crates)
		once := slices.Clone(s.fields[0])
		if gap > crates {
			if !slices.Equal(once, was) || s.random != random || s.gap != gap-crates {
				t.Errorf("of %d records that of number %d is sampled; the gap becomes %d", crates, gap, s.gap)
			}
			continue
		}
		c.sample(&candidate{slot: gap - 1, rank: rankPending, derived: true}) // the same one again
		sampled := s.random != random
		for i := range was {
			sampled = sampled && once[i]-was[i] == s.fields[0][i]-once[i]
		}
		if !sampled || slices.Equal(once, was) {
			t.Errorf("the record of slot %d is not sampled", gap-1)
		}
	}
}

// The gaps between samples are drawn by Marsaglia's xorshift from 1, so all worlds draw the same
// ones, and one record in sampleEvery is measured on average.
func TestSamplesAreDrawnByXorshift(t *testing.T) {
	s := newSpent(state.NewTable())
	if s.gap != 1 {
		t.Errorf("the first gap is %d, want the first record", s.gap)
	}
	for i, random := range []uint32{270369, 67634689, 2647435461, 307599695, 2398689233} {
		if s.draw(); s.gap != 1+random%2047 {
			t.Errorf("gap %d is %d, want 1 more than %d modulo 2047", i, s.gap, random)
		}
	}
}

// Bytes of classes are reported as whole bytes, and those of despawns separately.
func TestBytesOfClassesAreWhole(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	w.spent.classes = []uint64{8 * 5, 8*6 + 7, 9, 8*7 + 1}
	if a, b, c, ends := w.SpentOn(s.ship), w.SpentOn(s.rock), w.SpentOn(s.hoard), w.SpentOn(nil); a != 5 || b != 6 || c != 1 || ends != 7 {
		t.Errorf("%d, %d, %d bytes, and %d of despawns", a, b, c, ends)
	}
	for i, want := range []string{"(owner)", "X", "Y", "Spin", "Big"} {
		if got := s.rock.FieldName(i); got != want {
			t.Errorf("field %d is %s, want %s", i, got, want)
		}
	}
	if n := len(w.SpentOnFields(s.rock)); n != 5 {
		t.Errorf("%d fields are counted of 5", n)
	}
}
