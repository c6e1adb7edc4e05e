package netloop

import (
	"errors"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/room"
)

// maxSpectatorDelay bounds RoomSpec.SpectatorDelay: what happens meanwhile is kept in memory.
const maxSpectatorDelay = 5 * time.Minute

// Camera reports whether the client is the camera of a room with a [RoomSpec] SpectatorDelay: a
// spectator that the room makes before anybody joins, and that stands for all who watch. What it
// sees, reads and is sent they see, read and are sent, so much later. It has no connection, says
// nothing, and leaves with the room; a game that refuses or kicks it shows its spectators nothing
// more.
func (c *Client) Camera() bool { return c.e.Camera() }

// screen opens the room's screening, if its spectators see it with a delay. A replay has none: its
// camera films for nobody.
func (r *Room) screen() (err error) {
	if r.server.cfg.recorded {
		return nil
	}
	r.screening, err = r.e.Screening()
	return err
}

// admits returns the engine that decides about somebody who asks for the room: that of the
// screening for those who watch with a delay, or have a seat or a ticket there.
func (r *Room) admits(hello *netloopv1.Hello) *room.Room {
	s := r.screening
	if s == nil || r.e.Knows(hello) || !s.Knows(hello) && !hello.GetSpectate() {
		return r.e
	}
	return s
}

// seats returns the engine that has the seats of those who play, or of those who watch.
func (r *Room) seats(spectator bool) *room.Room {
	if spectator && r.screening != nil {
		return r.screening
	}
	return r.e
}

// places returns how many play and watch in the room, and how many more seats are reserved.
func (r *Room) places() (players, spectators, reserved int) {
	players, spectators, reserved = r.e.Places()
	if r.screening != nil {
		_, watching, kept := r.screening.Places()
		spectators, reserved = spectators+watching, reserved+kept
	}
	return players, spectators, reserved
}

// startScreening runs the room's screening beside it. It ends later than the room, when all has
// been shown, or with the server.
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
