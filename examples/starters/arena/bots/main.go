// Command bots plays the game with many bots, and measures what players would notice: go run ./bots
// run --help lists its flags.
package main

import (
	"fmt"
	"math"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/starters/arena/game"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot{}) }

// bot flies about, and shoots at the nearest ship.
type bot struct{}

// Schema implements loadtest.Bot.
func (bot) Schema() *netloop.Schema { return game.Schema }

// Join implements loadtest.Bot.
func (bot) Join(n int) any { return game.JoinParams{Name: fmt.Sprintf("bot %d", n)} }

// Start implements loadtest.Bot.
func (bot) Start(c *client.Client, m *loadtest.Meter) {
	var next game.Control
	client.Inputs(c, game.Controls, func(t *netloop.Tick) game.Control {
		if m.Rand().IntN(30) == 0 { // Twice a second.
			next.DX, next.DY = int8(m.Rand().IntN(3)-1), int8(m.Rand().IntN(3)-1)
		}
		next.Aim = aim(t, c.ID())
		next.Fire = m.Rand().IntN(30) == 0
		return next
	})
}

// aim returns the direction from a client's ship to the nearest other one.
func aim(t *netloop.Tick, self netloop.ClientID) float32 {
	var own game.Ship
	for o := range game.Ships.Owned(t, self) {
		own = o.State()
	}
	best, direction := math.Inf(1), 0.0
	for o := range game.Ships.All(t) {
		s := o.State()
		dx, dy := float64(s.X-own.X), float64(s.Y-own.Y)
		if d := math.Hypot(dx, dy); o.Owner() != self && d < best {
			best, direction = d, math.Atan2(dy, dx)
		}
	}
	return float32(direction)
}
