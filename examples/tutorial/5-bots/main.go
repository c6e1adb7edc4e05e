// Command bots plays the game with many bots, and measures what players would notice.
package main

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	game "github.com/netloop/netloop/examples/tutorial/4-lobby"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot{}) }

// bot goes to an arena, and there to one coin after the other.
type bot struct{}

// Schema implements loadtest.Bot.
func (bot) Schema() *netloop.Schema { return game.Schema }

// Join implements loadtest.Bot.
func (bot) Join(n int) any { return game.JoinParams{Name: fmt.Sprintf("bot %d", n)} }

// Start implements loadtest.Bot.
func (bot) Start(c *client.Client, m *loadtest.Meter) {
	c.On(netloop.Update, "bot.play", func(t *netloop.Tick) {
		if game.Rounds.Len(t) == 0 && c.State().Phase == client.Playing { // It is in the lobby.
			client.Send(c, game.Play, game.Request{})
		}
	}, netloop.Every(time.Second))
	client.Inputs(c, game.Controls, func(t *netloop.Tick) (in game.Control) {
		for own := range game.Dots.Owned(t, c.ID()) {
			skip := (m.N() + int(own.State().Score)) % max(game.Coins.Len(t), 1)
			for coin := range game.Coins.All(t) {
				if skip--; skip < 0 {
					in.DX, in.DY = toward(coin.State().X-own.State().X), toward(coin.State().Y-own.State().Y)
					break
				}
			}
		}
		return in
	})
}

// toward returns the key for a way along one axis.
func toward(way float32) int8 {
	switch {
	case way > 1:
		return 1
	case way < -1:
		return -1
	}
	return 0
}
