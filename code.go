package netloop

import (
	"fmt"

	"github.com/netloop/netloop/internal/transport"
)

// Code is the reason why a connection was closed, a join refused or a call rejected. Codes from
// [CodeGame], 1 000, upwards are the game's own; in metrics all of them have the label "game".
// String returns its text.
type Code = transport.Code

// Refusal is an error with a text for the peer. Any other error of a handler or an admission is
// logged, and the peer only gets "internal".
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

// As lets errors.As find the refusal as netloop's internal type. Games do not need it.
func (r *Refusal) As(target any) bool {
	travels, ok := target.(**transport.Refusal)
	if ok {
		*travels = &transport.Refusal{Code: r.Code, Text: r.Text}
	}
	return ok
}

// Refuse returns an error for the client to read. If OnAdmit, OnJoin, the handler of a call or a
// Validate function returns it, or [Reply.Send] gets it, the client receives it as a [*Refusal], or
// as a [*Closed] if the connection ends. The code is [CodeRefused], another code of netloop, or a
// code from [CodeGame] upwards. At most 512 bytes of the text are sent. The error may also be
// wrapped in another error.
func Refuse(c Code, format string, a ...any) error {
	return &Refusal{Code: c, Text: fmt.Sprintf(format, a...)}
}

// Codes that netloop itself uses, and the first code that a game may use.
const (
	CodeLeft            Code = transport.CodeLeft            // closed by the client
	CodeClosing         Code = transport.CodeClosing         // the server, or the room, ends
	CodeKicked          Code = transport.CodeKicked          // used by games with Client.Kick
	CodeBadVersion      Code = transport.CodeBadVersion      // another protocol version
	CodeSchemaMismatch  Code = transport.CodeSchemaMismatch  // other game or incompatible build
	CodeRoomUnknown     Code = transport.CodeRoomUnknown     // no room of that name
	CodeRefused         Code = transport.CodeRefused         // by OnAdmit, MinRole and others
	CodeFull            Code = transport.CodeFull            // no free seat, or too many rooms
	CodeMoved           Code = transport.CodeMoved           // Client.Move, to another room
	CodeProtocol        Code = transport.CodeProtocol        // a violation of the protocol
	CodeFlood           Code = transport.CodeFlood           // too many messages
	CodeUnknownMethod   Code = transport.CodeUnknownMethod   // a method without a handler
	CodeStageNotAllowed Code = transport.CodeStageNotAllowed // not a stage of AtStage
	CodeInvalid         Code = transport.CodeInvalid         // refused by Validate
	CodeBusy            Code = transport.CodeBusy            // overload, or a full queue
	CodeUnauthenticated Code = transport.CodeUnauthenticated // no accepted token
	CodeReplaced        Code = transport.CodeReplaced        // the player connected again
	CodeTicket          Code = transport.CodeTicket          // unknown, expired or used
	CodeTimeout         Code = transport.CodeTimeout         // OnAdmit or a handshake took too long
	CodeLost            Code = transport.CodeLost            // no data for too long
	CodeInternal        Code = transport.CodeInternal        // an error of the server
	CodeGame            Code = transport.CodeGame            // first code of the game
)

// Closed is the reason why a room ended before its server, why a client has left, or, on a client,
// why its connection ended.
type Closed struct {
	Code Code
	Text string
}

// Error implements error.
func (c *Closed) Error() string {
	if c.Text == "" || c.Text == c.Code.String() {
		return fmt.Sprintf("netloop: closed: %s", c.Code)
	}
	return fmt.Sprintf("netloop: closed: %s: %s", c.Code, c.Text)
}
