// Package lerp interpolates numbers and angles.
package lerp

import "math"

// Way returns the number a part t of the way from x to y, computed from the nearer of the two, so
// that it is exact at both ends. circle is the full circle of an angle, which takes the short way
// round, and 0 for other numbers. If both angles are from 0 to a full circle, or from minus half of
// one to half of one, so is the result.
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

// Wrap adds a full circle to an angle, or subtracts one, if that moves it into the range that
// contains x and y: from 0 to a full circle, or from minus half of one to half of one.
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
