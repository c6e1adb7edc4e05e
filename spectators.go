package netloop

import (
	"errors"
	"time"
)

// maxSpectatorDelay bounds RoomSpec.SpectatorDelay, because the delayed data is stored in memory.
const maxSpectatorDelay = 5 * time.Minute

// SpectatorFeed reports whether the client is the spectator feed of a room with a [RoomSpec]
// SpectatorDelay: a spectator that the room makes before any client joins, and that represents all
// spectators. Spectators see exactly what this client sees, after the delay.
//
// OnJoin and OnLeave are called for it, but not OnAdmit, OnDrop and OnResume: it has no connection,
// sends no messages, and leaves with the room. It takes no seat, and [RoomInfo] does not count it.
// [Tick.Clients] and [Everyone] include it. If a game refuses or kicks it, the spectators see no
// further changes.
func (c *Client) SpectatorFeed() bool { return c.e.IsFeed() }

// openSpectatorRoom opens the room's delayed spectator room, if it has a delay. A replay has no
// spectator room.
func (r *Room) openSpectatorRoom() (err error) {
	if r.server.cfg.recorded {
		return nil
	}
	r.spectatorRoom, err = r.e.OpenSpectatorRoom()
	return err
}

// startSpectatorRoom runs the room of r's delayed spectators on another goroutine. That room ends
// after r, when the remaining delay has been shown, or with the server.
func (s *Server) startSpectatorRoom(r *Room) {
	if r.spectatorRoom == nil {
		return
	}
	s.supervisor.spectatorRooms.Add(1)
	r.spectatorRoom.Supervisor.Start(s.supervisor.ctx, func(err error) {
		defer s.supervisor.spectatorRooms.Done()
		var closed *Closed
		if err != nil && !errors.As(err, &closed) {
			s.log.Error("spectator room failed", "room", r.spec.Name, "kind", r.spec.Kind, "error", err)
		}
	})
}
