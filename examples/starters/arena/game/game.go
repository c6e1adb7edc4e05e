// Package game has the rules: ships fly about a walled arena and shoot at each other.
//
//	game.go   the schema, and what happens when
//	ship.go   the step of a ship, which its player's page repeats, and shots
package game

import (
	"time"

	"github.com/netloop/netloop"
)

// Ship is a player's ship. The player's page predicts it: it moves in the frame of the key.
type Ship struct {
	X, Y   float32          `net:"quant=1/8"`
	Aim    float32          `net:"quant=1/256,lerp=angle"` // radians
	Leaps  uint8            `net:"teleport"`               // counts jumps: no flight is drawn
	Reload netloop.Deadline `net:"read=owner"`             // no shot before
	Shield netloop.Deadline // no damage before
	Hull   uint8            // hits that are left
	Score  int32
	Name   string `net:"max=16"`
}

// Beam makes a shot visible. It hits at once.
type Beam struct {
	X, Y float32          `net:"quant=1/8"`
	Aim  float32          `net:"quant=1/256"`
	End  netloop.Deadline // it is gone then
	Born netloop.SpawnKey `net:"read=owner"` // by which a page knows the beam that it predicted
}

// Control is what a player does in one fixed step.
type Control struct {
	DX, DY int8    // −1, 0 or 1: the keys
	Aim    float32 `net:"quant=1/256"`
	Fire   bool
}

// JoinParams are what a page sends when it joins.
type JoinParams struct{ Name string }

// The schema lists the objects and messages of the game, for server and clients alike.
var (
	Schema = netloop.NewSchema("arena", 1, 0)
	Ships  = netloop.NewClass[Ship](Schema, "ship", netloop.Predicted(), netloop.OnMap("X", "Y"))
	Beams  = netloop.NewClass[Beam](Schema, "beam", netloop.Predicted(), netloop.OnMap("X", "Y"))
	// Controls runs once for each player and fixed step. An input that is lost on the way is
	// replaced by the last one, without its shot.
	Controls = netloop.NewInput(Schema, func(last Control, _ int) Control {
		last.Fire = false
		return last
	})
)

// Game is the game.
type Game struct{}

// Schema implements netloop.Game.
func (Game) Schema() *netloop.Schema { return Schema }

// Open implements netloop.Game: it registers the functions of a room.
func (Game) Open(r *netloop.Room) error {
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		var p JoinParams
		if err := c.Join().Params(&p); err != nil {
			return netloop.Refuse(netloop.CodeRefused, "the join parameters are not this game's")
		}
		ship := Ship{Name: netloop.Truncate(p.Name, 16)}
		ship.spawn(t)
		Ships.Spawn(t, ship, netloop.OwnedBy(c.ID())) // It despawns when the client leaves.
		return nil
	})
	Controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Control) {
		for ship := range Ships.Owned(t, from.ID()) {
			if ship.Edit(t).Step(t, in) {
				fire(t, from, ship)
			}
		}
	})
	r.On(netloop.FixedUpdate, "arena.beams", func(t *netloop.Tick) {
		for beam := range Beams.All(t) {
			if beam.State().End.Passed(t) {
				beam.Despawn(t)
			}
		}
	})
	return nil
}

// The rules in numbers. game.js has those that a page needs too.
const (
	Width, Height = 960, 600
	speed         = 4  // units in a fixed step
	radius        = 16 // of a ship
	fullHull      = 3
	reload        = 300 * time.Millisecond
	glow          = 150 * time.Millisecond
	shield        = 2 * time.Second
)
