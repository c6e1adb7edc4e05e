package game

import (
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
)

// table is the state of a table's room that only the server has. The match decides; the objects are
// copies of it for the clients.
type table struct {
	g     *Game
	match *Match // nil before the first cards are dealt
	saver *persist.Saver[Match]
	wait  []string                    // players without a match
	here  map[string]netloop.ClientID // players in the room
	away  map[string]bool             // of these, those without a connection
	table *netloop.Object[Table]
	seats []*netloop.Object[Seat]
	clock *phase.Timer
}

// openTable loads the match of a table, and registers what happens there.
func (g *Game) openTable(r *netloop.Room) (err error) {
	tb := &table{g: g, here: map[string]netloop.ClientID{}, away: map[string]bool{}}
	tb.saver, tb.match, err = persist.Keep(r, persist.Config[Match]{Keeper: g.keeper, Save: func() *Match { return tb.match }, Every: -1})
	if err != nil {
		return err
	}
	r.OnStart(func(t *netloop.Tick) {
		tb.table = Tables.Spawn(t, Table{})
		tb.clock = phase.New(func(t *netloop.Tick) *phase.State { return &tb.table.Edit(t).Clock })
		tb.next(t)
	})
	r.OnJoin(tb.join)
	r.OnDrop(func(t *netloop.Tick, c *netloop.Client) { tb.away[c.Join().Subject] = true; tb.show(t) })
	r.OnResume(func(t *netloop.Tick, c *netloop.Client) { delete(tb.away, c.Join().Subject); tb.show(t) })
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { tb.leave(t, c) })
	Leave.HandleLater(r, func(t *netloop.Tick, _ *netloop.Client, _ GetUp, reply netloop.Reply[Place]) { ticketTo(t, "", reply) })
	Turn.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Move) (Done, error) {
		return Done{}, tb.turn(t, from.Join().Subject, m)
	})
	return nil
}

// join gives a player a seat. During a match only its players have one.
func (tb *table) join(t *netloop.Tick, c *netloop.Client) error {
	player := c.Join().Subject
	if tb.match != nil && !slices.Contains(tb.match.Players, player) {
		return netloop.Refuse(netloop.CodeRefused, "others play at this table")
	}
	if tb.match == nil && !slices.Contains(tb.wait, player) {
		tb.wait = append(tb.wait, player)
	}
	tb.here[player] = c.ID()
	tb.deal(t)
	return nil
}

// leave frees a player's seat, unless a match runs: its players may return to their hands.
func (tb *table) leave(t *netloop.Tick, c *netloop.Client) {
	player := c.Join().Subject
	if tb.here[player] != c.ID() {
		return // The player has joined anew meanwhile.
	}
	delete(tb.here, player)
	delete(tb.away, player)
	tb.wait = slices.DeleteFunc(tb.wait, func(p string) bool { return p == player })
	tb.show(t)
}

// deal begins a match when enough players wait.
func (tb *table) deal(t *netloop.Tick) {
	if n := tb.g.Settings.Players; tb.match == nil && len(tb.wait) >= n {
		tb.match = deal(tb.wait[:n], t.Rand())
		tb.wait = nil
		tb.changed(t)
		return
	}
	tb.show(t)
}

// turn makes a player's move.
func (tb *table) turn(t *netloop.Tick, player string, m Move) error {
	p := -1
	if tb.match != nil {
		p = slices.Index(tb.match.Players, player)
	}
	if p < 0 {
		return netloop.Refuse(netloop.CodeRefused, "you are not in this match")
	}
	if err := tb.match.move(p, m, t.Rand()); err != nil {
		return netloop.Refuse(netloop.CodeRefused, "%v", err)
	}
	tb.changed(t)
	return nil
}

// changed saves the match and continues with it.
func (tb *table) changed(t *netloop.Tick) {
	tb.saver.Changed(t)
	tb.next(t)
}

// next begins the time limit of a turn, or of the end, and shows the new state.
func (tb *table) next(t *netloop.Tick) {
	switch {
	case tb.match == nil:
		tb.clock.Stop(t)
	case tb.match.Over:
		tb.clock.Begin(t, phase.Phase{For: 8 * time.Second, End: tb.end})
	default:
		tb.clock.Begin(t, phase.Phase{For: tb.g.Settings.Turn, ForAbsent: 3 * time.Second, End: tb.late})
	}
	tb.show(t)
}

// late draws a card for a player whose time is over. Without players the match waits.
func (tb *table) late(t *netloop.Tick) {
	if len(tb.here) > 0 {
		_ = tb.match.move(tb.match.Turn, Move{Draw: true}, t.Rand()) // Drawing is always allowed.
		tb.saver.Changed(t)
	}
	tb.next(t)
}

// end makes room for the next match of the players who are still here.
func (tb *table) end(t *netloop.Tick) {
	tb.wait = slices.DeleteFunc(tb.match.Players, func(p string) bool { return tb.here[p] == 0 })
	tb.match = nil
	tb.changed(t)
	tb.deal(t)
}

// show copies the match to the objects, and to the listing in the lobby.
func (tb *table) show(t *netloop.Tick) {
	players, s := tb.wait, tb.table.Edit(t)
	s.Playing, s.Winner = tb.match != nil, ""
	if m := tb.match; m != nil {
		players = m.Players
		s.Top, s.Suit, s.Turn, s.Pile = m.top(), m.Suit, uint8(m.Turn), uint8(len(m.Pile))
		if m.Over {
			s.Winner = m.Players[m.Turn]
		}
		tb.clock.SetAbsent(t, !m.Over && !tb.present(m.Players[m.Turn]))
	}
	for len(tb.seats) > len(players) {
		tb.seats[len(tb.seats)-1].Despawn(t)
		tb.seats = tb.seats[:len(tb.seats)-1]
	}
	for i, player := range players {
		if i == len(tb.seats) {
			tb.seats = append(tb.seats, Seats.Spawn(t, Seat{Place: uint8(i)}, netloop.WhenOwnerLeaves(netloop.LeaveKeeps)))
		}
		seat := tb.seats[i]
		if seat.Owner() != tb.here[player] {
			seat.SetOwner(t, tb.here[player])
		}
		s := seat.Edit(t)
		s.Player, s.Away, s.Hand = player, !tb.present(player), nil
		if tb.match != nil {
			s.Hand = slices.Clone(tb.match.Hands[i])
		}
		s.Cards = uint8(len(s.Hand))
	}
	t.Room().Publish(t, Listing{Players: slices.Clone(players), Playing: tb.match != nil})
}

// present reports whether a player is here and connected.
func (tb *table) present(player string) bool { return tb.here[player] != 0 && !tb.away[player] }
