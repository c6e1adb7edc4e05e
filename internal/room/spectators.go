package room

import (
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A spectator is a client that watches. This file has the rules that differ from those for players:
//
//	seat      one of its own kind; with a SpectatorDelay, in the spectator room, so that the
//	          admission of a room passes spectators on to that of the spectator room
//	inputs    are dropped
//	messages  run only if the declaration of their method permits it
//
// With a delay the spectators see the room through its spectator feed (spectatorfeed.go). Its data
// waits in the delay buffer (delaybuffer.go) until the spectator room (spectatorroom.go) shows it.

// delayed reports whether spectators of the room see it with a delay.
func (s *Spec) delayed() bool { return s.SpectatorDelay > 0 && s.MaxSpectators > 0 }

// seats returns the numbers of seats in the room itself. Delayed spectators have seats in the
// spectator room.
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

// of returns the admission with the seats of players or, if spectator is set, of spectators. With a
// delay, spectators have seats in the spectator room.
func (a *Admission) of(spectator bool) *Admission {
	if spectator && a.spectators != nil {
		return a.spectators
	}
	return a
}

// route returns the admission that decides about a client. If there is a spectator room, its
// admission decides about clients that ask to be spectators or have a seat or a ticket there,
// unless they have a seat or a ticket in this room. For all other clients it returns a.
func (a *Admission) route(hello *netloopv1.Hello) *Admission {
	if s := a.spectators; s != nil && !a.knows(hello) && (hello.GetSpectate() || s.knows(hello)) {
		return s
	}
	return a
}

// Refusing returns the code with which all new clients are refused at present, or 0 if this depends
// on their hello. The transport calls it before it spends resources on a connection. If hear is
// true, the transport reads the hello first, because the client may have a seat here, or must be
// sent the reason as a text. Any goroutine may call it.
func (a *Admission) Refusing() (code transport.Code, hear bool) {
	code, hear = a.refusal()
	if code == transport.CodeFull && a.spectators != nil {
		return a.spectators.refusal()
	}
	return code, hear
}

// Reserve reserves seats and returns one ticket for each: for all seats, or none. Any goroutine
// may call it.
func (a *Admission) Reserve(res Reservation) ([]string, error) {
	a = a.of(res.Spectator)
	if why := a.refusing.Load(); why != nil {
		return nil, &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	return a.seats.Reserve(res, a.spec.Name, a.clock.Now())
}

// Lock stops or permits the admission of clients with neither a ticket nor a seat. Any goroutine
// may call it and Locked.
func (a *Admission) Lock(locked bool) {
	a.seats.Lock(locked)
	if a.spectators != nil {
		a.spectators.Lock(locked)
	}
}

// Count returns the numbers of players and spectators in the room or being admitted, and of
// reserved seats.
func (a *Admission) Count() (players, spectators, reserved int) {
	players, spectators, reserved = a.seats.Count(a.clock.Now())
	if a.spectators != nil {
		_, watching, kept := a.spectators.Count()
		spectators, reserved = spectators+watching, reserved+kept
	}
	return players, spectators, reserved
}

// vacate makes a room without taken or reserved seats refuse new clients, and reports whether it
// had no such seats. In the spectator room only reserved seats count.
func (a *Admission) vacate(why *transport.Closed) bool {
	if a.spectators != nil {
		if _, _, reserved := a.spectators.Count(); reserved > 0 {
			return false
		}
	}
	return a.seats.Vacate(a.clock.Now(), why)
}

// maySend returns the error for a message that the client may not send in its role.
func (c *Client) maySend(m *schema.Method) error {
	if c.join.Spectator && !m.Spectators {
		return errWatches
	}
	return nil
}

// errWatches rejects a spectator's message of a method for players.
var errWatches = &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: transport.Refuse(transport.CodeRefused, "spectators may not send it")}

// plays reports whether the client's inputs count.
func (c *Client) plays() bool { return !c.join.Spectator }

// IsFeed reports whether the client is the spectator feed, which represents all delayed
// spectators.
func (c *Client) IsFeed() bool { return c == c.room.clients.feed }
