package game

import (
	"fmt"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
)

// Listing is an arena in the lobby's list.
type Listing struct{ Players, Seats uint8 }

// Request is a message without content.
type Request struct{}

// The lobby's part of the schema.
var (
	Listings = netloop.NewClass[Listing](Schema, "listing")
	Play     = netloop.NewRPC[Request](Schema, "play", netloop.Limit(2, 5))
	Leave    = netloop.NewRPC[Request](Schema, "leave", netloop.Limit(2, 5))
)

// spec describes an arena. It closes half a minute after its last player has left.
var spec = netloop.RoomSpec{Name: "arena/", Kind: "arena", MaxClients: 8}

// openLobby lists the arenas, and moves players to one.
func openLobby(r *netloop.Room) {
	match.List(r, Listings, netloop.RoomFilter[Listing]{Kind: spec.Kind}, func(s *Listing, is netloop.RoomListing[Listing]) {
		s.Players, s.Seats = uint8(is.Players), uint8(is.MaxClients)
	})
	arenas := match.NewRooms(match.Config[Listing]{Spec: spec})
	Play.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ Request) error {
		id := from.ID()
		arenas.Join(t, fmt.Sprint(id), netloop.Reservation{}, func(t *netloop.Tick, p match.Place, err error) {
			if c, here := t.Client(id); here && err == nil {
				c.Move(t, p.Tickets[0])
			}
		})
		return nil
	})
}
