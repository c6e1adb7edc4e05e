// Package play is the arena of one player without a window: the player's input, the content of each
// frame, its sounds, and the figures of the connection.
//
//	Game.Input ──▶ client: prediction and interpolation ──▶ Game.Frame, Game.Heard, Game.Graph
package play

import (
	"cmp"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
)

// Game is the arena of one player. Its fields may be used between two Steps of the client.
type Game struct {
	Client *client.Client
	// Input is the player's input. A press of Fire is used once.
	Input arena.Control
	Frame Frame
	Graph Graph

	sounds []Sound // since the last Heard
}

// Frame is the content of a frame. Its slices are used again for the next one.
type Frame struct {
	X, Y    float32 // the centre: the position of the own ship
	Own     *Ship   // nil: it has not spawned
	Ships   []Ship  // the best player first
	Rocks   []arena.Rock
	Shots   []Shot
	Pickups []arena.Pickup
	Bursts  []Burst
}

// Ship is a ship as it is drawn.
type Ship struct {
	arena.Ship
	Own, Shielded bool
}

// Shot is the beam of a shot.
type Shot struct {
	arena.Shot
	Own  bool
	Left float32 // of its time, from 1 to 0
}

// Burst is the explosion of a ship.
type Burst struct {
	X, Y  float32
	Part  float32 // of its time, from 0 to 1
	since time.Duration
}

// The times for which a beam and a burst are visible.
const (
	beamTime  = 200 * time.Millisecond
	burstTime = 600 * time.Millisecond
)

// New lets a client play. Call it before the client's first Step.
func New(c *client.Client) *Game {
	g := &Game{Client: c}
	arena.Play(c, func(*netloop.Tick) arena.Control {
		in := g.Input
		g.Input.Fire = false
		return in
	})
	g.watch()
	c.On(netloop.PostLateUpdate, "desktop.look", g.look)
	return g
}

// look is the system desktop.look: it copies the drawn states of all objects to the frame.
func (g *Game) look(t *netloop.Tick) {
	f, self := &g.Frame, g.Client.ID()
	f.Ships, f.Rocks, f.Shots, f.Pickups, f.Own = f.Ships[:0], f.Rocks[:0], f.Shots[:0], f.Pickups[:0], nil
	for o, s := range client.Views(g.Client, arena.Ships) {
		f.Ships = append(f.Ships, Ship{s, o.Owner() == self, !s.Shield.Passed(t)})
	}
	slices.SortStableFunc(f.Ships, func(a, b Ship) int { return cmp.Compare(b.Score, a.Score) })
	if i := slices.IndexFunc(f.Ships, func(s Ship) bool { return s.Own }); i >= 0 {
		f.Own = &f.Ships[i]
		f.X, f.Y = f.Own.X, f.Own.Y
	}
	for _, r := range client.Views(g.Client, arena.Rocks) {
		f.Rocks = append(f.Rocks, r)
	}
	for o, s := range client.Views(g.Client, arena.Shots) {
		if left := float32(s.End.Left(t)) / float32(beamTime); left > 0 {
			f.Shots = append(f.Shots, Shot{s, o.Owner() == self, min(left, 1)})
		}
	}
	for o := range arena.Pickups.All(t) {
		f.Pickups = append(f.Pickups, o.State())
	}
	f.Bursts = slices.DeleteFunc(f.Bursts, func(b Burst) bool { return t.GameTime() > b.since+burstTime })
	for i := range f.Bursts {
		f.Bursts[i].Part = float32(t.GameTime()-f.Bursts[i].since) / float32(burstTime)
	}
	g.Graph.sample(g.Client.Now(), g.Client.Stats())
}

// Place returns a position relative to the centre of the frame, on the shorter way around the
// arena.
func (f *Frame) Place(x, y float32) (dx, dy float32) { return around(x - f.X), around(y - f.Y) }

func around(d float32) float32 {
	switch {
	case d > arena.Size/2:
		return d - arena.Size
	case d < -arena.Size/2:
		return d + arena.Size
	}
	return d
}
