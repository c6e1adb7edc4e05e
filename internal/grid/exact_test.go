package grid

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAMoveSuspectsExactlyTheChangedPairs: if a single thing or eye moves, appears or is removed,
// the suspects are exactly the pairs that have become Inside or Outside, each once; for a new
// thing they are the eyes that it is Inside of.
func TestAMoveSuspectsExactlyTheChangedPairs(t *testing.T) {
	const n = 60
	rng := rand.New(rand.NewPCG(4, 2))
	s := shape(t, 2, 5, 4)
	x := New(s)
	place := func() Cell { return Cell{rng.Int32N(20), rng.Int32N(20), rng.Int32N(2)} }
	var got [][2]int
	note := func(thing, eye int) { got = append(got, [2]int{thing, eye}) }
	_, before := x.Cost()
	check := func(what string, want [][2]int) {
		t.Helper()
		slices.SortFunc(got, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v are suspected, want %v", what, got, want)
		}
		_, pairs := x.Cost()
		if pairs-before != uint64(len(got)) {
			t.Fatalf("%s: %d pairs are counted of %d", what, pairs-before, len(got))
		}
		got, before = got[:0], pairs
	}
	zone := func(thing, eye int) Zone {
		a, isThing := x.Thing(thing)
		b, isEye := x.Eye(eye)
		if !isThing || !isEye {
			return Outside
		}
		return s.Zone(a, b)
	}
	zones := func() (all [n][n]Zone) {
		for thing := range n {
			for eye := range n {
				all[thing][eye] = zone(thing, eye)
			}
		}
		return all
	}
	for id := range n {
		if x.Seen(id, note); len(got) > 0 {
			t.Fatalf("a removed thing is visible: %v", got)
		}
		x.AddThing(id, place())
		var want [][2]int
		for eye := range id {
			if zone(id, eye) == Inside {
				want = append(want, [2]int{id, eye})
			}
		}
		x.Seen(id, note)
		check("new", want)
		x.MoveEye(id, place(), true)
		x.Settle(func(int, int) {})
		_, before = x.Cost()
	}
	for range 1000 {
		was, id := zones(), rng.IntN(n)
		to := place()
		at, is := x.Eye(id)
		if near := rng.IntN(3); near > 0 && is {
			to = Cell{at.X + int32(near), at.Y, at.Z}
		}
		what := "a thing moves"
		switch rng.IntN(3) {
		case 0:
			x.MoveThing(id, to)
		case 1:
			what = "an eye moves"
			x.MoveEye(id, to, true)
		default:
			what = "an eye goes"
			x.MoveEye(id, to, false)
		}
		x.Settle(note)
		var want [][2]int
		for thing, row := range zones() {
			for eye, now := range row {
				if now != was[thing][eye] && now != Border {
					want = append(want, [2]int{thing, eye})
				}
			}
		}
		check(what, want)
	}
}

// TestAMoveVisitsOnlyCellsWithinItsReach: a step visits the cells around its start, a jump also
// those around its end, and a new thing only the near cells.
func TestAMoveVisitsOnlyCellsWithinItsReach(t *testing.T) {
	x := New(shape(t, 50, 100, 100)) // near is 3, the reach 5
	for i := range 60 * 60 {
		at := Cell{int32(i % 60), int32(i / 60), 0}
		x.AddThing(i, at)
		x.MoveEye(i, at, true)
	}
	none := func(int, int) {}
	x.Settle(none)
	const middle, reach, near = 30*60 + 30, 11 * 11, 7 * 7
	for _, c := range []struct {
		name string
		do   func()
		want int
	}{
		{"a thing's step", func() { x.MoveThing(middle, Cell{31, 31, 0}) }, reach},
		{"an eye's step", func() { x.MoveEye(middle, Cell{29, 30, 0}, true) }, reach},
		{"a thing's leap", func() { x.MoveThing(middle, Cell{33, 31, 0}) }, reach + near},
		{"an eye's leap", func() { x.MoveEye(middle, Cell{27, 30, 0}, true) }, reach + near},
		{"an eye that goes", func() { x.MoveEye(middle, Cell{}, false) }, reach},
		{"an eye that is nowhere", func() { x.MoveEye(middle, Cell{7, 7, 7}, false) }, 0},
		{"an eye that comes", func() { x.MoveEye(middle, Cell{30, 30, 0}, true) }, near},
		{"an eye that stays", func() { x.MoveEye(middle, Cell{30, 30, 0}, true) }, 0},
		{"something new", func() { x.Seen(middle, none) }, near},
		{"a thing's leap away from all eyes", func() { x.MoveThing(middle, Cell{500, 500, 0}) }, reach},
		{"a leap to where no eye is near along X", func() { x.MoveThing(middle, Cell{500, 30, 0}) }, 0},
		{"a leap to where no eye is near along Y", func() { x.MoveThing(middle, Cell{30, 500, 0}) }, 0},
		{"a leap to where no eye is near along Z", func() { x.MoveThing(middle, Cell{30, 30, 500}) }, 0},
		{"nothing", func() {}, 0},
	} {
		before, _ := x.Cost()
		c.do()
		x.Settle(none)
		if after, _ := x.Cost(); after-before != uint64(c.want) {
			t.Errorf("%s visits %d cells, want %d", c.name, after-before, c.want)
		}
	}
}
