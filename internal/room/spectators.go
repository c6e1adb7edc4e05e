package room

import (
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A spectator is a client that watches. The rules that set it apart from a player are in this
// file:
//
//	seat      one of its own kind; with a SpectatorDelay, in the spectator room
//	inputs    are dropped
//	messages  run only if the declaration of their method permits it
//
// With a delay the spectators see the room through its spectator feed (spectatorfeed.go). Its data
// waits in the delay buffer (delaybuffer.go) until the spectator room (spectatorroom.go) shows it.

// delayed reports whether spectators of the room see it with a delay.
func (s *Spec) delayed() bool { return s.SpectatorDelay > 0 && s.MaxSpectators > 0 }

// seats returns the numbers of seats in the room itself.
func (s *Spec) seats() (players, spectators int) {
	if s.delayed() {
		return s.MaxClients, 0
	}
	return s.MaxClients, s.MaxSpectators
}

// ofSpectatorRoom returns the spec of the room's spectator room.
func (s Spec) ofSpectatorRoom() Spec {
	s.MaxClients, s.SpectatorDelay, s.MaxRewind, s.CloseEmpty, s.Sleep = 0, 0, 0, 0, true
	return s
}

// of returns the admission with the seats of players, or of spectators.
func (a *Admission) of(spectator bool) *Admission {
	if spectator && a.spectators != nil {
		return a.spectators
	}
	return a
}

// route returns the admission for a client: that of the spectator room for spectators with a
// delay, and for clients with a seat or a ticket there.
func (a *Admission) route(hello *netloopv1.Hello) *Admission {
	if s := a.spectators; s != nil && !a.knows(hello) && (hello.GetSpectate() || s.knows(hello)) {
		return s
	}
	return a
}

// maySend returns the error for a message that the client may not send in its role.
func (c *Client) maySend(m *schema.Method) error {
	if c.join.Spectator && !m.Spectators {
		return errWatches
	}
	return nil
}

// errWatches rejects a spectator's message of a method for players.
var errWatches = &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: transport.Refuse(transport.CodeRefused, "you only watch")}

// plays reports whether the client's inputs count.
func (c *Client) plays() bool { return !c.join.Spectator }

// IsFeed reports whether the client is the spectator feed, which represents all delayed
// spectators.
func (c *Client) IsFeed() bool { return c == c.room.clients.feed }
