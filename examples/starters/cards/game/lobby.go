package game

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
)

// openLobby lists the tables, and sends players to them.
func (g *Game) openLobby(r *netloop.Room) {
	match.List(r, Listings, netloop.RoomFilter[Listing]{Kind: "table"}, func(s *Listing, is netloop.RoomListing[Listing]) {
		*s = is.Info
		s.Room, s.Seats = is.Name, uint8(is.MaxClients)
	})
	tables := match.NewRooms(match.Config[Listing]{
		Spec:  g.spec("table/"), // A new table has this name and a number.
		Where: func(is netloop.RoomListing[Listing]) bool { return !is.Info.Playing },
	})
	Sit.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, q SitDown, reply netloop.Reply[Place]) {
		if q.Room != "" {
			ticketTo(t, q.Room, reply)
			return
		}
		tables.Join(t, from.Join().Subject, netloop.Reservation{}, func(t *netloop.Tick, p match.Place, err error) {
			if err != nil {
				reply.Send(t, Place{}, err)
				return
			}
			reply.Send(t, Place{string(p.Tickets[0])}, nil)
		})
	})
}

// ticketTo answers with a ticket for a room.
func ticketTo(t *netloop.Tick, room string, reply netloop.Reply[Place]) {
	t.Reserve(room, netloop.Reservation{}, func(t *netloop.Tick, tickets []netloop.Ticket, err error) {
		if err != nil {
			reply.Send(t, Place{}, err)
			return
		}
		reply.Send(t, Place{string(tickets[0])}, nil)
	})
}
