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

// Move asks the room to let the client move to the room of a ticket, or of a private room's code.
// The server's game may also move a client, with [netloop.Client.Move]; both work the same from
// then on. The Client moves over the same connection: watchers and systems are kept; all objects
// despawn, then the objects that it sees in the other room spawn; calls and messages in flight are
// lost; [Client.ID] and [Client.Room] change. [State] is [Moving], and then [Loading]. If the
// connection breaks during the move, the client reconnects with the same ticket. If the other room
// refuses it, the client is closed with the reason: its seat here is gone.
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

// follow enters the room of a ticket: the current room has released the client.
func (c *Client) follow(ticket string) {
	c.ticket, c.secret, c.keep = ticket, nil, 0
	e := c.newEntry()
	e.hello.Room, e.served = "", c.served
	c.away = &away{since: c.clock.Now(), state: State{Phase: Loading}, dial: e, moves: true}
	c.setState(State{Phase: Moving})
	c.session.Follow(transport.Next{Hello: e.hello, Session: e.config, Done: e.end})
}

// moving reports whether the client is moving to another room.
func (c *Client) moving() bool { return c.away != nil && c.away.moves }

// endsMove reports whether a failed move ends the client. A refusal over the connection of the move
// does, with any code. A broken connection does if the client does not reconnect. A refusal of a
// later connection is handled like that of any reconnecting client.
func (c *Client) endsMove(err error) bool {
	var refused *transport.Refusal
	return c.moving() && (c.cfg.Reconnect.Off || c.away.attempt == 0 && errors.As(err, &refused))
}
