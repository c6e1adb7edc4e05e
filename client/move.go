package client

import (
	"errors"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// The errors of Move.
var (
	errNotIn  = errors.New("client: Move: client is not in a room")
	errNoMove = errors.New("client: Move: room does not let its clients move: see netloop.Room.AllowMoves")
)

// Move requests a move to the room of a ticket, or to a private room by its code. The server's game
// may also move a client, with [netloop.Client.Move]; the effect is the same. The client moves over
// the same connection: watchers and systems are kept; all objects despawn, then the visible objects
// of the other room spawn; calls and messages in flight are lost; [Client.ID] and [Client.Room]
// change. [State] is [Moving], and then [Loading]. If the client loses the connection during the
// move, it reconnects with the same ticket or, if that is no longer known, joins its old room
// again. If the other room refuses it, the client is closed with the reason, because its seat in
// the old room is gone.
//
// If the room of the ticket is on another server of the cluster, the client first connects to that
// server while it plays on, and then moves. If that server does not answer within 5 s, the client
// stays in its room. If it refuses the client, the client returns to its old seat and plays on, as
// after a lost connection ([Reconnect]). After the move the client reconnects to the other server.
// With [Config] TLS set, it accepts the certificates of this configuration there, too, or those
// that its server has announced.
func (c *Client) Move(ticket netloop.Ticket) error {
	switch {
	case c.conn.ended() != nil || c.conn.rejoin != nil || c.conn.session == nil:
		return errNotIn
	case !c.conn.movable:
		return errNoMove
	}
	c.conn.session.AskMove(string(ticket))
	return nil
}

// move enters the room of a ticket: the current room has released the client.
func (n *connection) move(ticket string) {
	n.dropTrip()
	n.ticket, n.secret, n.keep = ticket, nil, 0
	a := n.newAttempt()
	a.hello.Room, a.served = "", n.served
	n.rejoin = &rejoin{since: n.clock.Now(), state: State{Phase: Loading}, dialing: a, moves: true}
	n.setState(State{Phase: Moving})
	n.session.Follow(transport.Next{Hello: a.hello, Session: a.config, Done: a.finish})
}

// moving reports whether the client is moving to another room.
func (n *connection) moving() bool { return n.rejoin != nil && n.rejoin.moves }

// endsMove reports whether the error of a move to another room ends the client. A refusal by that
// room over the existing connection ends it, with any code. If Reconnect.Off is set, any error ends
// the client. A refusal of a later connection is handled as for any reconnecting client.
func (n *connection) endsMove(err error) bool {
	var refused *transport.Refusal
	return n.moving() && (n.cfg.Reconnect.Off || n.rejoin.tries == 0 && errors.As(err, &refused))
}
