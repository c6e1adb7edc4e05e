package rigid

import (
	"cmp"
	"slices"
)

const (
	dt      = 1.0 / 60
	gravity = 9.81
	drag    = 0.998 // fraction of speed and spin after a step
	fastest = 10.0  // metres per second: beyond that small cubes would pass through each other

	calmSpeed = 0.04 // metres or radians per second below which a body is calm
	calmSteps = 240  // such steps put it to sleep
	wakeSpeed = 0.1  // metres per second at which a body wakes the bodies that it touches
	stillFor  = 12   // steps below wakeSpeed, and a body no longer counts as touched
)

// World is a plane with cubes. It belongs to one goroutine.
type World struct {
	Bodies []Body

	touches []touch // of this step
	old     []touch // of the step before, by a and b
	heads   [cells * cells]int32
	next    []int32
	plane   Body // the ground, always asleep
}

// Add adds a cube at rest, which wakes when another body hits it.
func (w *World) Add(side, mass float64, pos Vec) *Body {
	b := Body{Pos: pos, Rot: Quat{W: 1}, Asleep: true, half: side / 2, perMass: 1 / mass, perTurn: 6 / (mass * side * side)}
	b.axes = b.Rot.axes()
	w.Bodies = append(w.Bodies, b)
	w.next = append(w.next, 0)
	w.plane.Asleep = true
	return &w.Bodies[len(w.Bodies)-1]
}

// Push applies an impulse and an angular impulse, between steps.
func (b *Body) Push(impulse, turn Vec) {
	b.wake()
	b.Vel = b.Vel.Add(impulse.Scale(b.perMass))
	b.Spin = b.Spin.Add(turn.Scale(b.perTurn))
}

func (w *World) other(t *touch) *Body {
	if t.b == ground {
		return &w.plane
	}
	return &w.Bodies[t.b]
}

// before returns the points of the same contact in the last step.
func (w *World) before(t *touch) []point {
	i, ok := slices.BinarySearchFunc(w.old, t, order)
	if !ok {
		return nil
	}
	return w.old[i].points
}

func order(x touch, y *touch) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) }

// Step advances all bodies by a 60th of a second.
func (w *World) Step() {
	for i := range w.Bodies {
		if b := &w.Bodies[i]; !b.Asleep {
			b.Vel = b.Vel.Sub(Vec{Z: gravity * dt})
		}
	}
	w.touches, w.old = w.old[:0], w.touches
	slices.SortFunc(w.old, func(x, y touch) int { return order(x, &y) })
	w.pair()
	for i := range w.touches {
		w.rouse(&w.touches[i])
	}
	for i := range w.touches {
		w.prepare(&w.touches[i])
	}
	for range rounds {
		for i := range w.touches {
			w.solve(&w.touches[i])
		}
	}
	for i := range w.Bodies {
		w.Bodies[i].move()
	}
}

// rouse wakes a body hit by another one, and marks the bodies that a touched one moves.
func (w *World) rouse(t *touch) {
	if t.b == ground {
		return
	}
	a, b := &w.Bodies[t.a], &w.Bodies[t.b]
	if a.Asleep {
		a, b = b, a
	}
	fast := a.lively() || b.lively()
	if b.Asleep && fast {
		b.wake()
	}
	if fast && (a.Touched || a.Touches || b.Touched || b.Touches) {
		a.Touched, b.Touched = true, true
	}
}

func (b *Body) lively() bool {
	return !b.Asleep && (b.Vel.Dot(b.Vel) > wakeSpeed*wakeSpeed || mul(b.Spin.Dot(b.Spin), b.half*b.half) > wakeSpeed*wakeSpeed)
}

// move integrates, and puts the body to sleep after enough calm steps.
func (b *Body) move() {
	if b.Asleep {
		return
	}
	b.Vel, b.Spin = b.Vel.Scale(drag), b.Spin.Scale(drag)
	if speed := b.Vel.Length(); speed > fastest {
		b.Vel = b.Vel.Scale(fastest / speed)
	}
	b.Pos = b.Pos.Add(b.Vel.Scale(dt))
	b.Rot = b.Rot.turn(b.Spin, dt)
	b.axes = b.Rot.axes()
	if b.still++; b.lively() {
		b.still = 0
	}
	if b.still >= stillFor {
		b.Touched = false
	}
	if b.calm++; b.Touches || b.Vel.Dot(b.Vel) > calmSpeed*calmSpeed || b.Spin.Dot(b.Spin) > calmSpeed*calmSpeed {
		b.calm = 0
	}
	if b.calm >= calmSteps {
		b.Asleep, b.Touched, b.Vel, b.Spin = true, false, Vec{}, Vec{}
	}
}
