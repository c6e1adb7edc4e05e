package arena

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
)

// The flight of ships, in units, radians and seconds.
const (
	thrust      = 220 // acceleration
	drag        = 0.6 // share of the speed lost per second
	turnRate    = 3.0
	shipRadius  = 14
	fullHull    = 3
	spawnShield = 2 * time.Second
)

// drift moves a position for dt seconds around the arena. It reports a move over an edge, which
// must not be interpolated.
func drift(x, y *float32, vx, vy, dt float32) (over bool) {
	overX, overY := wrap(x, vx*dt), wrap(y, vy*dt)
	return overX || overY
}

func wrap(x *float32, by float32) (over bool) {
	*x += by
	switch {
	case *x < 0:
		*x += Size
	case *x >= Size:
		*x -= Size
	default:
		return false
	}
	return true
}

// distance returns the signed distance from a to b along one side of the arena, on the shorter way
// around.
func distance(a, b float32) float32 {
	switch d := b - a; {
	case d > Size/2:
		return d - Size
	case d < -Size/2:
		return d + Size
	default:
		return d
	}
}

// Steer flies a ship for a fixed step by its player's input, and reports whether it fires. It
// depends on its arguments alone, because the server and, a little earlier, the player's client run
// it.
func (s *Ship) Steer(t *netloop.Tick, in Control) (fires bool) {
	s.Thrust, s.Turn = in.Thrust, max(-1, min(in.Turn, 1))
	s.fly(float32(t.Delta().Seconds()))
	if !in.Fire || !s.Reload.Passed(t) || s.fallen(t) {
		return false
	}
	s.Reload = t.In(reloadTime)
	return true
}

// fly flies a ship by its controls for dt seconds.
func (s *Ship) fly(dt float32) {
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
	if drift(&s.X, &s.Y, s.VX, s.VY, dt) {
		s.Leaps++
	}
}

// fallTime is how long a destroyed ship still flies. It is longer than the round trip of its
// player, so the inputs that the player makes before seeing the loss still count.
const fallTime = 400 * time.Millisecond

func (s *Ship) fallen(t *netloop.Tick) bool { return s.Hull == 0 && s.Falls.Passed(t) }

// raiseShips respawns ships that have fallen.
func (a *room) raiseShips(t *netloop.Tick) {
	for o := range Ships.All(t) {
		if s := o.State(); s.fallen(t) {
			o.Edit(t).spawn(t)
		}
	}
}

// spawn gives a ship a new position and a full hull.
func (s *Ship) spawn(t *netloop.Tick) {
	s.X, s.Y = anywhere(t.Rand())
	s.VX, s.VY = 0, 0
	s.Leaps++
	s.Hull = fullHull
	s.Shield = t.In(spawnShield)
}

func anywhere(r *rand.Rand) (x, y float32) { return r.Float32() * Size, r.Float32() * Size }

const maxName = 16 // bytes of a player's name, the max of Ship.Name

// join gives a client its ship, unless it watches.
func (a *room) join(t *netloop.Tick, c *netloop.Client) error {
	var p JoinParams
	if err := c.Join().Params(&p); err != nil {
		return netloop.Refuse(netloop.CodeRefused, "the join parameters are not the arena's: %v", err)
	}
	if !p.Watch {
		a.launch(t, c, p.Name)
	}
	return nil
}

// enter gives a ship to a client that has watched.
func (a *room) enter(t *netloop.Tick, from *netloop.Client, in Entry) error {
	if a.ships.Of(from).ship != nil {
		return netloop.Refuse(netloop.CodeRefused, "you have a ship")
	}
	a.launch(t, from, in.Name)
	return nil
}

// launch gives a player a ship.
func (a *room) launch(t *netloop.Tick, c *netloop.Client, name string) {
	ship := Ship{Name: netloop.Truncate(cmp.Or(name, fmt.Sprintf("pilot %d", c.ID())), maxName)}
	ship.spawn(t)
	a.ships.Of(c).ship = Ships.Spawn(t, ship, netloop.OwnedBy(c.ID()))
}

// control runs for the input of a player, once in each fixed step.
func (a *room) control(t *netloop.Tick, from *netloop.Client, in Control) {
	ship := a.ships.Of(from).ship
	if ship == nil {
		return
	}
	if s := ship.Edit(t); s.Steer(t, in) {
		a.fire(t, from, ship, s.Shot(t))
	}
}
