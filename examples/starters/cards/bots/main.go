// Command bots plays the game with many bots, and measures what players would notice: go run ./bots
// run --help lists its flags.
package main

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/starters/cards/game"
	"github.com/netloop/netloop/loadtest"
)

func main() { loadtest.Main(bot{}) }

// bot sits down at a table and plays.
type bot struct{}

// Schema implements loadtest.Bot.
func (bot) Schema() *netloop.Schema { return game.Schema }

// Join implements loadtest.Bot.
func (bot) Join(int) any { return nil }

// Token implements loadtest.Tokens: it is the player's name.
func (bot) Token(n int) string { return fmt.Sprintf("bot %d", n) }

// Start implements loadtest.Bot: twice a second the bot does what it can.
func (bot) Start(c *client.Client, m *loadtest.Meter) {
	asked := false // A call has no answer yet.
	c.On(netloop.Update, "bot.play", func(t *netloop.Tick) {
		if asked || m.Blind() || c.State().Phase != client.Playing {
			return
		}
		if game.Tables.Len(t) == 0 {
			asked = true
			client.Call(c, game.Sit, game.SitDown{}, func(_ *netloop.Tick, at game.Place, err error) {
				asked = false
				if err == nil {
					_ = c.Move(netloop.Ticket(at.Ticket)) // The next call tries again.
				}
			})
			return
		}
		if do, ok := move(t, c.ID()); ok {
			asked = true
			done := m.Begin() // The time until the answer is a figure of the report.
			client.Call(c, game.Turn, do, func(_ *netloop.Tick, _ game.Done, err error) {
				asked = false
				done(err)
			})
		}
	}, netloop.Every(500*time.Millisecond))
}

// move returns the move of a client whose turn it is.
func move(t *netloop.Tick, self netloop.ClientID) (m game.Move, ok bool) {
	for at := range game.Tables.All(t) {
		table := at.State()
		for o := range game.Seats.Owned(t, self) {
			seat := o.State()
			if !table.Playing || table.Winner != "" || table.Turn != seat.Place || len(seat.Hand) == 0 {
				return m, false
			}
			for _, c := range seat.Hand {
				if c.Fits(table.Top, table.Suit) {
					return game.Move{Card: c, Suit: c.Suit()}, true
				}
			}
			return game.Move{Draw: true}, true
		}
	}
	return m, false
}
