package grid

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

func shape(tb testing.TB, cell, radius, margin float64) Shape {
	tb.Helper()
	s, err := NewShape(cell, radius, margin)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestMeasuresAreChecked(t *testing.T) {
	for _, bad := range [][3]float64{
		{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}, {math.NaN(), 1, 1}, {1, math.Inf(1), 1}, {1, 1, math.NaN()},
		{10, 20, 9}, {1, 100, 100}, {1, 14, 2},
	} {
		if _, err := NewShape(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	shape(t, 1, 1, 14)
}

func TestInvalidPositionsAreInBorderCells(t *testing.T) {
	s := shape(t, 2, 4, 4)
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x, y, z float64
		want    Cell
		bad     bool
	}{
		{0, -0.5, 2, Cell{0, -1, 1}, false},
		{nan, 0, 0, Cell{firstCell, 0, 0}, true},
		{0, inf, 0, Cell{0, lastCell, 0}, true},
		{0, 0, -inf, Cell{0, 0, firstCell}, true},
		{1e300, -1e300, 0, Cell{lastCell, firstCell, 0}, true},
		{2 * (1<<20 - 1), -2 * (1<<20 - 1), 0, Cell{lastCell, firstCell, 0}, false},
		{2 << 20, 0, 0, Cell{lastCell, 0, 0}, true},
	} {
		if got, bad := s.Cell(c.x, c.y, c.z); got != c.want || bad != c.bad {
			t.Errorf("(%v, %v, %v) lies in %v, bad %v", c.x, c.y, c.z, got, bad)
		}
	}
	words := map[uint64]Cell{}
	for _, x := range []int32{firstCell, -1, 0, 1, lastCell} {
		for _, y := range []int32{firstCell, -1, 0, 1, lastCell} {
			for _, z := range []int32{firstCell, -1, 0, 1, lastCell} {
				c := Cell{x, y, z}
				if other, taken := words[c.word()]; taken {
					t.Errorf("the cells %v and %v have the same word", other, c)
				}
				words[c.word()] = c
			}
		}
	}
	if z := s.Zone(Cell{firstCell, 0, 0}, Cell{lastCell, 0, 0}); z != Outside {
		t.Errorf("zone %d from one end of space to the other", z)
	}
}

// TestZonesHaveTheirDistances: things within the radius are Inside, things beyond it by more than
// the margin and two cells are Outside, and things that are Outside are further than radius and
// margin.
func TestZonesHaveTheirDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := shape(t, 3, 10, 4)
	for range 100_000 {
		var a, b [3]float64
		for i := range 2 + rng.IntN(2) {
			a[i], b[i] = rng.Float64()*40-20, rng.Float64()*40-20
		}
		far := math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2])
		from, _ := s.Cell(a[0], a[1], a[2])
		to, _ := s.Cell(b[0], b[1], b[2])
		zone := s.Zone(from, to)
		if far <= 10 && zone != Inside || far <= 14 && zone == Outside || far > 14+2*3*math.Sqrt(3) && zone != Outside {
			t.Fatalf("%v and %v are %v apart: zone %d", a, b, far, zone)
		}
		if !from.within(to, s.reach) && zone != Outside {
			t.Fatalf("%v and %v are beyond the reach, and in zone %d", from, to, zone)
		}
	}
}

// world has the positions of all things and eyes, and the visible pairs as found from suspects
// only.
type world struct {
	Shape
	things, eyes map[int]Cell
	seen, before map[[2]int]bool // visible pairs: now, and after the last round
}

func (m *world) zone(thing, eye int) Zone {
	a, isThing := m.things[thing]
	b, isEye := m.eyes[eye]
	if !isThing || !isEye {
		return Outside
	}
	return m.Zone(a, b)
}

func (m *world) judge(thing, eye int) {
	switch pair := [2]int{thing, eye}; m.zone(thing, eye) {
	case Inside:
		m.seen[pair] = true
	case Outside:
		delete(m.seen, pair)
	case Border:
	}
}

