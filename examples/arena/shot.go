package arena

import (
	"math"
	"time"

	"github.com/netloop/netloop"
)

const (
	maxShots   = 50 // alive in a room
	shotSpeed  = 600
	shotLife   = 1500 * time.Millisecond
	reloadTime = 250 * time.Millisecond
)

// fire lets a client's ship shoot, unless it reloads or too much is in the air.
func (a *room) fire(t *netloop.Tick, from *netloop.Client, _ Fire) error {
	ship := a.ships.Of(from).ship
	s := ship.State()
	if a.shots >= maxShots || t.GameTime() < s.Reload {
		return nil
	}
	sin, cos := math.Sincos(float64(s.Heading))
	Shots.Spawn(t, Shot{
		X: s.X, Y: s.Y, By: ship.Ref(), End: t.In(shotLife),
		VX: s.VX + float32(cos)*shotSpeed, VY: s.VY + float32(sin)*shotSpeed,
	})
	a.shots++
	ship.Edit(t).Reload = t.GameTime() + reloadTime
	return nil
}

// Position returns where the shot is at this tick, on the server and on a client.
func (s Shot) Position(t *netloop.Tick) (x, y float32) {
	flown := float32((shotLife - s.End.Left(t)).Seconds())
	return wrap(s.X + s.VX*flown), wrap(s.Y + s.VY*flown)
}

// endShots takes away the shots whose time is over.
func (a *room) endShots(t *netloop.Tick) {
	for s := range Shots.All(t) {
		if s.State().End.Passed(t) {
			a.spend(t, s)
		}
	}
}

func (a *room) spend(t *netloop.Tick, s *netloop.Object[Shot]) {
	s.Despawn(t)
	a.shots--
}

// hit finds what the shots have hit: a rock stops a shot, a ship is damaged.
func (a *room) hit(t *netloop.Tick) {
	for o := range Shots.All(t) {
		shot := o.State()
		x, y := shot.Position(t)
		if a.hitsRock(t, x, y) {
			a.spend(t, o)
			continue
		}
		if ship, ok := a.hitsShip(t, x, y, shot.By); ok {
			a.spend(t, o)
			a.damage(t, ship, shot.By)
		}
	}
}

func (a *room) hitsRock(t *netloop.Tick, x, y float32) bool {
	for o := range Rocks.All(t) {
		if r := o.State(); near(x, y, r.X, r.Y, float32(r.Radius)) {
			return true
		}
	}
	return false
}

func (a *room) hitsShip(t *netloop.Tick, x, y float32, by netloop.Ref[Ship]) (*netloop.Object[Ship], bool) {
	for o := range Ships.All(t) {
		if o.Ref() == by {
			continue
		}
		if s := o.State(); s.Shield.Passed(t) && near(x, y, s.X, s.Y, shipRadius) {
			return o, true
		}
	}
	return nil, false
}

// damage takes a hit from a ship's hull. Without a hull it starts anew, and who
// shot scores.
func (a *room) damage(t *netloop.Tick, ship *netloop.Object[Ship], by netloop.Ref[Ship]) {
	s := ship.Edit(t)
	if s.Hull--; s.Hull > 0 {
		return
	}
	s.Score--
	s.spawn(t)
	if shooter, ok := by.Get(t); ok {
		shooter.Edit(t).Score += 3
	}
}
