package cards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop"
)

// lobbyRoom is the name of the default room, for tickets back to it.
const lobbyRoom = ""

// lobby is the default room. It belongs to its goroutine.
type lobby struct {
	g      *Game
	known  []*shown
	opened map[netloop.ClientID]int // tables that a client has opened since it joined
	next   int                      // number of the next unnamed table
}

// shown is a table that the lobby knows, in the order of opening.
type shown struct {
	name   string
	free   int                      // seats: of the last listing, less those promised since
	object *netloop.Object[Listing] // nil until it was listed
}

// mostOpened is the most tables that one client may open before it sits down.
const mostOpened = 4

// openLobby opens the database, and the room in which players ask for tables.
func (g *Game) openLobby(r *netloop.Room) (err error) {
	if g.store, err = openStore(g.cfg.Database); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	r.OnClose(func(context.Context, *netloop.Closed) error { return g.store.close() })
	r.OnStart(g.forget)
	l := &lobby{g: g, opened: map[netloop.ClientID]int{}}
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { delete(l.opened, c.ID()) })
	netloop.WatchRooms(r, netloop.RoomFilter[Listing]{Kind: tableKind}, func(t *netloop.Tick, changes []netloop.RoomChange[Listing]) {
		for i := range changes {
			l.list(t, &changes[i])
		}
	})
	Sit.HandleLater(r, l.sit)
	Record.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, _ RecordQuery, reply netloop.Reply[Won]) {
		player := from.Join().Subject
		netloop.Go(t, func(ctx context.Context) (Won, error) {
			w, err := g.store.record(ctx, player)
			return w, plain(err)
		}, func(t *netloop.Tick, w Won, err error) {
			reply.Send(t, w, err)
		})
	})
	if g.host != nil && g.cfg.Bots > 0 {
		g.invite(r)
	}
	return nil
}

// forgetEvery is how often the lobby deletes abandoned matches.
const forgetEvery = time.Hour

// forget deletes abandoned matches, and schedules itself again.
func (g *Game) forget(t *netloop.Tick) {
	store, after := g.store, g.cfg.Keep
	netloop.Go(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, plain(store.forget(ctx, after)) }, func(t *netloop.Tick, _ struct{}, err error) {
		if err != nil {
			t.Log().Error("abandoned matches cannot be deleted", "error", err)
		}
		t.AfterFunc(forgetEvery, g.forget)
	})
}

// invite runs the server's own players for as long as the lobby is open.
func (g *Game) invite(r *netloop.Room) {
	ctx, stop := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	r.OnStart(func(*netloop.Tick) {
		playing.Go(func() { g.host(ctx, r.Server(), g.cfg.Bots) })
	})
	r.OnDrain(func(*netloop.Tick, time.Duration) { stop() }) // The drain does not wait for bots.
	r.OnClose(func(context.Context, *netloop.Closed) error { stop(); playing.Wait(); return nil })
}

// list shows a change of the server's tables to the clients in the lobby.
func (l *lobby) list(t *netloop.Tick, change *netloop.RoomChange[Listing]) {
	is := change.Room
	at := slices.IndexFunc(l.known, func(s *shown) bool { return s.name == is.Info.Table })
	if change.Gone {
		if at >= 0 && l.known[at].object != nil {
			l.known[at].object.Despawn(t)
			l.known = slices.Delete(l.known, at, at+1)
		}
		return
	}
	if at < 0 {
		at, l.known = len(l.known), append(l.known, &shown{name: is.Info.Table})
	}
	s, now := l.known[at], is.Info
	now.Taken, now.Seats = uint8(is.Players), uint8(is.MaxClients)
	if s.free = is.Free(); now.Phase != Waiting {
		s.free = 0 // They are reserved for absent players, or the match cannot begin at once.
	}
	if s.object == nil {
		s.object = Listings.Spawn(t, now)
		return
	}
	*s.object.Edit(t) = now
}

