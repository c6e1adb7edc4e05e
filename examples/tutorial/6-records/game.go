// Package game has the rules: everybody moves a dot, and touching the coin scores.
package game

import (
	"context"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
	"github.com/netloop/netloop/phase"
)

// Size is the length of the field's sides.
const Size = 100

const (
	stride = 0.625 // units in a fixed step, a multiple of 1/8: game.js adds the same numbers
	reach  = 4     // from the middle of a dot to that of a coin that it takes
)

// Dot is a player's dot. Every client sees its fields.
type Dot struct {
	X, Y  float32 `net:"quant=1/8"` // in steps of 1/8: fewer bits than a whole float
	Score int32
	Name  string `net:"max=16"`
}

// JoinParams are what a page sends when it joins.
type JoinParams struct{ Name string }

// Round is the state of the round: one object.
type Round struct {
	Clock  phase.State // of the round, then of the pause
	Winner string      `net:"max=16"` // in the pause
}

// Coin is a coin.
type Coin struct {
	X, Y float32 `net:"quant=1/8"`
}

// Control is what a player does in one fixed step: −1, 0 or 1 along each axis.
type Control struct{ DX, DY int8 }

// The schema lists the objects and messages of the game, for server and clients alike.
var (
	Schema = netloop.NewSchema("dots", 1, 0)
	Dots   = netloop.NewClass[Dot](Schema, "dot", netloop.Predicted())
	Coins  = netloop.NewClass[Coin](Schema, "coin")
	Rounds = netloop.NewClass[Round](Schema, "round")
	// Controls runs once for each player and fixed step. If an input is lost, the last one runs.
	Controls = netloop.NewInput[Control](Schema, nil)
)

// Game is the game.
type Game struct {
	Settings Settings
	store    *files.Store
	keeper   *persist.Keeper // nil in a replay, like store
}

// Settings are the game's own: flags such as --dots.records.
type Settings struct {
	Records string `name:"records" help:"folder of the best results" default:"records"`
}

// Config returns the settings to be filled in before the server opens.
func (g *Game) Config() any { return &g.Settings }

// Schema implements netloop.Game.
func (g *Game) Schema() *netloop.Schema { return Schema }

// OpenServer opens the store, before the first room.
func (g *Game) OpenServer(*netloop.Server) (err error) {
	g.store, err = files.Open(g.Settings.Records)
	g.keeper = persist.New(g.store)
	return err
}

// CloseServer closes the store, after the last room.
func (g *Game) CloseServer(context.Context) error { return g.store.Close() }

// The length of a round and of the pause after it, and the number of coins.
const (
	roundTime = time.Minute
	pauseTime = 6 * time.Second
	coins     = 6
)

// arena is the state of a room that only the server has.
type arena struct {
	round *netloop.Object[Round]
	clock *phase.Timer
}

// Open implements netloop.Game. The default room is the lobby, and each arena is a room of its own.
func (g *Game) Open(r *netloop.Room) error {
	r.AllowMoves()
	if r.Spec().Kind == "arena" {
		openArena(r)
		return nil
	}
	openLobby(r)
	return g.keepRecords(r)
}

// openArena registers what happens in an arena.
func openArena(r *netloop.Room) {
	a := &arena{}
	a.clock = phase.New(func(t *netloop.Tick) *phase.State { return &a.round.Edit(t).Clock })
	r.OnStart(func(t *netloop.Tick) {
		for range coins {
			x, y := anywhere(t)
			Coins.Spawn(t, Coin{x, y})
		}
		a.round = Rounds.Spawn(t, Round{})
		a.play(t)
		r.Publish(t, Listing{}) // The lobby lists rooms that publish a value.
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		var p JoinParams
		if err := c.Join().Params(&p); err != nil || p.Name == "" {
			return netloop.Refuse(netloop.CodeRefused, "a player needs a name")
		}
		x, y := anywhere(t)
		dot := Dot{X: x, Y: y, Name: netloop.Truncate(p.Name, 16)}
		Dots.Spawn(t, dot, netloop.OwnedBy(c.ID())) // It despawns with the client.
		return nil
	})
	Controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Control) {
		if in == (Control{}) {
			return
		}
		for o := range Dots.Owned(t, from.ID()) {
			dot := o.Edit(t)
			dot.Move(in)
			if a.round.State().Winner == "" {
				take(t, dot)
			}
		}
	})
	Leave.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ Request) error {
		id := from.ID()
		t.Reserve("", netloop.Reservation{}, func(t *netloop.Tick, tickets []netloop.Ticket, err error) {
			if c, here := t.Client(id); here && err == nil {
				c.Move(t, tickets[0])
			}
		})
		return nil
	})
}

// play begins a round.
func (a *arena) play(t *netloop.Tick) {
	for o := range Dots.All(t) {
		o.Edit(t).Score = 0
	}
	a.round.Edit(t).Winner = ""
	a.clock.Begin(t, phase.Phase{For: roundTime, End: a.pause})
}

// pause ends a round and shows its winner, if there is one.
func (a *arena) pause(t *netloop.Tick) {
	best := Dot{Name: "nobody"}
	for o := range Dots.All(t) {
		if dot := o.State(); dot.Score > best.Score {
			best = dot
		}
	}
	a.round.Edit(t).Winner = best.Name
	if best.Score > 0 {
		Won.SendRoom(t, "", Record{best.Name, best.Score}, nil) // To the lobby.
	}
	a.clock.Begin(t, phase.Phase{For: pauseTime, End: a.play})
}

// Move moves a dot by an input. It depends on its arguments alone, because the page of the player
// runs it too, a little earlier.
func (d *Dot) Move(in Control) {
	d.X = min(max(d.X+stride*sign(in.DX), 0), Size)
	d.Y = min(max(d.Y+stride*sign(in.DY), 0), Size)
}

// take gives a dot the coins that it touches. A taken coin appears elsewhere.
func take(t *netloop.Tick, dot *Dot) {
	for o := range Coins.All(t) {
		coin := o.State()
		if dx, dy := coin.X-dot.X, coin.Y-dot.Y; dx*dx+dy*dy < reach*reach {
			dot.Score++
			x, y := anywhere(t)
			*o.Edit(t) = Coin{x, y}
		}
	}
}

// anywhere returns a random place. The numbers are the room's, so a recording replays exactly.
func anywhere(t *netloop.Tick) (x, y float32) {
	return t.Rand().Float32() * Size, t.Rand().Float32() * Size
}

// sign limits a number of a client: never trust one.
func sign(key int8) float32 { return float32(min(max(key, -1), 1)) }
