// Package bot plays cards: for tests, and to fill a table.
package bot

import (
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
)

// Player plays at a table with the hand that its client can read.
type Player struct {
	Table cards.Table
	Seats []cards.Seat // as the client sees them, by place
	Plays bool         // makes its turns by itself

	c     *client.Client
	asked bool
}

// New lets a client play. It belongs to the goroutine of the client's frames.
func New(c *client.Client) *Player {
	p := &Player{c: c, Plays: true}
	c.On(netloop.Update, "bot.play", p.look)
	return p
}

// Hand returns the player's own cards, and its place; -1 without one.
func (p *Player) Hand() (hand []cards.Card, place int) {
	for i, s := range p.Seats {
		if len(s.Hand) > 0 {
			return s.Hand, i
		}
	}
	return nil, -1
}

// Waits reports whether a move of the player is under way.
func (p *Player) Waits() bool { return p.asked }

func (p *Player) look(t *netloop.Tick) {
	for o := range cards.Tables.All(t) {
		p.Table = o.State()
	}
	p.Seats = p.Seats[:0]
	mine := -1
	for o := range cards.Seats.All(t) {
		s := o.State()
		s.Hand = slices.Clone(s.Hand)
		p.Seats = append(p.Seats, s)
		if o.Owner() == p.c.ID() {
			mine = int(s.Place)
		}
	}
	slices.SortFunc(p.Seats, func(a, b cards.Seat) int { return int(a.Place) - int(b.Place) })
	if p.Plays && !p.asked && p.Table.Phase == cards.Playing && mine == int(p.Table.Turn) && mine < len(p.Seats) {
		p.turn(p.Seats[mine].Hand)
	}
}

// turn plays the first card that fits, or draws one.
func (p *Player) turn(hand []cards.Card) {
	p.asked = true
	done := func(*netloop.Tick, cards.Done, error) { p.asked = false }
	top := p.Table.Top
	for _, c := range hand {
		if c.Eight() || c.Suit() == p.Table.Suit || c.Rank() == top.Rank() {
			client.Ask(p.c, cards.Play, cards.Move{Card: c, Suit: hand[0].Suit()}, done)
			return
		}
	}
	client.Ask(p.c, cards.Draw, cards.DrawOne{}, done)
}
