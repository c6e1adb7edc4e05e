// Package player is one player's side of the game, whoever decides: a person at a terminal or a
// bot. It keeps what the client sees of the lobby or of a table, and does what a player may do,
// the ways from one to the other included.
//
//	View              what there is to see, made anew in each frame
//	Sit, Leave        ask for a ticket, and move with it over the connection that there is
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
	asked  bool // and has no answer yet
	leaves bool // has asked to move, and has not begun to
	listed []*netloop.Object[cards.Listing]
}

// View is what a player sees.
type View struct {
	State    client.State
	Listings []cards.Listing // in the lobby, in the order of opening
	AtTable  bool            // what follows is of the table
	Table    cards.Table
	Left     time.Duration // until Table.Until
	Seats    []cards.Seat  // by place
	Place    int           // the player's own; -1 for who watches or waits for one
}

// New makes the player of a client.
func New(c *client.Client) *Player {
	p := &Player{c: c}
	c.OnState(func(client.State) { p.leaves = false })
	c.On(netloop.PreUpdate, "player.look", p.look)
	return p
}

// Clone is what shares no memory with the next frame.
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

// Hand is the player's own, as far as it is known.
func (v *View) Hand() []cards.Card {
	if v.Place < 0 {
		return nil
	}
	return v.Seats[v.Place].Hand
}

// MyTurn reports whether the table waits for the player.
func (v *View) MyTurn() bool {
	return v.AtTable && v.Table.Phase == cards.Playing && v.Place == int(v.Table.Turn)
}

// Fits reports whether the player could play a card.
func (v *View) Fits(c cards.Card) bool { return c.Fits(v.Table.Top, v.Table.Suit) }

// look is the system player.look.
func (p *Player) look(t *netloop.Tick) {
	v := View{State: p.c.State(), Place: -1, Seats: p.View.Seats[:0], Listings: p.View.Listings[:0]}
	p.listed = p.listed[:0]
	for o := range cards.Listings.All(t) {
		p.listed = append(p.listed, o)
	}
	slices.SortFunc(p.listed, func(a, b *netloop.Object[cards.Listing]) int { return a.Ref().Compare(b.Ref()) })
	for _, o := range p.listed {
		v.Listings = append(v.Listings, o.State())
	}
	for o := range cards.Tables.All(t) {
		v.AtTable, v.Table = true, o.State()
		v.Left = v.Table.Until.Left(t)
	}
	for o := range cards.Seats.All(t) {
		s := o.State()
		if o.Owner() == p.c.ID() {
			v.Place = int(s.Place)
		}
		v.Seats = append(v.Seats, s)
	}
	slices.SortFunc(v.Seats, func(a, b cards.Seat) int { return cmp.Compare(a.Place, b.Place) })
	if v.Place >= len(v.Seats) { // Not all of them have come.
		v.Place = -1
	}
	p.View = v
}

// Busy reports whether the player waits for an answer, or is on the way.
func (p *Player) Busy() bool { return p.asked || p.leaves || p.View.State.Phase != client.Playing }

// Sit asks the lobby for a place, and goes there. then is called with what kept the player here.
func (p *Player) Sit(q cards.SitDown, then func(error)) { goes(p, cards.Sit, q, then) }

// Leave goes back to the lobby.
func (p *Player) Leave(then func(error)) { goes(p, cards.Leave, cards.GetUp{}, then) }

// Play plays a card. With an eight it names the suit.
func (p *Player) Play(c cards.Card, suit cards.Suit, then func(error)) {
	ask(p, cards.Play, cards.Move{Card: c, Suit: suit}, func(_ cards.Done, err error) { then(err) })
}

// Draw draws a card.
func (p *Player) Draw(then func(error)) {
	ask(p, cards.Draw, cards.DrawOne{}, func(_ cards.Done, err error) { then(err) })
}

// Enter goes to the private table of a code. If there is none, the client ends, with CodeTicket.
func (p *Player) Enter(code string) error { return p.move(code) }

// move begins to move.
func (p *Player) move(ticket string) error {
	err := p.c.Move(netloop.Ticket(ticket))
	p.leaves = err == nil
	return err
}

// goes asks for a ticket, and moves with it over the connection that there is.
func goes[Q any](p *Player, k *netloop.Call[Q, cards.Place], q Q, then func(error)) {
	ask(p, k, q, func(at cards.Place, err error) {
		if err == nil {
			err = p.move(at.Ticket)
		}
		then(err)
	})
}

// ask asks one thing at a time.
func ask[Q, R any](p *Player, k *netloop.Call[Q, R], q Q, then func(R, error)) {
	p.asked = true
	client.Ask(p.c, k, q, func(_ *netloop.Tick, r R, err error) {
		p.asked = false
		then(r, err)
	})
}
