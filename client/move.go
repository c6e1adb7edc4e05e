package client

import (
	"errors"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// The errors of Move.
var (
	errNotIn  = errors.New("client: Move: the client is in no room that it could leave")
	errNoMove = errors.New("client: Move: the game does not let clients of this room move (netloop.Room.AllowMoves)")
)

// Move asks the room to let the client go on to the room of a ticket, or of a private room's code.
// The server's game may send a client on by itself, with [netloop.Client.Move]; both are the same
// from there on. The Client goes on, over the same connection: watchers and systems stay; all
// objects despawn, then those spawn that it sees in the other room; calls and messages under way
// are lost; [Client.ID] and [Client.Room] are others. [State] says [Moving], and then [Loading]. If
// the connection breaks on the way, the client comes back with the same ticket. If the other room
// does not take it, the client is closed with the reason: its place here is gone.
func (c *Client) Move(ticket netloop.Ticket) error {
	switch {
	case c.Closed() != nil || c.away != nil || c.session == nil:
		return errNotIn
	case !c.mayMove:
		return errNoMove
	}
	c.session.AskMove(string(ticket))
	return nil
}

// follow goes on to the room of a ticket: this one has let the client go.
func (c *Client) follow(ticket string) {
	c.ticket, c.secret, c.keep = ticket, nil, 0
	e := c.newEntry()
	e.hello.Room, e.served = "", c.served
	c.away = &away{since: c.clock.Now(), state: State{Phase: Loading}, dial: e, moves: true}
	c.setState(State{Phase: Moving})
	c.session.Follow(transport.Next{Hello: e.hello, Session: e.config, Done: e.end})
}

// moving reports whether the client is on its way to another room.
func (c *Client) moving() bool { return c.away != nil && c.away.moves }

// endsMove reports whether a move that has failed ends the client. A refusal over the connection of
// the move does, whatever its code. A connection that has broken does if the client makes no other
// one. A refusal of a later connection is like that of any client that comes back.
func (c *Client) endsMove(err error) bool {
	var refused *transport.Refusal
	return c.moving() && (c.cfg.Reconnect.Off || c.away.attempt == 0 && errors.As(err, &refused))
}
