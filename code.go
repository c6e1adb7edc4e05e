package netloop

import (
	"fmt"

	"github.com/netloop/netloop/internal/transport"
)

// Code is the reason why a connection was closed, a join refused or a call rejected. Codes from
// [CodeGame] on, 1 000, are the game's own. Metrics count those as one.
type Code = transport.Code

// Refusal is an error with a text for the peer. Any other error of a handler or an admission is
// logged, and the peer gets "internal" only.
type Refusal struct {
	Code Code
	Text string
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Text == "" || r.Text == r.Code.String() {
		return r.Code.String()
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Text)
}

// As lets errors.As find the refusal as a *transport.Refusal.
func (r *Refusal) As(target any) bool {
	travels, ok := target.(**transport.Refusal)
	if ok {
		*travels = &transport.Refusal{Code: r.Code, Text: r.Text}
	}
	return ok
}

// Refuse returns an error that the peer may read: returned by OnAdmit, OnJoin, the handler of a
// call or a Validate function, or given to [Reply.Send], it is sent to the client as a [*Refusal],
// or as a [*Closed] if it ends the connection. The code is [CodeRefused] or another of netloop's
// own, or from [CodeGame] on; at most 512 bytes of the text are sent. Wrapped by another error it
// works too.
func Refuse(c Code, format string, a ...any) error {
	return &Refusal{Code: c, Text: fmt.Sprintf(format, a...)}
}

// Codes that netloop itself uses, and the first that a game may use.
const (
	CodeLeft            = transport.CodeLeft            // the client has closed the connection
	CodeClosing         = transport.CodeClosing         // the server, or the room, ends
	CodeKicked          = transport.CodeKicked          // for Client.Kick, by the game
	CodeBadVersion      = transport.CodeBadVersion      // another version of netloop's protocol
	CodeSchemaMismatch  = transport.CodeSchemaMismatch  // another game, or a build that is unfit
	CodeRoomUnknown     = transport.CodeRoomUnknown     // no room of that name
	CodeRefused         = transport.CodeRefused         // OnAdmit, MinRole, OwnerOnly, LateDrop
	CodeFull            = transport.CodeFull            // RoomSpec.MaxClients are in the room
	CodeMoved           = transport.CodeMoved           // Client.Move, to another room
	CodeProtocol        = transport.CodeProtocol        // the peer violates netloop's protocol
	CodeFlood           = transport.CodeFlood           // more messages than the limits allow
	CodeUnknownMethod   = transport.CodeUnknownMethod   // a method that is not known or handled
	CodeStageNotAllowed = transport.CodeStageNotAllowed // a stage that AtStage does not name
	CodeInvalid         = transport.CodeInvalid         // a message that Validate refused
	CodeBusy            = transport.CodeBusy            // overload, full queue, too many answers
	CodeUnauthenticated = transport.CodeUnauthenticated // no token, or one that is not accepted
	CodeReplaced        = transport.CodeReplaced        // the player has another connection now
	CodeTicket          = transport.CodeTicket          // unknown, expired or used
	CodeTimeout         = transport.CodeTimeout         // OnAdmit, or a handshake, took too long
	CodeLost            = transport.CodeLost            // no data from the other side for too long
	CodeInternal        = transport.CodeInternal        // an error or a panic of the server's own
	CodeGame            = transport.CodeGame            // the first of the game's own
)
