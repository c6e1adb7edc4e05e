package arena

import (
	"iter"
	"math"
	"time"

	"github.com/netloop/netloop"
)

const (
	shotRange  = 800 // units
	shotGlow   = 200 * time.Millisecond
	reloadTime = 250 * time.Millisecond // longer than a beam is visible: a ship has one at most
)

// Shot returns the beam of a shot that the ship fires now.
func (s *Ship) Shot(t *netloop.Tick) Shot {
	return Shot{X: s.X, Y: s.Y, Heading: s.Heading, End: t.In(shotGlow)}
}

// fire decides at once which ship a shot strikes, in the view of the shooting player.
func (a *room) fire(t *netloop.Tick, from *netloop.Client, ship *netloop.Object[Ship], shot Shot) {
	shot.Born = t.SpawnKey(from)
	Shots.Spawn(t, shot, netloop.OwnedBy(from.ID()))
	saw := t.ViewMoment(from)
	if o := shot.Strikes(t, from.ID(), At(t, Rocks, saw), At(t, Ships, saw)); o != nil {
		strike := Strike{By: ship.Ref(), Ship: o.Ref(), Step: t.FixedStep()}
		Struck.Send(t, netloop.To(from.ID(), o.Owner()), strike, netloop.WithState())
		a.damage(t, o, ship)
	}
}

// At returns the objects of a class as a player saw them, without those that have despawned since.
func At[S any](t *netloop.Tick, k *netloop.Class[S], v netloop.Moment) iter.Seq2[*netloop.Object[S], S] {
	return func(yield func(*netloop.Object[S], S) bool) {
		for o := range k.All(t) {
			if s, ok := o.At(v); ok && !yield(o, s) {
				return
			}
		}
	}
}

// Strikes returns the ship that a shot strikes, among rocks, which stop it, and ships of some view;
// nil is none.
func (s Shot) Strikes(t *netloop.Tick, by netloop.ClientID, rocks iter.Seq2[*netloop.Object[Rock], Rock], ships iter.Seq2[*netloop.Object[Ship], Ship]) (struck *netloop.Object[Ship]) {
	sin, cos := math.Sincos(float64(s.Heading))
	reach := float32(shotRange)
	for _, r := range rocks {
		if ahead, ok := s.meets(float32(sin), float32(cos), r.X, r.Y, float32(r.Radius)); ok {
			reach = min(reach, ahead)
		}
	}
	for o, ship := range ships {
		if o.Owner() == by || ship.Hull == 0 || !ship.Shield.Passed(t) {
			continue
		}
		if ahead, ok := s.meets(float32(sin), float32(cos), ship.X, ship.Y, shipRadius); ok && ahead < reach {
			struck, reach = o, ahead
		}
	}
	return struck
}

// meets reports whether the line of a shot passes within r of a position, and the distance along
// the line.
func (s *Shot) meets(sin, cos, x, y, r float32) (ahead float32, ok bool) {
	dx, dy := distance(s.X, x), distance(s.Y, y)
	ahead = dx*cos + dy*sin
	aside := dy*cos - dx*sin
	return ahead, ahead > 0 && aside*aside < r*r
}

// endShots despawns the beams after their time.
func (a *room) endShots(t *netloop.Tick) {
	for s := range Shots.All(t) {
		if s.State().End.Passed(t) {
			s.Despawn(t)
		}
	}
}

// damage takes a hit from a ship's hull. A ship without a hull falls, and the shooter scores.
func (a *room) damage(t *netloop.Tick, ship, by *netloop.Object[Ship]) {
	s := ship.Edit(t)
	if s.Hull = max(s.Hull, 1) - 1; s.Hull > 0 || !s.Falls.Passed(t) {
		return
	}
	s.Falls = t.In(fallTime)
	s.Score--
	by.Edit(t).Score += 3
}
