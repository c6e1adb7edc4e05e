package bot

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/loadtest"
)

// Load is the bot of a load test: it moves from the lobby to a table, plays a match, and returns
// for the next one. Its turns are the measured calls.
type Load struct{}

// Schema implements loadtest.Bot.
func (Load) Schema() *netloop.Schema { return cards.Schema }

// Join implements loadtest.Bot.
func (Load) Join(int) any { return nil }

// Token implements loadtest.Tokens: it is the player's name.
func (Load) Token(n int) string { return fmt.Sprintf("bot %d", n) }

// Start implements loadtest.Bot. A bot that does not read its state cannot play, and remains in the
// lobby.
func (Load) Start(c *client.Client, m *loadtest.Meter) {
	if m.Blind() {
		return
	}
	b := New(c)
	b.Roams = true
	b.Think = func() time.Duration { return time.Duration(100+m.Rand().IntN(400)) * time.Millisecond }
	b.Turn = func() func(error) {
		m.Count("turns")
		return m.Begin()
	}
	b.Match = func() { m.Count("matches seen to their end") }
}