// sit finds or opens a table, and reserves a seat.
func (l *lobby) sit(t *netloop.Tick, from *netloop.Client, q SitDown, reply netloop.Reply[Place]) {
	player := from.Join().Subject
	at := slices.IndexFunc(l.known, func(s *shown) bool { return s.name == q.Table && s.object != nil })
	switch {
	case q.Private:
		l.open(t, from, l.unused(t), true, reply)
	case q.Table == "" && !q.Watch:
		l.anywhere(t, from, reply)
	case at < 0 && q.Watch:
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRoomUnknown, "there is no such table"))
	case q.Watch:
		l.reserve(t, q.Table, netloop.Reservation{Spectator: true}, reply.Send)
	case at >= 0 && l.known[at].object.State().keeps(player):
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRefused, "others play at this table: you may watch"))
	case at >= 0:
		l.reserve(t, q.Table, netloop.Reservation{}, reply.Send)
	case !named(q.Table, maxTable):
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRefused, "a table needs a name of 1 to %d letters", maxTable))
	default:
		l.open(t, from, q.Table, false, reply)
	}
}

// keeps reports whether a match without the player is under way.
func (s Listing) keeps(player string) bool {
	return (s.Phase == Playing || s.Phase == Pausing) && !slices.Contains(s.Players, player)
}

// anywhere seats a player at the table with the most waiting players, or else at a new one.
func (l *lobby) anywhere(t *netloop.Tick, from *netloop.Client, reply netloop.Reply[Place]) {
	at := -1
	for i, s := range l.known {
		if s.free > 0 && (at < 0 || s.free < l.known[at].free) {
			at = i
		}
	}
	if at < 0 {
		name := l.unused(t)
		l.known = append(l.known, &shown{name: name, free: l.g.cfg.Players - 1})
		l.open(t, from, name, false, reply)
		return
	}
	s := l.known[at]
	s.free--
	l.seat(t, s.name, func(t *netloop.Tick, p Place, err error) {
		if refused := (*netloop.Refusal)(nil); errors.As(err, &refused) && (refused.Code == netloop.CodeFull || refused.Code == netloop.CodeRoomUnknown) {
			s.free = 0 // Another player took it; it counts as taken until it is listed again.
			l.anywhere(t, from, reply)
			return
		}
		reply.Send(t, p, err)
	})
}

// unused makes a name for a table: a number and a random part, so that an earlier run has hardly
// used it.
func (l *lobby) unused(t *netloop.Tick) string {
	l.next++
	return fmt.Sprintf("%d-%04x", l.next, uint16(t.Rand().Uint32()))
}

// open opens a table for a player, unless the player has opened too many.
func (l *lobby) open(t *netloop.Tick, from *netloop.Client, table string, private bool, reply netloop.Reply[Place]) {
	if l.opened[from.ID()] == mostOpened {
		l.forget(table)
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeBusy, "you have opened %d tables: sit down at one of them", mostOpened))
		return
	}
	l.opened[from.ID()]++
	spec := l.g.tableSpec(table)
	spec.Private = private
	t.OpenRoom(spec, func(t *netloop.Tick, _ netloop.RoomInfo, err error) {
		if err != nil && !errors.Is(err, netloop.ErrRoomExists) {
			l.forget(table)
			reply.Send(t, Place{}, netloop.Refuse(netloop.CodeBusy, "there is no room for another table"))
			return
		}
		l.reserve(t, table, netloop.Reservation{}, reply.Send)
	})
}

// forget removes a table that was not opened.
func (l *lobby) forget(table string) {
	l.known = slices.DeleteFunc(l.known, func(s *shown) bool { return s.name == table && s.object == nil })
}

// seat reserves a seat at a table, and opens the table's room first unless it is open.
func (l *lobby) seat(t *netloop.Tick, table string, then func(*netloop.Tick, Place, error)) {
	t.OpenRoom(l.g.tableSpec(table), func(t *netloop.Tick, _ netloop.RoomInfo, err error) {
		if err != nil && !errors.Is(err, netloop.ErrRoomExists) {
			then(t, Place{}, netloop.Refuse(netloop.CodeBusy, "there is no room for another table"))
			return
		}
		l.reserve(t, table, netloop.Reservation{}, then)
	})
}

// reserve reserves a seat.
func (l *lobby) reserve(t *netloop.Tick, table string, v netloop.Reservation, then func(*netloop.Tick, Place, error)) {
	ticketTo(t, tablePrefix+table, v, then)
}

// ticketTo asks for a ticket to a room.
func ticketTo(t *netloop.Tick, room string, v netloop.Reservation, then func(*netloop.Tick, Place, error)) {
	t.Reserve(room, v, func(t *netloop.Tick, tickets []netloop.Ticket, err error) {
		if err != nil {
			then(t, Place{}, err)
			return
		}
		then(t, Place{Room: room, Ticket: string(tickets[0])}, nil)
	})
}
