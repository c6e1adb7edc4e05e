package cards

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
)

// table is what a table's room keeps. It belongs to the room's goroutine. The match decides;
// what clients see is shown from it.
type table struct {
	g      *Game
	name   string
	match  *Match   // nil before the first cards are dealt
	wait   []string // players that wait for a match, in the order of coming
	loaded bool
	table  *netloop.Object[Table]
	seats  []*netloop.Object[Seat]
	timer  netloop.Timer // of the turn, or of the pause

	unsaved, saving bool
}

// pauseTime is how long everybody looks at the end of a round.
const pauseTime = 5 * time.Second

// openTable fills the room of a table.
func (g *Game) openTable(r *netloop.Room) error {
	tb := &table{g: g, name: r.Spec().Name}
	g.store.use()
	r.OnStart(tb.start)
	r.OnJoin(tb.join)
	r.OnDrop(func(t *netloop.Tick, c *netloop.Client) { tb.away(t, c, true) })
	r.OnResume(func(t *netloop.Tick, c *netloop.Client) { tb.away(t, c, false) })
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { tb.leave(t, c) })
	r.OnClose(func(ctx context.Context) error { return tb.close(ctx) })
	Play.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Move) (Done, error) {
		return Done{}, tb.turn(t, from, func(p int) error { return tb.match.play(p, m.Card, m.Suit) })
	})
	Draw.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ DrawOne) (Done, error) {
		return Done{}, tb.turn(t, from, func(p int) error { return tb.match.draw(p, t.Rand()) })
	})
	return nil
}

// kept is a table as the database has it: JSON, or nothing.
type kept struct{ Match []byte }

// start asks for the table as it was left. Until it is there nobody plays.
func (tb *table) start(t *netloop.Tick) {
	tb.table = Tables.Spawn(t, Table{Players: uint8(tb.g.cfg.Players)})
	store, name := tb.g.store, tb.name
	netloop.Go(t, func(ctx context.Context) (k kept, err error) {
		m, err := store.load(ctx, name)
		if m != nil {
			k.Match, err = json.Marshal(m)
		}
		return k, err
	}, func(t *netloop.Tick, k kept, err error) {
		if err == nil && k.Match != nil {
			err = json.Unmarshal(k.Match, &tb.match)
		}
		if err != nil {
			t.Log().Error("a table cannot be read", "error", err)
			t.Room().Close(t, netloop.CodeInternal, "the table cannot be read")
			return
		}
		tb.loaded = true
		for c := range t.Clients() {
			tb.sit(t, c)
		}
		tb.proceed(t)
	})
}

// join lets a player sit down: anybody who finds a place, and in a match those whose it is.
func (tb *table) join(t *netloop.Tick, c *netloop.Client) error {
	if tb.match != nil && tb.match.Phase != Over && !slices.Contains(tb.match.Players, c.Join().Subject) {
		return netloop.Refuse(netloop.CodeRefused, "others play at this table")
	}
	if tb.loaded {
		tb.sit(t, c)
		if tb.match == nil || tb.match.Phase == Over {
			tb.proceed(t)
		}
	}
	return nil
}

// sit gives a player a seat.
func (tb *table) sit(t *netloop.Tick, c *netloop.Client) {
	player := c.Join().Subject
	switch {
	case tb.match != nil && tb.match.Phase != Over:
		if !slices.Contains(tb.match.Players, player) { // It came before the table was read.
			c.Kick(t, netloop.CodeRefused, "others play at this table")
			return
		}
	case !slices.Contains(tb.wait, player):
		tb.wait = append(tb.wait, player)
	}
	tb.show(t)
}

// seated are the players, in the order of their places.
func (tb *table) seated() []string {
	if tb.match != nil && tb.match.Phase != Over {
		return tb.match.Players
	}
	return tb.wait
}

// place is that of a player, or -1.
func (tb *table) place(c *netloop.Client) int { return slices.Index(tb.seated(), c.Join().Subject) }

// away shows that a player has lost the connection, or is back.
func (tb *table) away(t *netloop.Tick, c *netloop.Client, away bool) {
	if p := tb.place(c); p >= 0 && p < len(tb.seats) {
		tb.seats[p].Edit(t).Away = away
	}
}

// leave frees a seat, unless a match is on: then it is kept, and its player may come back for as
// long as the table is.
func (tb *table) leave(t *netloop.Tick, c *netloop.Client) {
	if tb.match != nil && tb.match.Phase != Over {
		tb.away(t, c, true)
		return
	}
	tb.wait = slices.DeleteFunc(tb.wait, func(p string) bool { return p == c.Join().Subject })
	tb.show(t)
}

// turn lets a player do something that the rules may refuse.
func (tb *table) turn(t *netloop.Tick, from *netloop.Client, do func(player int) error) error {
	p := tb.place(from)
	if tb.match == nil || p < 0 {
		return said(errNotYours)
	}
	if err := do(p); err != nil {
		return said(err)
	}
	tb.went(t)
	return nil
}

