package netvar

import (
	"math/rand/v2"
	"testing"
)

// Every byte of a record is counted for its class, and the sample comes near what the fields
// really take, also of a world whose records come in a cycle as long as a gap.
func TestBytesAreCountedByClassAndField(t *testing.T) {
	u := newRush(t, sampleEvery-8)
	for range 8 {
		u.ships = append(u.ships, u.spawnShip(u.w, ship{Name: "eight of"}, 7, 1))
	}
	u.run(2000)
	u.w.Despawn(u.rocks[0])
	u.rocks = u.rocks[1:]
	u.run(1)
	rocks, ships, ends := u.w.SpentOn(u.schema.rock), u.w.SpentOn(u.ship), u.w.SpentOn(nil)
	if rocks+ships+ends != uint64(u.bytes) || ends == 0 || ends > 4 || ships == 0 {
		t.Errorf("rocks %d, ships %d, despawns %d: %d bytes were sent", rocks, ships, ends, u.bytes)
	}
	fields := func(c *Class) map[string]float64 {
		m := map[string]float64{}
		for i, n := range u.w.SpentOnFields(c) {
			m[c.FieldName(i)] = float64(n)
		}
		return m
	}
	// In each tick X of a rock changes by 1 (a byte), and Angle of a ship (4 or 5).
	rock, ship := fields(u.schema.rock), fields(u.ship)
	if got := rock["X"] / (2000 * (sampleEvery - 8)); got < 0.85 || got > 1.15 {
		t.Errorf("X of a rock takes %.2f bytes, want 1", got)
	}
	if angle, all := ship["Angle"], float64(ships); angle < 0.5*all || angle > 1.2*all {
		t.Errorf("Angle of the ships takes %.0f of %.0f bytes", angle, all)
	}
	if rock["Y"] > rock["X"]/10 || ship["Name"] > ship["Angle"]/10 {
		t.Errorf("what never changes takes bytes: %v, %v", rock, ship)
	}
}

// The sample measures what the encoder writes.
func TestSampleAgreesWithTheEncoder(t *testing.T) {
	q := newPair(t, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	o := q.spawnShip(q.w, ship{}, 3, 1)
	sum := func(n *candidate) (all uint64) {
		fields := q.w.spent.fields[q.ship.index]
		clear(fields)
		q.p.cut.sample(n)
		for _, n := range fields {
			all += n
		}
		return all / sampleEvery
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
	for q.tick < 400 {
		change()
		q.deliver()
		base := q.p.entries[0].base
		change()
		q.tick++
		q.w.Capture(q.tick)
		full, _ := q.w.residual(o, 0, 0)
		if got := sum(&candidate{rank: rankOwed, full: true}); got != uint64(len(full)) {
			t.Fatalf("a full record of %d bytes measures %d", len(full), got)
		}
		diff, _ := q.w.residual(o, base, 0)
		if got := sum(&candidate{rank: rankOwed}); got != uint64(len(diff)-q.ship.mask) {
			t.Fatalf("differences of %d bytes measure %d", len(diff)-q.ship.mask, got)
		}
	}
}
