package grid

import (
	"fmt"
	"math"
)

// Cell is a cube of space, by its integer coordinates.
type Cell struct{ X, Y, Z int32 }

// The outermost cells hold all points further out, and all points with invalid coordinates. 21 bits
// per direction pack a cell into one word.
const (
	lastCell  = 1<<20 - 1
	firstCell = -lastCell
)

// MaxReach bounds the number of cells between a thing and an eye that can see it: a walk visits up
// to (2·MaxReach+1)² cells of a plane.
const MaxReach = 16

// Shape is the size of cells and the range of sight.
type Shape struct {
	size float64
	// squares of gaps, in cells: a pair is Inside up to inside, and Outside above again
	inside, again float64
	// the largest difference of a coordinate, in cells, for pairs that are Inside (near), and for
	// pairs that are not Outside (reach)
	near, reach int32
}

// Zone is the class of a distance between a thing and an eye: see the package comment.
type Zone uint8

// The zones, from far to near.
const (
	Outside Zone = iota
	Border
	Inside
)

// NewShape checks the dimensions of a grid, in the game's unit of length: the side of a cell, the
// radius within which things become visible, and the margin beyond the radius at which they
// disappear. It returns an error if one of them is not positive and finite, if the margin is less
// than a cell, or if radius and margin together span more than MaxReach-1 cells.
func NewShape(cell, radius, margin float64) (Shape, error) {
	if !(radius > 0) || math.IsInf(radius, 0) {
		return Shape{}, fmt.Errorf("a radius of %v: use a positive distance", radius)
	}
	for _, v := range []float64{cell, margin} {
		if !(v > 0) || math.IsInf(v, 0) {
			return Shape{}, fmt.Errorf("a cell of %v and a margin of %v; use positive numbers, or 0 for the default", cell, margin)
		}
	}
	if margin < cell {
		return Shape{}, fmt.Errorf("a margin of %v is less than a cell of %v: an object that moves to and fro over the edge of a cell would appear and disappear; make the margin larger or the cells smaller", margin, cell)
	}
	out := (radius + margin) / cell
	if out > MaxReach-1 {
		return Shape{}, fmt.Errorf("radius and margin are %v cells, more than %d: make the cells larger, a quarter of the radius is a good size", out, MaxReach-1)
	}
	in := radius / cell
	return Shape{size: cell, inside: in * in, again: out * out, near: int32(in) + 1, reach: int32(out) + 1}, nil
}

// Measures returns the side of a cell, and the gaps up to which a pair is Inside and not Outside.
func (s *Shape) Measures() (cell, inside, border float64) {
	return s.size, s.size * math.Sqrt(s.inside), s.size * math.Sqrt(s.again)
}

// Cell returns the cell of a point. A coordinate too far out, infinite or not a number is mapped to
// the last or first cell of that direction, and reported as bad.
func (s *Shape) Cell(x, y, z float64) (c Cell, bad bool) {
	var bx, by, bz bool
	c.X, bx = s.place(x)
	c.Y, by = s.place(y)
	c.Z, bz = s.place(z)
	return c, bx || by || bz
}

func (s *Shape) place(v float64) (at int32, bad bool) {
	switch f := math.Floor(v / s.size); {
	case f >= firstCell && f <= lastCell:
		return int32(f), false
	case f > lastCell:
		return lastCell, true
	default: // NaN too
		return firstCell, true
	}
}

// Zone returns the zone of two cells.
func (s *Shape) Zone(a, b Cell) Zone {
	x, y, z := cellsBetween(a.X, b.X), cellsBetween(a.Y, b.Y), cellsBetween(a.Z, b.Z)
	switch gap := x*x + y*y + z*z; {
	case gap <= s.inside:
		return Inside
	case gap <= s.again:
		return Border
	default:
		return Outside
	}
}

// cellsBetween returns the number of cells between two coordinates.
func cellsBetween(a, b int32) float64 {
	return float64(max(0, max(a, b)-min(a, b)-1))
}

// matters reports whether a change of zone may change visibility.
func matters(was, is Zone) bool {
	return is != was && (is == Inside || is == Outside)
}

// within reports whether each coordinate of two cells differs by at most reach.
func (c Cell) within(o Cell, reach int32) bool {
	near := func(a, b int32) bool { return max(a, b)-min(a, b) <= reach }
	return near(c.X, o.X) && near(c.Y, o.Y) && near(c.Z, o.Z)
}

func (c Cell) word() uint64 {
	const mask = 1<<21 - 1
	return uint64(c.X)&mask<<42 | uint64(c.Y)&mask<<21 | uint64(c.Z)&mask
}