// went is what follows a turn, whoever has made it.
func (tb *table) went(t *netloop.Tick) {
	tb.unsaved = true
	if tb.match.Phase == Over {
		tb.wait = slices.Clone(tb.match.Players)
		tb.wait = slices.DeleteFunc(tb.wait, func(p string) bool { return !tb.present(t, p) })
		store, name, m := tb.g.store, tb.name, *tb.match
		tb.unsaved = false
		netloop.Go(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, store.ended(ctx, name, &m) }, func(t *netloop.Tick, _ struct{}, err error) {
			if err != nil {
				t.Log().Error("a match was not kept", "error", err)
			}
		})
	}
	tb.proceed(t)
	tb.save(t)
}

// present reports whether a player is in the room.
func (tb *table) present(t *netloop.Tick, player string) bool {
	for c := range t.Clients() {
		if c.Join().Subject == player {
			return true
		}
	}
	return false
}

// proceed goes on with what is next: it deals when all are there, and sets the time for it.
func (tb *table) proceed(t *netloop.Tick) {
	m := tb.match
	if (m == nil || m.Phase == Over) && len(tb.wait) >= tb.g.cfg.Players {
		tb.match = newMatch(tb.wait[:tb.g.cfg.Players], t.Rand())
		m, tb.unsaved = tb.match, true
		tb.save(t)
	}
	tb.timer.Stop()
	until := netloop.Deadline{}
	switch {
	case m == nil || m.Phase == Over:
	case m.Phase == Pausing:
		until = t.In(pauseTime)
		tb.timer = t.At(until, func(t *netloop.Tick) { tb.match.deal(t.Rand()); tb.went(t) })
	default:
		until = t.In(tb.g.cfg.Turn)
		tb.timer = t.At(until, tb.late)
	}
	tb.table.Edit(t).Until = until
	tb.show(t)
}

// late draws a card for a player whose time is over. While nobody is there the table waits.
func (tb *table) late(t *netloop.Tick) {
	for c := range t.Clients() {
		if c.Connected() {
			if err := tb.match.draw(tb.match.Turn, t.Rand()); err == nil {
				tb.went(t)
			}
			return
		}
	}
	until := t.In(tb.g.cfg.Turn)
	tb.table.Edit(t).Until = until
	tb.timer = t.At(until, tb.late)
}

// show lets clients see the match.
func (tb *table) show(t *netloop.Tick) {
	players, s := tb.seated(), tb.table.Edit(t)
	s.Phase = Waiting
	if m := tb.match; m != nil {
		s.Phase, s.Top, s.Suit, s.Turn, s.Pile = m.Phase, m.top(), m.Suit, uint8(m.Turn), uint8(len(m.Pile))
		s.Round, s.Winner = uint16(m.Round), uint8(m.Winner)
	}
	for len(tb.seats) > len(players) {
		tb.seats[len(tb.seats)-1].Despawn(t)
		tb.seats = tb.seats[:len(tb.seats)-1]
	}
	for i, p := range players {
		if i == len(tb.seats) {
			tb.seats = append(tb.seats, Seats.Spawn(t, Seat{Place: uint8(i)}, netloop.WhenOwnerLeaves(netloop.Keep)))
		}
		tb.showSeat(t, i, p)
	}
}

// showSeat lets clients see a seat, and its player the hand.
func (tb *table) showSeat(t *netloop.Tick, i int, player string) {
	o, owner, away := tb.seats[i], netloop.ClientID(0), true
	for c := range t.Clients() {
		if c.Join().Subject == player {
			owner, away = c.ID(), !c.Connected()
		}
	}
	if o.Owner() != owner {
		o.SetOwner(t, owner)
	}
	s := o.Edit(t)
	s.Player, s.Away, s.Hand, s.Cards, s.Score = player, away, nil, 0, 0
	if m := tb.match; m != nil && i < len(m.Players) && m.Players[i] == player {
		s.Hand, s.Cards, s.Score = slices.Clone(m.Hands[i]), uint8(len(m.Hands[i])), uint16(m.Scores[i])
	}
}

// save keeps the match, behind the back of the tick: one save at a time, and then what has come of
// it since.
func (tb *table) save(t *netloop.Tick) {
	if !tb.unsaved || tb.saving {
		return
	}
	tb.unsaved, tb.saving = false, true
	b, err := json.Marshal(tb.match) // The work must not touch the room.
	store, name := tb.g.store, tb.name
	netloop.Go(t, func(ctx context.Context) (struct{}, error) {
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, store.save(ctx, name, b)
	}, func(t *netloop.Tick, _ struct{}, err error) {
		tb.saving = false
		if err != nil {
			t.Log().Error("a table was not kept", "error", err)
		}
		tb.save(t)
	})
}

// close keeps the table as it is at the end.
func (tb *table) close(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, tb.g.store.close()) }()
	if tb.match == nil || tb.match.Phase == Over || !tb.loaded {
		return nil
	}
	b, err := json.Marshal(tb.match)
	if err != nil {
		return err
	}
	return tb.g.store.save(ctx, tb.name, b)
}
