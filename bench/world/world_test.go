package world

import "testing"

// Smooth motion changes every entity in every tick, by less than a unit.
func TestSmoothMotionIsSmooth(t *testing.T) {
	for i := range Entities {
		a, b := Circle(1, i), Circle(2, i)
		if a == b || a.X == b.X || max(b.X-a.X, a.X-b.X) > 1 || max(b.Y-a.Y, a.Y-b.Y) > 1 {
			t.Errorf("entity %d: %+v, then %+v", i, a, b)
		}
	}
}

// Flipping motion changes the sign of every velocity in every tick, and the positions follow.
func TestFlipsGoBackAndForth(t *testing.T) {
	for i := range Entities {
		even, odd := Circle(1, i), Flip(1, i)
		if odd.VX != -even.VX || odd.VY != -even.VY || odd.X == even.X || Flip(2, i) != Circle(2, i) {
			t.Errorf("entity %d: %+v, then %+v", i, even, odd)
		}
	}
}

// Ten of the hundred entities move, always the same.
func TestOneInTenMoves(t *testing.T) {
	for tick := range uint64(3) {
		moved := 0
		for i := range Entities {
			if Tenth(tick, i) != Tenth(tick+1, i) {
				moved++
			}
		}
		if moved != Entities/10 {
			t.Errorf("tick %d: %d entities move", tick, moved)
		}
	}
}
