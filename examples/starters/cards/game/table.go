package game

import (
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
	"github.com/netloop/netloop/seats"
)

// table is the state of a table's room. The match is nil until all seats are taken.
type table struct {
	match *Match
	most  int // players
	saver *persist.Saver[Match]
	seats *seats.Seats[Seat]
	clock *phase.Timer
	shown *netloop.Object[Table]
}

// openTable loads the match of a table, and sets up the table.
func (g *Game) openTable(r *netloop.Room) (err error) {
	tb := &table{most: g.Settings.Players}
	tb.saver, tb.match, err = persist.Keep(r, persist.Config[Match]{
		Keeper: g.keeper, Save: func() *Match { return tb.match }, Every: -1,
	})
	if err != nil {
		return err
	}
	var stored []string
	if tb.match != nil {
		stored = tb.match.Players
	}
	tb.seats = seats.New(r, seats.Config[Seat]{
		Class: Seats, Presence: func(s *Seat) *seats.Presence { return &s.Presence }, Most: tb.most, Stored: stored,
		Changed: func(t *netloop.Tick, _ *seats.Seat[Seat]) { tb.proceed(t) },
	})
	r.OnStart(func(t *netloop.Tick) {
		tb.shown = Tables.Spawn(t, Table{})
		tb.clock = phase.New(func(t *netloop.Tick) *phase.State { return &tb.shown.Edit(t).Clock })
		tb.begin(t)
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if tb.seats.Sit(t, c) == nil {
			return netloop.Refuse(netloop.CodeFull, "others play at this table")
		}
		return nil
	})
	Play.Handle(r, func(t *netloop.Tick, from *netloop.Client, m PlayCard) (Done, error) {
		return Done{}, tb.play(t, slices.Index(tb.seats.All(), tb.seats.Of(from)), m.Card)
	})
	Leave.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, _ Done, reply netloop.Reply[Done]) {
		t.Reserve("", netloop.Reservation{}, func(t *netloop.Tick, lobby []netloop.Ticket, err error) {
			reply.Send(t, Done{}, err)
			if c, here := t.Client(from.ID()); here && err == nil {
				c.Move(t, lobby[0])
			}
		})
	})
	return nil
}

// proceed begins the match when all seats are taken, and shows each change of a seat.
func (tb *table) proceed(t *netloop.Tick) {
	if tb.match == nil && len(tb.seats.All()) == tb.most {
		tb.match = deal(tb.seats.Players(), t.Rand())
		tb.seats.Lock(t, -1) // The seats belong to their players until the end.
		tb.begin(t)
		return
	}
	tb.show(t)
}

// play plays a card of the player of a place.
func (tb *table) play(t *netloop.Tick, place int, c Card) error {
	if tb.match == nil || place < 0 {
		return netloop.Refuse(netloop.CodeGame, "the match has not begun")
	}
	if err := tb.match.play(place, c); err != nil {
		return err
	}
	tb.begin(t)
	return nil
}

// begin begins the next phase of a changed match, and saves the match.
func (tb *table) begin(t *netloop.Tick) {
	switch {
	case tb.match == nil:
		tb.clock.Stop(t)
	case tb.match.over():
		tb.clock.Begin(t, phase.Phase{For: 10 * time.Second, End: tb.again})
	default:
		tb.clock.Begin(t, phase.Phase{For: 30 * time.Second, ForAbsent: 5 * time.Second, End: tb.late})
	}
	tb.saver.Changed(t)
	tb.show(t)
}

// late plays for a player after the time limit, unless all players are absent.
func (tb *table) late(t *netloop.Tick) {
	turn := tb.match.turn()
	for _, c := range slices.Clone(tb.match.Hands[turn]) {
		if tb.seats.AnyHere() && tb.play(t, turn, c) == nil {
			return
		}
	}
	tb.begin(t)
}

// again ends the match. The present players keep their seats for the next one.
func (tb *table) again(t *netloop.Tick) {
	tb.match = nil
	tb.begin(t)
	tb.seats.Unlock(t)
	tb.proceed(t)
}

// show copies the match to the objects that clients see, and to the list of the lobby.
func (tb *table) show(t *netloop.Tick) {
	s, m := tb.shown.Edit(t), tb.match
	*s = Table{Playing: m != nil, Clock: s.Clock}
	if m != nil {
		s.Over, s.Turn, s.Trick = m.over(), uint8(m.turn()), m.Trick
		tb.clock.SetAbsent(t, !m.over() && !tb.seats.All()[m.turn()].Here() && tb.seats.AnyHere())
	}
	for i, seat := range tb.seats.All() {
		o := seat.Object.Edit(t)
		o.Player, o.Place, o.Hand, o.Won = seat.Player(), uint8(i), nil, 0
		if m != nil {
			o.Hand, o.Won = slices.Clone(m.Hands[i]), uint8(m.Won[i])
		}
	}
	t.Room().Publish(t, Listing{Table: strings.TrimPrefix(t.Room().Spec().Name, "table/"), Players: tb.seats.Players(), Playing: m != nil})
}
