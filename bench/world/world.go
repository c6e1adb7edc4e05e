// Package world has the motion of the peers' world: the usual one for comparing game servers, 100
// entities of four float32 that are visible to all clients.
package world

import "math"

// Entities is the number of entities.
const Entities = 100

// Body is an entity: its position and its velocity.
type Body struct{ X, Y, VX, VY float32 }

// Motion returns the state of entity i in a tick.
type Motion func(tick uint64, i int) Body

// Motions are the worlds by name. In smooth and flips all entities move in each tick, in tenth
// always the same tenth of them.
var Motions = map[string]Motion{"smooth": Circle, "flips": Flip, "tenth": Tenth}

// Circle is smooth motion.
func Circle(tick uint64, i int) Body {
	radius := 20 + float64(i)/3
	sin, cos := math.Sincos(float64(tick)/120 + float64(i))
	return Body{float32(100 + radius*cos), float32(-50 + radius*sin), float32(-radius * sin / 2), float32(radius * cos / 2)}
}

// Flip is the motion of an entity that jumps between two moving walls, and so changes its direction
// in every tick.
func Flip(tick uint64, i int) Body {
	b := Circle(tick, i)
	if tick%2 == 1 {
		b.X, b.Y, b.VX, b.VY = b.X+b.VX/60, b.Y+b.VY/60, -b.VX, -b.VY
	}
	return b
}

// Tenth is smooth motion of one in ten entities. The others never move.
func Tenth(tick uint64, i int) Body {
	if i%10 != 0 {
		tick = 0
	}
	return Circle(tick, i)
}
