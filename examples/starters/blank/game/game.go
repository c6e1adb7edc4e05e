// Package game has the rules: everybody moves a dot, and touching the coin scores.
package game

import "github.com/netloop/netloop"

// Size is the length of the field's sides.
const Size = 100

const (
	speed = 40 // units in a second
	reach = 4  // from the middle of a dot to that of a coin that it takes
)

// Dot is a player's dot. Every client sees its fields.
type Dot struct {
	X, Y  float32 `net:"quant=1/8"` // in steps of 1/8: fewer bits than a whole float
	Score int32
}

// Coin is the coin.
type Coin struct {
	X, Y float32 `net:"quant=1/8"`
}

// Move is the message of a client whose keys have changed: −1, 0 or 1 along each axis.
type Move struct{ DX, DY int8 }

// The schema lists the objects and messages of the game, for server and clients alike.
var (
	Schema = netloop.NewSchema("dots", 1, 0)
	Dots   = netloop.NewClass[Dot](Schema, "dot")
	Coins  = netloop.NewClass[Coin](Schema, "coin")
	Moves  = netloop.NewRPC[Move](Schema, "move", netloop.AtStage(netloop.FixedUpdate), netloop.Limit(60, 30))
)

// Game is the game.
type Game struct{}

// Schema implements netloop.Game.
func (Game) Schema() *netloop.Schema { return Schema }

// Open implements netloop.Game: it registers the functions of a room.
func (Game) Open(r *netloop.Room) error {
	keys := netloop.NewPerClient[Move](r) // the keys that each player holds
	r.OnStart(func(t *netloop.Tick) {
		x, y := anywhere(t)
		Coins.Spawn(t, Coin{x, y})
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		x, y := anywhere(t)
		Dots.Spawn(t, Dot{X: x, Y: y}, netloop.OwnedBy(c.ID())) // It despawns with the client.
		return nil
	})
	Moves.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Move) error {
		*keys.Of(from) = m
		return nil
	})
	r.On(netloop.FixedUpdate, "dots.move", func(t *netloop.Tick) {
		for o := range Dots.All(t) {
			c, _ := t.Client(o.Owner())
			dot, key := o.Edit(t), keys.Of(c)
			step := speed * float32(t.Delta().Seconds())
			dot.X = min(max(dot.X+step*sign(key.DX), 0), Size)
			dot.Y = min(max(dot.Y+step*sign(key.DY), 0), Size)
			take(t, dot)
		}
	})
	return nil
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
