package cards

import (
	"context"
	"errors"
	"fmt"

	"github.com/netloop/netloop"
)

// lobby is the default room. It belongs to its goroutine.
type lobby struct {
	g    *Game
	next int    // number of the next table without a name of its own
	open string // the table that was given to whoever came last without a name
	sent int    // how many have been sent there
}

// openLobby opens the database, and the room in which players ask for tables.
func (g *Game) openLobby(r *netloop.Room) (err error) {
	if g.store, err = openStore(g.cfg.Database); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	r.OnClose(func(context.Context) error { return g.store.close() })
	l := &lobby{g: g}
	Sit.HandleLater(r, func(t *netloop.Tick, _ *netloop.Client, q SitDown, reply netloop.Reply[Place]) { l.sit(t, q, reply) })
	Record.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, _ RecordQuery, reply netloop.Reply[Won]) {
		player := from.Join().Subject
		netloop.Go(t, func(ctx context.Context) (Won, error) { return g.store.record(ctx, player) }, func(t *netloop.Tick, w Won, err error) {
			reply.Send(t, w, err)
		})
	})
	return nil
}

// sit finds a table, opens it if it is not there, and keeps a seat.
func (l *lobby) sit(t *netloop.Tick, q SitDown, reply netloop.Reply[Place]) {
	name := q.Table
	if name == "" {
		if l.open == "" || l.sent == l.g.cfg.Players {
			l.next++
			// Another name than before a restart.
			l.open, l.sent = fmt.Sprintf("%d-%08x", l.next, t.Rand().Uint32()), 0
		}
		name, l.sent = l.open, l.sent+1
	}
	name = tablePrefix + name
	netloop.OpenRoom(t, l.g.tableSpec(name), func(t *netloop.Tick, _ netloop.RoomInfo, err error) {
		if err != nil && !errors.Is(err, netloop.ErrRoomExists) {
			reply.Send(t, Place{}, netloop.Refuse(netloop.CodeBusy, "there is no room for another table"))
			return
		}
		netloop.Reserve(t, name, netloop.Reservation{}, func(t *netloop.Tick, tickets []netloop.Ticket, err error) {
			if err != nil {
				reply.Send(t, Place{}, err)
				return
			}
			reply.Send(t, Place{Room: name, Ticket: string(tickets[0])}, nil)
		})
	})
}
