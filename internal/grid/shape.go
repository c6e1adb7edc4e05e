package grid

import (
	"fmt"
	"math"
)

// Cell is a cube of space by its place in each direction.
type Cell struct{ X, Y, Z int32 }

// Border cells hold all that lies further out, and what has no place at all. 21 bits a direction
// make one word of a cell.
const (
	lastCell  = 1<<20 - 1
	firstCell = -lastCell
)

// MaxReach bounds how many cells lie between a thing and the furthest that may see it: a walk looks
// at up to (2·MaxReach+1)² cells of a plane.
const MaxReach = 16

// Shape is how space is cut, and how far things are seen.
type Shape struct {
	size float64
	// squares of the gaps at which a pair is Inside, and not Outside yet, in cells
	inside, again float64
	near, reach   int32 // how many cells further what is Inside may lie, and what is not Outside
}

// Zone is where a thing lies for an eye.
type Zone uint8

// The zones, from far to near.
const (
	Outside Zone = iota
	Border
	Inside
)

// NewShape checks the measures of a grid, in the game's unit of length: the side of a cell, the
// radius within which things are seen, and the margin by which they must leave it. The margin is at
// least a cell.
func NewShape(cell, radius, margin float64) (Shape, error) {
	if !(radius > 0) || math.IsInf(radius, 0) {
		return Shape{}, fmt.Errorf("a radius of %v; give how near things appear, a positive number", radius)
	}
	for _, v := range []float64{cell, margin} {
		if !(v > 0) || math.IsInf(v, 0) {
			return Shape{}, fmt.Errorf("a cell of %v and a margin of %v; give positive numbers, or 0 for what the radius suggests", cell, margin)
		}
	}
	if margin < cell {
		return Shape{}, fmt.Errorf("a margin of %v is less than a cell of %v: what goes to and fro over the edge of a cell would come and go; make the margin larger or the cells smaller", margin, cell)
	}
	out := (radius + margin) / cell
	if out > MaxReach-1 {
		return Shape{}, fmt.Errorf("radius and margin are %v cells, more than %d: make the cells larger, a quarter of the radius is a good size", out, MaxReach-1)
	}
	in := radius / cell
	return Shape{size: cell, inside: in * in, again: out * out, near: int32(in) + 1, reach: int32(out) + 1}, nil
}

// Cell returns the cell of a point. What is too far out, infinite or not a number lies in the last
// or first cell of that direction, and is reported as bad.
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

// Zone tells how two cells lie to each other.
func (s *Shape) Zone(a, b Cell) Zone {
	x, y, z := apart(a.X, b.X), apart(a.Y, b.Y), apart(a.Z, b.Z)
	switch gap := x*x + y*y + z*z; {
	case gap <= s.inside:
		return Inside
	case gap <= s.again:
		return Border
	default:
		return Outside
	}
}

// apart is how many cells lie between two places.
func apart(a, b int32) float64 {
	return float64(max(0, max(a, b)-min(a, b)-1))
}

// matters tells whether a pair that was in one zone and is in another may have to be told apart.
func matters(was, is Zone) bool {
	return is != was && (is == Inside || is == Outside)
}

// within tells whether a cell lies in the box around another.
func (c Cell) within(o Cell, reach int32) bool {
	near := func(a, b int32) bool { return max(a, b)-min(a, b) <= reach }
	return near(c.X, o.X) && near(c.Y, o.Y) && near(c.Z, o.Z)
}

func (c Cell) word() uint64 {
	const mask = 1<<21 - 1
	return uint64(c.X)&mask<<42 | uint64(c.Y)&mask<<21 | uint64(c.Z)&mask
}
