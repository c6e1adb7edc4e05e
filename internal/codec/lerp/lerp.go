// Package lerp interpolates numbers and angles.
package lerp

import "math"

// Way returns the number at the part t of the way from x to y. It computes from the nearer of the
// two, so that it is exact at both ends. For an angle, which takes the short way round, circle is
// the full circle; for other numbers it is 0. If both angles are between 0 and a full circle, or
// between minus half and half a circle, so is the result.
func Way(x, y, t, circle float64) float64 {
	d := y - x
	if circle != 0 {
		d -= float64(circle * math.RoundToEven(d/circle))
	}
	return Wrap(Along(x, y, d, t), x, y, circle)
}

// Along returns x plus a part t of the distance d to y.
func Along(x, y, d, t float64) float64 {
	if t > 0.5 {
		return float64(d*(t-1)) + y
	}
	return float64(d*t) + x
}

// Wrap adds a full circle to an angle, or subtracts it, if this moves the angle into the range of x
// and y: from 0 to a full circle, or from minus half to half a circle.
func Wrap(at, x, y, circle float64) float64 {
	least := 0.0
	if min(x, y) < 0 {
		least = -circle / 2
	}
	switch {
	case min(x, y) < least || max(x, y) > least+circle: // and without a circle
	case at < least:
		at += circle
	case at >= least+circle:
		at -= circle
	}
	return at
}
