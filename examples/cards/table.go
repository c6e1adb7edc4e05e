package cards

import (
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
)

// table is the state of a table's room. It belongs to the room's goroutine. The match is
// authoritative; the clients' state (seats.go) and the database are copies of it.
type table struct {
	g     *Game
	spec  netloop.RoomSpec
	saver *persist.Saver[Match]
	match *Match            // nil before the first cards are dealt
	wait  []string          // waiting for a match, in the order of joining
	here  map[string]*guest // players in the room
	table *netloop.Object[Table]
	seats []*netloop.Object[Seat]
	clock *phase.Timer // of the turn, of the pause, or of the end
}

// guest is a player in the room.
type guest struct {
	id   netloop.ClientID
	away bool // has lost the connection
}

// overTime is the time for which the scores of a match are shown before the remaining players play
// again.
const overTime = 15 * time.Second

// awayTurn is the time for a turn of an absent player.
const awayTurn = 3 * time.Second

// openTable sets up the room of a table, and loads its saved match.
func (g *Game) openTable(r *netloop.Room) (err error) {
	tb := &table{g: g, spec: r.Spec(), here: map[string]*guest{}}
	tb.saver, tb.match, err = persist.Keep(r, persist.Config[Match]{
		Keeper: g.keeper, Save: func() *Match { return tb.match }, Every: -1,
	})
	if err == nil && tb.match != nil {
		err = tb.match.check()
	}
	if err != nil {
		return err
	}
	r.OnStart(tb.start)
	r.OnJoin(tb.join)
	r.OnDrop(func(t *netloop.Tick, c *netloop.Client) { tb.drop(t, c, true) })
	r.OnResume(func(t *netloop.Tick, c *netloop.Client) { tb.drop(t, c, false) })
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { tb.leave(t, c) })
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

// join gives a player a seat: any player if one is free, and during a match only its players.
// Spectators have no seat.
func (tb *table) join(t *netloop.Tick, c *netloop.Client) error {
	player := c.Join().Subject
	switch {
	case c.Spectator():
		return nil
	case tb.playing() && !slices.Contains(tb.match.Players, player):
		return netloop.Refuse(netloop.CodeRefused, "others play at this table")
	case !tb.playing() && !slices.Contains(tb.wait, player):
		tb.wait = append(tb.wait, player)
	}
	tb.here[player] = &guest{id: c.ID()}
	tb.proceed(t)
	return nil
}

// drop shows to all clients that a player has lost the connection, or has returned.
func (tb *table) drop(t *netloop.Tick, c *netloop.Client, away bool) {
	if g := tb.here[c.Join().Subject]; g != nil && !c.Spectator() {
		g.away = away
		tb.proceed(t)
	}
}

// leave frees a player's seat, except during a match: then the table keeps the seat, and the player
// may return.
func (tb *table) leave(t *netloop.Tick, c *netloop.Client) {
	player := c.Join().Subject
	if c.Spectator() || tb.here[player] == nil {
		return
	}
	delete(tb.here, player)
	tb.wait = slices.DeleteFunc(tb.wait, func(p string) bool { return p == player })
	tb.proceed(t)
}

// turn performs a player's action, if the rules permit it.
func (tb *table) turn(t *netloop.Tick, from *netloop.Client, do func(player int) error) error {
	if !tb.playing() || from.Spectator() {
		return said(errNotYours)
	}
	p := slices.Index(tb.match.Players, from.Join().Subject)
	if p < 0 {
		return said(errNotYours)
	}
	if err := do(p); err != nil {
		return said(err)
	}
	tb.afterTurn(t)
	return nil
}

// afterTurn is called after every turn, of a player or of the timer.
func (tb *table) afterTurn(t *netloop.Tick) {
	if tb.match.Phase == Over {
		tb.wait = slices.DeleteFunc(slices.Clone(tb.match.Players), func(p string) bool { return tb.here[p] == nil })
	}
	tb.changed(t)
}

// proceed deals when all players are present, and shows the new state.
func (tb *table) proceed(t *netloop.Tick) {
	if n := tb.g.cfg.Players; tb.match == nil && len(tb.wait) >= n {
		tb.match = newMatch(tb.wait[:n], tb.g.cfg.Goal, t.Rand())
		tb.wait = tb.wait[n:]
		tb.changed(t)
		return
	}
	tb.remind(t)
	tb.show(t)
}

// changed saves a changed match, and continues with it.
func (tb *table) changed(t *netloop.Tick) {
	tb.begin(t)
	tb.saver.Changed(t)
}

// begin starts the time limit of the present phase or turn, and shows the state.
func (tb *table) begin(t *netloop.Tick) {
	p := phase.Phase{End: tb.due}
	switch {
	case tb.match == nil:
	case tb.match.Phase == Pausing:
		p.For = max(tb.g.cfg.Pause, time.Millisecond) // 0 would be no limit.
	case tb.match.Phase == Over:
		p.For = overTime
	default:
		p.For, p.ForAbsent = tb.g.cfg.Turn, awayTurn
	}
	tb.clock.Begin(t, p)
	tb.remind(t)
	tb.show(t)
}

// remind shortens the turn of an absent player, unless all players are absent.
func (tb *table) remind(t *netloop.Tick) {
	if tb.playing() {
		tb.clock.SetAbsent(t, !tb.present(tb.match.Players[tb.match.Turn]) && tb.anybody())
	}
}

// due is called when the time limit has passed. It begins the next match or round, or ends the turn
// of a late player.
func (tb *table) due(t *netloop.Tick) {
	switch tb.match.Phase {
	case Over:
		if !tb.saver.Stored() { // The result is stored before the next match begins.
			tb.begin(t)
			return
		}
		tb.match = nil
		tb.begin(t)
		tb.proceed(t)
	case Pausing:
		tb.match.deal(t.Rand())
		tb.changed(t)
	default:
		tb.late(t)
	}
}

// late draws a card for a player whose time limit has passed. If no player is present, it only
// starts the time limit again.
func (tb *table) late(t *netloop.Tick) {
	if !tb.anybody() {
		tb.begin(t)
		return
	}
	if tb.match.draw(tb.match.Turn, t.Rand()) == nil {
		tb.afterTurn(t)
	}
}

// present reports whether a player is in the room, and connected.
func (tb *table) present(player string) bool { g := tb.here[player]; return g != nil && !g.away }

// anybody reports whether any player of the match is present.
func (tb *table) anybody() bool {
	return slices.ContainsFunc(tb.match.Players, tb.present)
}
