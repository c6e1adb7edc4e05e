package arena

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
)

// How ships fly, in units, radians and seconds.
const (
	thrust      = 220 // acceleration
	drag        = 0.6 // share of the speed lost per second
	turnRate    = 3.0
	shipRadius  = 14
	fullHull    = 3
	spawnShield = 2 * time.Second
)

// fly moves a body for dt seconds around the arena.
func (b *Body) fly(dt float32) {
	b.X = wrap(b.X + b.VX*dt)
	b.Y = wrap(b.Y + b.VY*dt)
}

func wrap(x float32) float32 {
	switch {
	case x < 0:
		return x + Size
	case x >= Size:
		return x - Size
	}
	return x
}

// near reports whether two places are within r of each other, across the edges
// too.
func near(ax, ay, bx, by, r float32) bool {
	dx, dy := apart(ax, bx), apart(ay, by)
	return dx*dx+dy*dy < r*r
}

func apart(a, b float32) float32 {
	d := a - b
	if d < 0 {
		d = -d
	}
	return min(d, Size-d)
}

// step flies a ship by its controls for dt seconds.
func (s *Ship) step(dt float32) {
	s.Heading += float32(s.Turn) * turnRate * dt
	switch {
	case s.Heading < 0:
		s.Heading += 2 * math.Pi
	case s.Heading >= 2*math.Pi:
		s.Heading -= 2 * math.Pi
	}
	if s.Thrust {
		sin, cos := math.Sincos(float64(s.Heading))
		s.VX += float32(cos) * thrust * dt
		s.VY += float32(sin) * thrust * dt
	}
	s.VX -= s.VX * drag * dt
	s.VY -= s.VY * drag * dt
	s.fly(dt)
}

// spawn gives a ship a new place and a whole hull.
func (s *Ship) spawn(t *netloop.Tick) {
	s.Body = anywhere(t.Rand())
	s.Hull = fullHull
	s.Shield = t.In(spawnShield)
}

func anywhere(r *rand.Rand) Body {
	return Body{X: r.Float32() * Size, Y: r.Float32() * Size}
}

const maxName = 16 // bytes of a player's name, the max of Ship.Name

// join gives a client its ship.
func (a *room) join(t *netloop.Tick, c *netloop.Client) error {
	var p JoinParams
	if err := c.Join().Params(&p); err != nil {
		return netloop.Refuse(netloop.CodeRefused, "the join parameters are not the arena's: %v", err)
	}
	if p.Name == "" {
		p.Name = fmt.Sprintf("pilot %d", c.ID())
	}
	ship := Ship{Name: netloop.Clip(p.Name, maxName)}
	ship.spawn(t)
	a.ships.Of(c).ship = Ships.Spawn(t, ship, netloop.OwnedBy(c.ID()))
	return nil
}

// steer takes a client's controls. It runs before the first fixed step.
func (a *room) steer(t *netloop.Tick, from *netloop.Client, in Steer) error {
	s := a.ships.Of(from).ship.Edit(t)
	s.Thrust, s.Turn = in.Thrust, max(-1, min(in.Turn, 1))
	return nil
}

// flyShips is the ships' part of a fixed step.
func (a *room) flyShips(t *netloop.Tick) {
	dt := float32(t.Delta().Seconds())
	for s := range Ships.All(t) {
		s.Edit(t).step(dt)
	}
}
