package game

import (
	"math"

	"github.com/netloop/netloop"
)

// Step moves a ship by its player's input, and reports whether it fires. It depends on its
// arguments alone, since the page computes the same a little earlier.
func (s *Ship) Step(t *netloop.Tick, in Control) (fires bool) {
	s.X = min(max(s.X+speed*sign(in.DX), radius), Width-radius)
	s.Y = min(max(s.Y+speed*sign(in.DY), radius), Height-radius)
	s.Aim = in.Aim
	if !in.Fire || !s.Reload.Passed(t) {
		return false
	}
	s.Reload = t.In(reload)
	return true
}

// sign limits a number of a client: never trust one.
func sign(key int8) float32 { return float32(min(max(key, -1), 1)) }

// spawn puts a ship somewhere, with a full hull and a shield.
func (s *Ship) spawn(t *netloop.Tick) {
	s.X, s.Y = radius+t.Rand().Float32()*(Width-2*radius), radius+t.Rand().Float32()*(Height-2*radius)
	s.Leaps++
	s.Hull, s.Shield = fullHull, t.In(shield)
}

// Beam returns the beam of a shot that the ship fires now.
func (s *Ship) Beam(t *netloop.Tick) Beam { return Beam{X: s.X, Y: s.Y, Aim: s.Aim, End: t.In(glow)} }

// fire shoots. A shot hits the ships that its player saw in its way, although they have moved on
// since: lag compensation.
func fire(t *netloop.Tick, from *netloop.Client, ship *netloop.Object[Ship]) {
	s := ship.State()
	beam := s.Beam(t)
	beam.Born = t.SpawnKey(from)
	Beams.Spawn(t, beam, netloop.OwnedBy(from.ID()))
	saw := t.ViewMoment(from)
	for other := range Ships.All(t) {
		if then, ok := other.At(saw); ok && other != ship && beam.Hits(then.X, then.Y) {
			damage(t, other, ship)
		}
	}
}

// Hits reports whether the beam passes through a ship at a position.
func (b *Beam) Hits(x, y float32) bool {
	sin, cos := math.Sincos(float64(b.Aim))
	dx, dy := float64(x-b.X), float64(y-b.Y)
	ahead, aside := dx*cos+dy*sin, dy*cos-dx*sin
	return ahead > 0 && math.Abs(aside) < radius
}

// damage takes a hit from a ship. Without a hull it spawns anew, and the other one scores.
func damage(t *netloop.Tick, ship, by *netloop.Object[Ship]) {
	s := ship.Edit(t)
	if !s.Shield.Passed(t) {
		return
	}
	if s.Hull--; s.Hull == 0 {
		s.spawn(t)
		by.Edit(t).Score++
	}
}
