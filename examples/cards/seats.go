package cards

import (
	"slices"

	"github.com/netloop/netloop"
)

// seated returns the players, in the order of their seats.
func (tb *table) seated() []string {
	if tb.match != nil {
		return tb.match.Players
	}
	return tb.wait
}

// show copies the match to the state for clients, and to the table's listing in the lobby.
func (tb *table) show(t *netloop.Tick) {
	players, s := tb.seated(), tb.table.Edit(t)
	s.Phase, s.Round = Waiting, 0
	if m := tb.match; m != nil {
		s.Phase, s.Top, s.Suit, s.Turn, s.Pile = m.Phase, m.top(), m.Suit, uint8(m.Turn), uint8(len(m.Pile))
		s.Round, s.Winner = uint16(m.Round), uint8(m.Winner)
		s.Turns, s.Mover, s.Drew = uint16(m.Turns), uint8(m.Mover), m.Drew
	}
	for len(tb.seats) > len(players) {
		tb.seats[len(tb.seats)-1].Despawn(t)
		tb.seats = tb.seats[:len(tb.seats)-1]
	}
	for i, p := range players {
		if i == len(tb.seats) {
			tb.seats = append(tb.seats, Seats.Spawn(t, Seat{Place: uint8(i)}, netloop.WhenOwnerLeaves(netloop.LeaveKeeps)))
		}
		tb.showSeat(t, i, p)
	}
	t.Room().Publish(t, Listing{Table: tb.name(), Players: slices.Clone(players), Phase: s.Phase, Round: s.Round})
}

// showSeat copies a seat to the state for clients, and the hand to its player's.
func (tb *table) showSeat(t *netloop.Tick, i int, player string) {
	o, owner := tb.seats[i], netloop.ClientID(0)
	if g := tb.here[player]; g != nil {
		owner = g.id
	}
	if o.Owner() != owner {
		o.SetOwner(t, owner)
	}
	s := o.Edit(t)
	s.Player, s.Away, s.Hand, s.Cards, s.Score = player, !tb.present(player), nil, 0, 0
	if m := tb.match; m != nil {
		s.Hand, s.Cards, s.Score = slices.Clone(m.Hands[i]), uint8(len(m.Hands[i])), uint16(m.Scores[i])
	}
}
