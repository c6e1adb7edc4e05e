package netloop

import (
	"errors"
	"fmt"

	"github.com/netloop/netloop/internal/transport"
)

// Code says why a connection was closed, a join refused or a call rejected.
// Codes from CodeGame on are the game's own.
type Code = transport.Code

// Refusal is an error that reaches the peer in words. Every other error that a
// handler or an admission returns is logged, and the peer only reads "internal".
type Refusal struct {
	Code Code
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Text) }

// Refuse makes an error that the peer may read.
func Refuse(c Code, format string, a ...any) error {
	return &Refusal{Code: c, Text: fmt.Sprintf(format, a...)}
}

// public splits an error into what the peer may know. It reports false for an
// error that is the server's own business.
func public(err error) (Code, string, bool) {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code, r.Text, true
	}
	return CodeInternal, "internal error", false
}

// Codes that netloop itself uses, and the first that a game may use.
const (
	CodeLeft            = transport.CodeLeft
	CodeClosing         = transport.CodeClosing
	CodeKicked          = transport.CodeKicked
	CodeBadVersion      = transport.CodeBadVersion
	CodeSchemaMismatch  = transport.CodeSchemaMismatch
	CodeRoomUnknown     = transport.CodeRoomUnknown
	CodeRefused         = transport.CodeRefused
	CodeFull            = transport.CodeFull
	CodeFlood           = transport.CodeFlood
	CodeUnknownMethod   = transport.CodeUnknownMethod
	CodeStageNotAllowed = transport.CodeStageNotAllowed
	CodeInvalid         = transport.CodeInvalid
	CodeBusy            = transport.CodeBusy
	CodeTimeout         = transport.CodeTimeout
	CodeLost            = transport.CodeLost
	CodeInternal        = transport.CodeInternal
	CodeGame            = transport.CodeGame
)

var errKind = errors.New("netloop: a message of the wrong kind for its method")
