package cards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
)

// lobbyRoom is the name of the default room, for tickets back to it.
const lobbyRoom = ""

// lobby is the default room. It belongs to its goroutine.
type lobby struct {
	g      *Game
	tables *match.Rooms[Listing]    // at which players wait
	opened map[netloop.ClientID]int // tables that a client has opened since it joined
}

// mostOpened is the most tables that one client may open before it sits down.
const mostOpened = 4

// openLobby opens the room in which players ask for tables.
func (g *Game) openLobby(r *netloop.Room) error {
	r.OnStart(g.forget)
	l := &lobby{g: g, opened: map[netloop.ClientID]int{}, tables: match.NewRooms(match.Config[Listing]{
		Spec: g.tableSpec(""),
		// At other tables the free seats are reserved for absent players, or a match cannot begin
		// at once.
		Where: func(l netloop.RoomListing[Listing]) bool { return l.Info.Phase == Waiting },
	})}
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { delete(l.opened, c.ID()) })
	match.List(r, Listings, netloop.RoomFilter[Listing]{Kind: tableKind}, func(s *Listing, is netloop.RoomListing[Listing]) {
		*s = is.Info
		s.Taken, s.Seats = uint8(is.Players), uint8(is.MaxClients)
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

// table returns the listing of a table.
func (l *lobby) table(t *netloop.Tick, name string) (Listing, bool) {
	for o := range Listings.All(t) {
		if s := o.State(); s.Table == name {
			return s, true
		}
	}
	return Listing{}, false
}

// keeps reports whether a match without the player is under way.
func (s Listing) keeps(player string) bool {
	return (s.Phase == Playing || s.Phase == Pausing) && !slices.Contains(s.Players, player)
}

// sit finds or opens a table, and reserves a seat.
func (l *lobby) sit(t *netloop.Tick, from *netloop.Client, q SitDown, reply netloop.Reply[Place]) {
	seat, spec := netloop.Reservation{Spectator: q.Watch}, l.g.tableSpec(q.Table)
	at, found := l.table(t, q.Table)
	switch {
	case found && !q.Watch && at.keeps(from.Join().Subject):
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRefused, "others play at this table: you may watch"))
	case found:
		ticketTo(t, spec.Name, seat, reply.Send)
	case q.Watch:
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRoomUnknown, "there is no such table"))
	case l.opened[from.ID()] == mostOpened:
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeBusy, "you have opened %d tables: sit down at one of them", mostOpened))
	case q.Private:
		spec, spec.Private = l.g.tableSpec(fmt.Sprintf("private-%08x", t.Rand().Uint32())), true
		match.Open(t, spec, seat, l.seated(from, reply))
	case q.Table == "": // The table with the most waiting players, or a new one.
		l.tables.Join(t, from.Join().Subject, seat, l.seated(from, reply))
	case !named(q.Table, maxTable):
		reply.Send(t, Place{}, netloop.Refuse(netloop.CodeRefused, "a table needs a name of 1 to %d letters", maxTable))
	default:
		match.Open(t, spec, seat, l.seated(from, reply))
	}
}

// seated counts a request that may open a table, and returns the function that answers it.
func (l *lobby) seated(from *netloop.Client, reply netloop.Reply[Place]) func(*netloop.Tick, match.Place, error) {
	l.opened[from.ID()]++
	return func(t *netloop.Tick, p match.Place, err error) {
		if _, here := t.Client(from.ID()); here && !p.Opened {
			l.opened[from.ID()]--
		}
		switch {
		case errors.Is(err, netloop.ErrTooManyRooms):
			reply.Send(t, Place{}, netloop.Refuse(netloop.CodeBusy, "there is no room for another table"))
		case err != nil:
			reply.Send(t, Place{}, err)
		default:
			reply.Send(t, Place{Room: p.Room, Ticket: string(p.Tickets[0])}, nil)
		}
	}
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
