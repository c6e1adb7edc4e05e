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
		if game.Tables.Len(t) == 0 { // It is in the lobby, which moves it to a table.
			asked = true
			client.Call(c, game.Sit, game.SitDown{}, func(*netloop.Tick, game.Done, error) { asked = false })
			return
		}
		if play, ok := card(t, c.ID()); ok {
			asked = true
			done := m.Begin() // The time until the answer is a figure of the report.
			client.Call(c, game.Play, play, func(_ *netloop.Tick, _ game.Done, err error) {
				asked = false
				done(err)
			})
		}
	}, netloop.Every(500*time.Millisecond))
}

// card returns the first card that a client may play, if it is its turn.
func card(t *netloop.Tick, self netloop.ClientID) (play game.PlayCard, ok bool) {
	for at := range game.Tables.All(t) {
		table := at.State()
		trick := table.Trick
		if len(trick) == game.Seats.Len(t) {
			trick = nil
		}
		for o := range game.Seats.Owned(t, self) {
			for _, c := range o.State().Hand {
				if table.Turn == o.State().Place && c.Fits(o.State().Hand, trick) {
					return game.PlayCard{Card: c}, true
				}
			}
		}
	}
	return play, false
}
