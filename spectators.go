package netloop

import (
	"errors"
	"time"
)

// maxSpectatorDelay bounds RoomSpec.SpectatorDelay: the delayed data is kept in memory.
const maxSpectatorDelay = 5 * time.Minute

// SpectatorFeed reports whether the client is the spectator feed of a room with a [RoomSpec]
// SpectatorDelay: a spectator that the room makes before any client joins, and that represents all
// spectators. They see exactly this client's view, after the delay.
//
// OnJoin and OnLeave are called for it, but not OnAdmit, OnDrop and OnResume: it has no connection,
// sends no messages, and leaves with the room. It takes no seat, and no [RoomInfo] counts it. It is
// in [Tick.Clients] and [Everyone]. If a game refuses or kicks it, its spectators see no further
// changes.
func (c *Client) SpectatorFeed() bool { return c.e.IsFeed() }

// openSpectatorRoom opens the room's delayed spectator room, if it has a delay. A replay has none:
// its spectator feed has no viewers.
func (r *Room) openSpectatorRoom() (err error) {
	if r.server.cfg.recorded {
		return nil
	}
	r.spectatorRoom, err = r.e.OpenSpectatorRoom()
	return err
}

// startSpectatorRoom runs the delayed spectator room beside its room. It ends later than the room,
// after the remaining delay has been shown, or with the server.
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
