package cards

import (
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
	"github.com/netloop/netloop/seats"
)

// table is the state of a table's room. It belongs to the room's goroutine. The match is
// authoritative; the state of clients and the database are copies of it.
type table struct {
	g     *Game
	spec  netloop.RoomSpec
	saver *persist.Saver[Match]
	match *Match // nil before the first cards are dealt
	table *netloop.Object[Table]
	seats *seats.Seats[Seat] // in a match, its players in the same order
	clock *phase.Timer       // of the turn, of the pause, or of the end
}

// overTime is the time for which the scores of a match are shown before the remaining players play
// again.
const overTime = 15 * time.Second

// awayTurn is the time for a turn of an absent player.
const awayTurn = 3 * time.Second

// openTable sets up the room of a table, and loads its saved match.
func (g *Game) openTable(r *netloop.Room) (err error) {
	tb := &table{g: g, spec: r.Spec()}
	tb.saver, tb.match, err = persist.Keep(r, persist.Config[Match]{
		Keeper: g.keeper, Save: func() *Match { return tb.match }, Every: -1,
	})
	if err != nil {
		return err
	}
	places := seats.Config[Seat]{
		Class: Seats, Presence: func(s *Seat) *seats.Presence { return &s.Presence }, Most: g.cfg.Players,
		Changed: func(t *netloop.Tick, _ *seats.Seat[Seat]) { tb.proceed(t) },
	}
	if tb.match != nil {
		if err := tb.match.check(); err != nil {
			return err
		}
		places.Stored = tb.match.Players
	}
	tb.seats = seats.New(r, places)
	r.OnStart(tb.start)
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if tb.seats.Sit(t, c) == nil && !c.Spectator() && tb.playing() {
			return netloop.Refuse(netloop.CodeRefused, "others play at this table")
		}
		return nil
	})
	Play.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Move) (Done, error) {
		return Done{}, tb.turn(t, from, func(p int) error { return tb.match.play(p, m.Card, m.Suit) })
	})
	Draw.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ DrawOne) (Done, error) {
		return Done{}, tb.turn(t, from, func(p int) error { return tb.match.draw(p, t.Rand()) })
	})
	Leave.HandleLater(r, func(t *netloop.Tick, _ *netloop.Client, _ GetUp, reply netloop.Reply[Place]) {
		ticketTo(t, lobbyRoom, netloop.Reservation{}, reply.Send)
	})
	return nil
}

// start shows the table.
func (tb *table) start(t *netloop.Tick) {
	tb.table = Tables.Spawn(t, Table{
		Name: tb.name(), Code: tb.spec.Code, Players: uint8(tb.g.cfg.Players), Goal: uint16(tb.g.cfg.Goal),
	})
	tb.clock = phase.New(func(t *netloop.Tick) *phase.State { return &tb.table.Edit(t).Clock })
	tb.begin(t)
}

// name returns the table's name, without the prefix of its room.
func (tb *table) name() string { return strings.TrimPrefix(tb.spec.Name, tablePrefix) }

// playing reports whether cards are dealt and each seat belongs to a player.
func (tb *table) playing() bool { return tb.match != nil && tb.match.Phase != Over }

// turn performs a player's action, if the rules permit it.
func (tb *table) turn(t *netloop.Tick, from *netloop.Client, do func(player int) error) error {
	p := slices.Index(tb.seats.All(), tb.seats.Of(from))
	if !tb.playing() || p < 0 {
		return said(errNotYours)
	}
	if err := do(p); err != nil {
		return said(err)
	}
	tb.changed(t)
	return nil
}

// proceed deals when all seats are taken, and shows the new state.
func (tb *table) proceed(t *netloop.Tick) {
	if tb.match == nil && len(tb.seats.All()) >= tb.g.cfg.Players {
		tb.match = newMatch(tb.seats.Players(), tb.g.cfg.Goal, t.Rand())
		tb.seats.Lock(t, -1)
		tb.changed(t)
		return
	}
	tb.show(t)
}

// changed saves a changed match, and continues with it.
func (tb *table) changed(t *netloop.Tick) {
	tb.begin(t)
	tb.saver.Changed(t)
}

// begin starts the time limit of the present phase or turn, and shows the state.
func (tb *table) begin(t *netloop.Tick) {
	switch {
	case tb.match == nil:
		tb.clock.Stop(t)
	case tb.match.Phase == Pausing:
		pause := max(tb.g.cfg.Pause, time.Millisecond) // 0 would be no limit.
		tb.clock.Begin(t, phase.Phase{For: pause, End: tb.deal})
	case tb.match.Phase == Over:
		tb.clock.Begin(t, phase.Phase{For: overTime, End: tb.again})
	default:
		tb.clock.Begin(t, phase.Phase{For: tb.g.cfg.Turn, ForAbsent: awayTurn, End: tb.late})
	}
	tb.show(t)
}

// deal begins the next round.
func (tb *table) deal(t *netloop.Tick) {
	tb.match.deal(t.Rand())
	tb.changed(t)
}

// again ends a match, once its result is stored. The players in the room play again.
func (tb *table) again(t *netloop.Tick) {
	if !tb.saver.Stored() {
		tb.begin(t)
		return
	}
	tb.match = nil
	tb.begin(t)
	tb.seats.Unlock(t)
	for c := range t.Clients() {
		tb.seats.Sit(t, c) // A player who has joined since the end has no seat yet.
	}
	tb.proceed(t)
}

// late draws a card for a player whose time limit has passed. If no player is present, it only
// starts the time limit again.
func (tb *table) late(t *netloop.Tick) {
	if tb.seats.AnyHere() && tb.match.draw(tb.match.Turn, t.Rand()) == nil {
		tb.changed(t)
		return
	}
	tb.begin(t)
}

// show copies the match to the state for clients, and to the table's listing in the lobby. It
// shortens the turn of an absent player, unless all players are absent.
func (tb *table) show(t *netloop.Tick) {
	if tb.playing() {
		tb.clock.SetAbsent(t, !tb.seats.All()[tb.match.Turn].Here() && tb.seats.AnyHere())
	}
	s, m := tb.table.Edit(t), tb.match
	s.Phase, s.Round = Waiting, 0
	if m != nil {
		s.Phase, s.Top, s.Suit, s.Turn, s.Pile = m.Phase, m.top(), m.Suit, uint8(m.Turn), uint8(len(m.Pile))
		s.Round, s.Winner = uint16(m.Round), uint8(m.Winner)
		s.Turns, s.Mover, s.Drew = uint16(m.Turns), uint8(m.Mover), m.Drew
	}
	for i, at := range tb.seats.All() {
		seat := at.Object.Edit(t)
		seat.Place, seat.Player, seat.Hand, seat.Cards, seat.Score = uint8(i), at.Player(), nil, 0, 0
		if m != nil {
			seat.Hand, seat.Cards, seat.Score = slices.Clone(m.Hands[i]), uint8(len(m.Hands[i])), uint16(m.Scores[i])
		}
	}
	t.Room().Publish(t, Listing{Table: tb.name(), Players: tb.seats.Players(), Phase: s.Phase, Round: s.Round})
}