// TestSuspectsIncludeEveryChangedPair: things and eyes step, jump, appear and disappear, in two
// and three dimensions. Checking the suspects gives the same result as checking every pair.
func TestSuspectsIncludeEveryChangedPair(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { walkAbout(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func walkAbout(t *testing.T, rng *rand.Rand) {
	const things, eyes = 40, 10
	m := &world{
		Shape:  shape(t, 2, 1+rng.Float64()*10, 2+rng.Float64()*6),
		things: map[int]Cell{}, eyes: map[int]Cell{}, seen: map[[2]int]bool{},
	}
	x := New(m.Shape)
	deep := rng.IntN(2) == 0
	place := func() Cell {
		c := Cell{rng.Int32N(40), rng.Int32N(40), 0}
		if deep {
			c.Z = rng.Int32N(20)
		}
		if rng.IntN(50) == 0 {
			c.X = lastCell
		}
		return c
	}
	near := func(c Cell) Cell {
		if rng.IntN(8) == 0 {
			return place()
		}
		return Cell{min(c.X+rng.Int32N(3)-1, lastCell), c.Y + rng.Int32N(3) - 1, c.Z}
	}
	for round := range 200 {
		m.before = maps.Clone(m.seen)
		for id := range things {
			at, is := m.things[id]
			switch r := rng.IntN(30); {
			case !is && r < 5: // the caller of AddThing checks all pairs
				m.things[id] = place()
				x.AddThing(id, m.things[id])
				for eye := range eyes {
					m.judge(id, eye)
					m.before[[2]int{id, eye}] = m.seen[[2]int{id, eye}]
				}
			case is && r == 0:
				delete(m.things, id)
				x.RemoveThing(id)
				for eye := range eyes {
					delete(m.seen, [2]int{id, eye})
				}
			case is && r < 12:
				m.things[id] = near(at)
				x.MoveThing(id, m.things[id])
			}
		}
		for id := range eyes {
			at, is := m.eyes[id]
			switch r := rng.IntN(20); {
			case !is && r < 10:
				m.eyes[id] = place()
			case is && r == 0:
				delete(m.eyes, id)
			case is && r < 10:
				m.eyes[id] = near(at)
			}
			at, is = m.eyes[id]
			x.MoveEye(id, at, is)
		}
		x.Settle(m.judge)
		for thing := range things {
			for eye := range eyes {
				pair := [2]int{thing, eye}
				want := m.zone(thing, eye) == Inside || m.zone(thing, eye) == Border && m.before[pair]
				if m.seen[pair] != want {
					t.Fatalf("round %d: thing %d and eye %d, zone %d: seen %v, want %v", round, thing, eye, m.zone(thing, eye), m.seen[pair], want)
				}
			}
		}
	}
}

// TestOneCellBackAndForthIsWithinTheMargin: along an axis a step over an edge changes the gap by at
// most the least margin.
func TestOneCellBackAndForthIsWithinTheMargin(t *testing.T) {
	for _, radius := range []float64{1, 2.5, 7, 10} {
		s := shape(t, 2, radius, 2)
		if z := s.Zone(Cell{}, Cell{1, 1, 1}); z != Inside {
			t.Errorf("radius %v: a neighbour is in zone %d", radius, z)
		}
		for x := int32(-20); x < 20; x++ {
			for y := int32(-20); y <= 20; y++ {
				if a, b := s.Zone(Cell{}, Cell{x, y, 0}), s.Zone(Cell{}, Cell{x + 1, y, 0}); a == Inside && b == Outside || a == Outside && b == Inside {
					t.Errorf("radius %v: %d,%d is in zone %d, its neighbour in %d", radius, x, y, a, b)
				}
			}
		}
	}
}

// TestAThingAndAnEyeMeet: a single thing and a single eye in one cell are paired once, and a cell
// that the thing has left costs no time later.
func TestAThingAndAnEyeMeet(t *testing.T) {
	x, met := New(shape(t, 2, 4, 4)), 0
	x.RemoveThing(0)
	x.AddThing(0, Cell{7, 7, 7})
	x.MoveEye(0, Cell{7, 7, 7}, true)
	if x.Settle(func(int, int) { met++ }); met != 1 {
		t.Errorf("they meet %d times", met)
	}
	for at := range int32(3) {
		x.MoveThing(0, Cell{at, 0, 0})
		x.Settle(func(int, int) {})
	}
	x.MoveThing(0, Cell{500, 0, 0})
	x.Settle(func(int, int) {})
	before, _ := x.Cost()
	x.MoveEye(0, Cell{8, 8, 8}, true)
	x.Settle(func(int, int) {})
	if after, _ := x.Cost(); after != before {
		t.Errorf("%d cells are looked at, where the only thing is far away", after-before)
	}
	if n := len(x.things.cells); n != 1 {
		t.Errorf("a thing has been in one cell at a time, and %d are kept", n)
	}
	x.RemoveThing(0)
	if at, is := x.Thing(0); is {
		t.Errorf("it has gone, and is in %v", at)
	}
}

// TestTheCostFollowsChangesOfCells: 10 000 things and 200 eyes without a change of cell have no
// cost, and each change costs the cells around it.
func TestTheCostFollowsChangesOfCells(t *testing.T) {
	x := newIndex(shape(t, 50, 100, 100), 10_000, 200)
	x.Settle(func(int, int) {})
	cost := func() (uint64, uint64) {
		cells, pairs := x.Cost()
		x.Settle(func(int, int) {})
		c, p := x.Cost()
		return c - cells, p - pairs
	}
	for id := range 10_000 {
		at, _ := x.Thing(id)
		x.MoveThing(id, at)
	}
	if cells, pairs := cost(); cells != 0 || pairs != 0 {
		t.Errorf("without a change of cell: %d cells, %d pairs", cells, pairs)
	}
	for id := range 100 {
		at, _ := x.Thing(id * 100)
		at.X++
		x.MoveThing(id*100, at)
	}
	// The reach is 5: 11² cells around each step to the next cell; nearly all pairs around it keep
	// their zone.
	if cells, pairs := cost(); cells > 100*11*11 || pairs > 100*200/10 {
		t.Errorf("100 of 10 000 left their cell: %d cells, %d pairs", cells, pairs)
	}
	for id := range 2 {
		at, _ := x.Eye(id)
		at.Y++
		x.MoveEye(id, at, true)
	}
	if cells, pairs := cost(); cells > 2*11*11 || pairs > 2*10_000/10 {
		t.Errorf("2 of 200 eyes left their cell: %d cells, %d pairs", cells, pairs)
	}
}

// newIndex spreads things and eyes over a plane of 40 × 40 cells.
func newIndex(s Shape, things, eyes int) *Index {
	x := New(s)
	for id := range things {
		x.AddThing(id, Cell{int32(id % 40), int32(id / 40 % 40), 0})
	}
	for id := range eyes {
		x.MoveEye(id, Cell{int32(id * 7 % 40), int32(id * 13 % 40), 0}, true)
	}
	return x
}

func TestMovesDoNotAllocate(t *testing.T) {
	x := newIndex(shape(t, 50, 100, 100), 1000, 50)
	pairs := 0
	suspect := func(int, int) { pairs++ }
	step := 0
	round := func() {
		step++
		for id := range 1000 {
			at, _ := x.Thing(id)
			if (id+step)%10 == 0 {
				at.X = (at.X + 1) % 40
			}
			x.MoveThing(id, at)
		}
		for id := range 50 {
			at, _ := x.Eye(id)
			if at.Y = (at.Y + 1) % 40; (id+step)%5 == 0 {
				x.MoveEye(id, at, true)
			}
		}
		x.Settle(suspect)
	}
	for range 400 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 || pairs == 0 {
		t.Errorf("%v allocations, %d pairs", n, pairs)
	}
}

// BenchmarkSettle: 10 000 things, 200 eyes, 1 % of both step into the next cell.
func BenchmarkSettle(b *testing.B) {
	x := newIndex(shape(b, 50, 100, 100), 10_000, 200)
	pairs := 0
	suspect := func(int, int) { pairs++ }
	x.Settle(suspect)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for k := range 100 {
			id := (i*100 + k) % 10_000
			at, _ := x.Thing(id)
			at.X = (at.X + 1) % 40
			x.MoveThing(id, at)
		}
		for k := range 2 {
			id := (i*2 + k) % 200
			at, _ := x.Eye(id)
			at.Y = (at.Y + 1) % 40
			x.MoveEye(id, at, true)
		}
		x.Settle(suspect)
	}
	b.ReportMetric(float64(pairs)/float64(b.N), "pairs/op")
}
