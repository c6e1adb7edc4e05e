// Package player is one player's side of the game, for a person at a terminal or a bot. It holds
// the client's view of the lobby or of a table, and performs a player's actions, including the
// moves between them.
//
//	View              the visible state, made anew in each frame
//	Sit, Leave        ask for a ticket, and move with it over the existing connection
//	Play, Draw        a turn
package player

import (
	"cmp"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
)

// Player is one player. It belongs to the goroutine of the client's frames.
type Player struct {
	View View

	c      *client.Client
	asked  bool // a call has no answer yet
	leaves bool // a move to another room was requested, and has not begun
	listed []*netloop.Object[cards.Listing]
}

// View is a player's view.
type View struct {
	State    client.State
	Listings []cards.Listing // in the lobby, in the order of opening
	AtTable  bool            // the following fields are of the table
	Table    cards.Table
	Left     time.Duration // of Table.Clock
	Seats    []cards.Seat  // by place
	Place    int           // the player's own; -1 for a spectator, or a player without a seat yet
}

// New makes the player of a client.
func New(c *client.Client) *Player {
	p := &Player{c: c}
	c.OnState(func(client.State) { p.leaves = false })
	c.On(netloop.PreUpdate, "player.look", p.look)
	return p
}

// Clone returns a copy that shares no memory with the next frame.
func (v *View) Clone() *View {
	w := *v
	w.Listings, w.Seats = slices.Clone(v.Listings), slices.Clone(v.Seats)
	for i := range w.Listings {
		w.Listings[i].Players = slices.Clone(w.Listings[i].Players)
	}
	for i := range w.Seats {
		w.Seats[i].Hand = slices.Clone(w.Seats[i].Hand)
	}
	return &w
}

// Hand returns the player's own hand, as far as it has arrived.
func (v *View) Hand() []cards.Card {
	if v.Place < 0 {
		return nil
	}
	return v.Seats[v.Place].Hand
}

// MyTurn reports whether it is the player's turn.
func (v *View) MyTurn() bool {
	return v.AtTable && v.Table.Phase == cards.Playing && v.Place == int(v.Table.Turn)
}

// Fits reports whether the player could play a card.
func (v *View) Fits(c cards.Card) bool { return c.Fits(v.Table.Top, v.Table.Suit) }

// look is the system player.look.
func (p *Player) look(t *netloop.Tick) {
	v := View{State: p.c.State(), Place: -1, Seats: p.View.Seats[:0], Listings: p.View.Listings[:0]}
	p.listed = p.listed[:0]
	p.listed = slices.AppendSeq(p.listed, cards.Listings.All(t))
	slices.SortFunc(p.listed, func(a, b *netloop.Object[cards.Listing]) int { return a.Ref().Compare(b.Ref()) })
	for _, o := range p.listed {
		v.Listings = append(v.Listings, o.State())
	}
	for o := range cards.Tables.All(t) {
		v.AtTable, v.Table = true, o.State()
		v.Left = v.Table.Clock.Left(t)
	}
	for o := range cards.Seats.All(t) {
		s := o.State()
		if o.Owner() == p.c.ID() {
			v.Place = int(s.Place)
		}
		v.Seats = append(v.Seats, s)
	}
	slices.SortFunc(v.Seats, func(a, b cards.Seat) int { return cmp.Compare(a.Place, b.Place) })
	if v.Place >= len(v.Seats) { // Not all seats have arrived.
		v.Place = -1
	}
	p.View = v
}

// Busy reports whether the player waits for an answer, or moves.
func (p *Player) Busy() bool { return p.asked || p.leaves || p.View.State.Phase != client.Playing }

// Sit asks the lobby for a seat, and moves there. then is called with the error that prevents it.
func (p *Player) Sit(q cards.SitDown, then func(error)) { goTo(p, cards.Sit, q, then) }

// Leave moves back to the lobby.
func (p *Player) Leave(then func(error)) { goTo(p, cards.Leave, cards.GetUp{}, then) }

// Play plays a card. With an eight it names the suit.
func (p *Player) Play(c cards.Card, suit cards.Suit, then func(error)) {
	ask(p, cards.Play, cards.Move{Card: c, Suit: suit}, func(_ cards.Done, err error) { then(err) })
}

// Draw draws a card.
func (p *Player) Draw(then func(error)) {
	ask(p, cards.Draw, cards.DrawOne{}, func(_ cards.Done, err error) { then(err) })
}

// Enter moves to the private table of a code. If there is none, the client ends, with CodeTicket.
func (p *Player) Enter(code string) error { return p.move(code) }

// move begins to move.
func (p *Player) move(ticket string) error {
	err := p.c.Move(netloop.Ticket(ticket))
	p.leaves = err == nil
	return err
}

// goTo asks for a ticket, and moves with it over the existing connection.
func goTo[Q any](p *Player, k *netloop.Call[Q, cards.Place], q Q, then func(error)) {
	ask(p, k, q, func(at cards.Place, err error) {
		if err == nil {
			err = p.move(at.Ticket)
		}
		then(err)
	})
}

// ask sends a call, and marks the player as busy until its answer.
func ask[Q, R any](p *Player, k *netloop.Call[Q, R], q Q, then func(R, error)) {
	p.asked = true
	client.Call(p.c, k, q, func(_ *netloop.Tick, r R, err error) {
		p.asked = false
		then(r, err)
	})
}
