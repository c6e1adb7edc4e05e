package netloop

import (
	"errors"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/room"
)

// maxSpectatorDelay bounds RoomSpec.SpectatorDelay: the delayed data is kept in memory.
const maxSpectatorDelay = 5 * time.Minute

// Camera reports whether the client is the spectator feed of a room with a [RoomSpec]
// SpectatorDelay: a spectator that the room makes before any client joins, and that represents all
// spectators. They see exactly this client's view, after the delay. It has no connection, sends no
// messages, and leaves with the room; if a game refuses or kicks it, its spectators see no further
// changes.
func (c *Client) Camera() bool { return c.e.Camera() }

// screen opens the room's delayed spectator room, if it has a delay. A replay has none: its
// spectator feed has no viewers.
func (r *Room) screen() (err error) {
	if r.server.cfg.recorded {
		return nil
	}
	r.screening, err = r.e.Screening()
	return err
}

// admits returns the engine that admits a client: that of the delayed spectator room for spectators
// with a delay, and for clients with a seat or a ticket there.
func (r *Room) admits(hello *netloopv1.Hello) *room.Room {
	s := r.screening
	if s == nil || r.e.Knows(hello) || !s.Knows(hello) && !hello.GetSpectate() {
		return r.e
	}
	return s
}

// seats returns the engine with the seats of the players, or of the spectators.
func (r *Room) seats(spectator bool) *room.Room {
	if spectator && r.screening != nil {
		return r.screening
	}
	return r.e
}

// places returns the numbers of players and spectators in the room, and of further reserved seats.
func (r *Room) places() (players, spectators, reserved int) {
	players, spectators, reserved = r.e.Places()
	if r.screening != nil {
		_, watching, kept := r.screening.Places()
		spectators, reserved = spectators+watching, reserved+kept
	}
	return players, spectators, reserved
}

// startScreening runs the delayed spectator room beside its room. It ends later than the room,
// after the remaining delay has been shown, or with the server.
func (s *Server) startScreening(r *Room) {
	if r.screening == nil {
		return
	}
	s.crew.screenings.Add(1)
	r.screening.Start(s.crew.ctx, func(err error) {
		defer s.crew.screenings.Done()
		var closed *Closed
		if err != nil && !errors.As(err, &closed) {
			s.log.Error("a screening has failed", "room", r.spec.Name, "kind", r.spec.Kind, "error", err)
		}
	})
}
