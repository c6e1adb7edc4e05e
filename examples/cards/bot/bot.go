// Package bot plays cards: for tests, for load tests, and to fill the tables of waiting players.
//
//	bot.go    one bot: from the lobby to a table, through a match, and back
//	host.go   the server's own bots, which play in its process
//	load.go   bots of a load test
package bot

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/player"
)

// Bot plays with the hand that its client can read. It belongs to the goroutine of the client's
// frames.
type Bot struct {
	*player.Player
	Plays bool                 // plays its turns by itself
	Roams bool                 // moves to a table by itself, and after a match to the next one
	Think func() time.Duration // the delay before each action
	Turn  func() func(error)   // called at a turn; the result is called with its error
	Match func()               // called at the end of a match

	now  time.Duration // game time
	at   time.Duration // the time of its next action
	seen step
	done bool // a turn was sent, and its result is not visible yet
}

// step is the state that a bot reacts to.
type step struct {
	atTable bool
	phase   cards.Phase
	round   uint16
	turns   uint16
	failed  int
}

// New makes a bot of a client.
func New(c *client.Client) *Bot {
	b := &Bot{
		Player: player.New(c), Plays: true,
		Think: func() time.Duration { return 0 }, Turn: func() func(error) { return func(error) {} }, Match: func() {},
	}
	c.On(netloop.Update, "bot.play", b.play)
	return b
}

// play is the system bot.play.
func (b *Bot) play(t *netloop.Tick) {
	v := &b.View
	if b.Busy() {
		return
	}
	now := step{v.AtTable, v.Table.Phase, v.Table.Round, v.Table.Turns, b.seen.failed}
	// Another room has another clock.
	if b.now = t.GameTime(); now != b.seen || b.at > b.now+time.Minute {
		b.seen, b.done, b.at = now, false, b.now+b.Think()
	}
	if b.now < b.at {
		return
	}
	switch {
	case !v.AtTable && b.Roams:
		b.Sit(cards.SitDown{}, b.gone)
	case v.AtTable && v.Table.Phase == cards.Over && b.Roams:
		if v.Place >= 0 {
			b.Match()
		}
		b.Leave(b.gone)
	case b.Plays && !b.done && v.MyTurn() && len(v.Hand()) > 0:
		b.turn(v)
	}
}

// gone schedules another attempt after a refused move.
func (b *Bot) gone(err error) {
	if err != nil {
		b.seen.failed++
		b.at = b.now + time.Second
	}
}

// turn plays a fitting card, an eight last, or draws one.
func (b *Bot) turn(v *player.View) {
	b.done = true
	told := b.Turn()
	done := func(err error) {
		b.done = err == nil
		told(err)
	}
	choice, found := cards.Card(0), false
	var held [4]int
	for _, c := range v.Hand() {
		held[c.Suit()&3]++
		if v.Fits(c) && (!found || choice.Eight()) {
			choice, found = c, true
		}
	}
	if !found {
		b.Draw(done)
		return
	}
	suit := cards.Clubs
	for s, n := range held {
		if n > held[suit] {
			suit = cards.Suit(s)
		}
	}
	b.Play(choice, suit, done)
}
