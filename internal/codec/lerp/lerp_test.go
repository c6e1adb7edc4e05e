package lerp

import "testing"

// TestWayTakesTheShortWayRound interpolates numbers, and angles in degrees.
func TestWayTakesTheShortWayRound(t *testing.T) {
	const degrees = 360
	for _, c := range []struct{ x, y, t, circle, want float64 }{
		{10, 20, 0.25, 0, 12.5},
		{10, 20, 0.75, 0, 17.5},
		{350, 20, 0.5, 0, 185}, // no angle
		{10, 20, 0.5, degrees, 15},
		{350, 20, 0.5, degrees, 5},
		{350, 20, 1.0 / 3, degrees, 0},
		{20, 350, 0.25, degrees, 12.5},
		{20, 350, 0.9, degrees, 353},
		{0, 360, 0.5, degrees, 0},
		{360, 10, 0.5, degrees, 5},
		{170, -170, 0.5, degrees, -180},
		{170, -170, 0.25, degrees, 175},
		{-170, 170, 0.75, degrees, 175},
		{-200, 170, 0.5, degrees, -195}, // Not within half a turn from 0: the result is in no turn.
		{370, 10, 0.5, degrees, 370},
		{1e17, 1e17 + 64, 0.01, 0, 1e17}, // next to an end as exact as that end
		{0.1, 1e17, 1, 0, 1e17},
		{-1e17, 0.1, 1, 0, 0.1},
	} {
		if got := Way(c.x, c.y, c.t, c.circle); got != c.want {
			t.Errorf("%v of the way from %v to %v: %v, want %v", c.t, c.x, c.y, got, c.want)
		}
	}
}

// TestWrapMovesAnAngleIntoTheTurnOfItsEnds has ends within a turn from 0, within half a turn from
// it, and in neither.
func TestWrapMovesAnAngleIntoTheTurnOfItsEnds(t *testing.T) {
	for _, c := range []struct{ at, x, y, want float64 }{
		{-1, 0, 5, 359},
		{0, 0, 5, 0},
		{359, 0, 360, 359},
		{360, 0, 360, 0},
		{370, 5, 355, 10},
		{370, 5, 361, 370},
		{180, -5, 5, -180},
		{-180, -180, 180, -180},
		{-181, -180, 180, 179},
		{-181, -180, 181, -181},
		{-181, -181, 180, -181},
	} {
		if got := Wrap(c.at, c.x, c.y, 360); got != c.want {
			t.Errorf("%v between %v and %v: %v, want %v", c.at, c.x, c.y, got, c.want)
		}
	}
	if got := Wrap(7, 1, 2, 0); got != 7 {
		t.Errorf("a number became %v", got)
	}
}
