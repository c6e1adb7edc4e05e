// Command bots plays the game with many bots, and measures what players would notice: go run ./bots
// run --help lists its flags.
package main

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/starters/blank/game"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot{}) }

// bot walks about.
type bot struct{}

// Schema implements loadtest.Bot.
func (bot) Schema() *netloop.Schema { return game.Schema }

// Join implements loadtest.Bot.
func (bot) Join(int) any { return nil }

// Start implements loadtest.Bot: half a second, and the bot turns.
func (bot) Start(c *client.Client, m *loadtest.Meter) {
	c.On(netloop.Update, "bot.turn", func(*netloop.Tick) {
		client.Send(c, game.Moves, game.Move{DX: int8(m.Rand().IntN(3) - 1), DY: int8(m.Rand().IntN(3) - 1)})
	}, netloop.Every(500*time.Millisecond))
}
