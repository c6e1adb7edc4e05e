package cubes

import (
	"io"
	"math"
	"math/rand/v2"

	"github.com/netloop/netloop/internal/testing/rigid"
)

// The scene: a player's cube falls beside a field of small ones and is then driven about in it.
// For some seconds at a time it attracts near cubes, which tumble along and over each other, and
// then releases them. The constants give as many moving cubes, and as much motion, as in
// captures: see docs/PERFORMANCE.md.
const (
	fieldSide  = 30
	smallSide  = 0.4
	smallMass  = 1
	playerSide = 2
	playerMass = 40
	playerFar  = 14 // metres from the middle at which the player turns back

	drawFar    = 6   // metres from the player
	drawHeight = 2.2 // metres above the ground to which cubes are attracted
	drawForce  = 25  // m/s²

	driveForce  = 0.05 // fraction of the missing speed that a step adds
	driveTorque = 0.04 // the same for the spin of a wheel of that speed
)

// The seed of the field that is nearest to the reference capture in all figures, and the length of
// that capture.
const (
	DefaultSeed   = 2
	DefaultFrames = 2838
)

// Field is the simulated scene. It belongs to one goroutine.
type Field struct {
	world  rigid.World
	random *rand.Rand
	frame  Frame
	left   int // remaining frames

	goal  rigid.Vec // the player's wanted speed
	until int       // steps until the next goal
	draws bool
	turns int // steps until it starts or stops attracting
}

// NewField returns a source of so many frames. A seed gives the same frames on every machine.
func NewField(seed uint64, frames int) *Field {
	f := &Field{random: rand.New(rand.NewPCG(seed, Count)), left: frames}
	f.world.Bodies = make([]rigid.Body, 0, Count)
	f.world.Add(playerSide, playerMass, rigid.Vec{X: -20, Y: -20, Z: 4}).Touches = true
	for i := range fieldSide * fieldSide {
		const middle = (fieldSide - 1) / 2.0
		f.world.Add(smallSide, smallMass, rigid.Vec{X: float64(i%fieldSide) - middle, Y: float64(i/fieldSide) - middle, Z: smallSide / 2})
	}
	for i := range f.frame {
		f.frame[i] = quantise(&f.world.Bodies[i])
	}
	return f
}

// Next implements Source. The first frame is the scene before any motion.
func (f *Field) Next(to *Frame) error {
	if f.left == 0 {
		return io.EOF
	}
	f.left--
	*to = f.frame
	f.drive()
	f.world.Step()
	for i := range f.frame {
		if b := &f.world.Bodies[i]; !b.Asleep || f.frame[i].Touched {
			f.frame[i] = quantise(b)
		}
	}
	return nil
}

// drive pushes the player's cube, rolls it towards its goal, and in some periods attracts the small
// cubes.
func (f *Field) drive() {
	p := &f.world.Bodies[0]
	if f.until--; f.until < 0 {
		f.until = 15 + f.random.IntN(120)
		f.goal = f.randomGoal(p.Pos)
	}
	if f.turns--; f.turns < 0 {
		if f.draws = !f.draws; f.draws {
			f.turns = 60 + f.random.IntN(300)
		} else {
			f.turns = 180 + f.random.IntN(180)
		}
	}
	if f.draws {
		f.draw(rigid.Vec{X: p.Pos.X, Y: p.Pos.Y, Z: drawHeight})
	}
	roll := rigid.Vec{X: -f.goal.Y, Y: f.goal.X}.Scale(2.0 / playerSide)
	force, torque := f.goal.Sub(p.Vel).Scale(playerMass*driveForce), roll.Sub(p.Spin).Scale(playerMass*driveTorque)
	force.Z, torque.Z = 0, 0
	p.Push(force, torque)
}

// randomGoal returns a random speed and direction, inwards if the player is far outside, or at
// times zero.
func (f *Field) randomGoal(at rigid.Vec) rigid.Vec {
	// metres per second; the conversion keeps product and sum separate
	speed := 2.5 + float64(5*f.random.Float64())
	to := rigid.Vec{X: f.random.Float64()*2 - 1, Y: f.random.Float64()*2 - 1}
	switch {
	case math.Abs(at.X) > playerFar || math.Abs(at.Y) > playerFar:
		to = to.Scale(5).Sub(rigid.Vec{X: at.X, Y: at.Y})
	case f.random.IntN(5) == 0:
		return rigid.Vec{}
	}
	return to.Scale(speed / to.Length())
}

// draw attracts the small cubes near a position.
func (f *Field) draw(to rigid.Vec) {
	for i := range f.world.Bodies[1:] {
		b := &f.world.Bodies[1+i]
		d := to.Sub(b.Pos)
		if far := d.Length(); far < drawFar {
			b.Push(d.Scale(drawForce*smallMass/(far*Rate)), rigid.Vec{})
			b.Touched = true
		}
	}
}

// quantise rounds a body to the integers of a capture.
func quantise(b *rigid.Body) Cube {
	q := [4]float64{b.Rot.X, b.Rot.Y, b.Rot.Z, b.Rot.W}
	c := Cube{Touched: b.Touched}
	for i := range q {
		if math.Abs(q[i]) > math.Abs(q[c.Largest]) {
			c.Largest = int32(i)
		}
	}
	scale := math.Copysign(math.Sqrt2/2, q[c.Largest])
	for i, j := 0, 0; i < 4; i++ {
		if i != int(c.Largest) {
			part := 0.5 + float64(q[i]*scale) // 0..1
			c.Smallest[j] = rounded(float64(part*MaxSmallest), 0, MaxSmallest)
			j++
		}
	}
	c.Position = [3]int32{
		rounded(b.Pos.X*Steps, -MaxXY, MaxXY), rounded(b.Pos.Y*Steps, -MaxXY, MaxXY), rounded(b.Pos.Z*Steps, 0, MaxZ),
	}
	return c
}

func rounded(v, least, most float64) int32 { return int32(min(max(math.Floor(v+0.5), least), most)) }
