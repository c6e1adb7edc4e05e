package transport

import (
	"fmt"
	"strings"
	"unicode/utf8"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Code is the reason for which a connection was closed, a join refused or a call rejected. Codes
// from CodeGame on are defined by the game.
type Code uint32

// The codes, with the numbers of the wire schema.
const (
	CodeUnspecified     = Code(netloopv1.Code_CODE_UNSPECIFIED)
	CodeLeft            = Code(netloopv1.Code_CODE_LEFT)
	CodeClosing         = Code(netloopv1.Code_CODE_CLOSING)
	CodeKicked          = Code(netloopv1.Code_CODE_KICKED)
	CodeBadVersion      = Code(netloopv1.Code_CODE_BAD_VERSION)
	CodeSchemaMismatch  = Code(netloopv1.Code_CODE_SCHEMA_MISMATCH)
	CodeRoomUnknown     = Code(netloopv1.Code_CODE_ROOM_UNKNOWN)
	CodeRefused         = Code(netloopv1.Code_CODE_REFUSED)
	CodeFull            = Code(netloopv1.Code_CODE_FULL)
	CodeProtocol        = Code(netloopv1.Code_CODE_PROTOCOL)
	CodeFlood           = Code(netloopv1.Code_CODE_FLOOD)
	CodeSlow            = Code(netloopv1.Code_CODE_SLOW)
	CodeTimeout         = Code(netloopv1.Code_CODE_TIMEOUT)
	CodeLost            = Code(netloopv1.Code_CODE_LOST)
	CodeInternal        = Code(netloopv1.Code_CODE_INTERNAL)
	CodeUnknownMethod   = Code(netloopv1.Code_CODE_UNKNOWN_METHOD)
	CodeStageNotAllowed = Code(netloopv1.Code_CODE_STAGE_NOT_ALLOWED)
	CodeInvalid         = Code(netloopv1.Code_CODE_INVALID)
	CodeBusy            = Code(netloopv1.Code_CODE_BUSY)
	CodeUnauthenticated = Code(netloopv1.Code_CODE_UNAUTHENTICATED)
	CodeReplaced        = Code(netloopv1.Code_CODE_REPLACED)
	CodeTicket          = Code(netloopv1.Code_CODE_TICKET)
	CodeMoved           = Code(netloopv1.Code_CODE_MOVED)
	CodeGame            = Code(netloopv1.Code_CODE_GAME)
)

// numCodes is the number of counters of codes; the game's codes share one.
const numCodes = int(CodeMoved) + 2

var codeTexts = [numCodes]string{
	CodeUnspecified:     "no reason given",
	CodeLeft:            "left",
	CodeClosing:         "the server is closing",
	CodeKicked:          "kicked",
	CodeBadVersion:      "protocol version mismatch",
	CodeSchemaMismatch:  "schema mismatch",
	CodeRoomUnknown:     "no such room",
	CodeRefused:         "refused",
	CodeFull:            "full",
	CodeProtocol:        "protocol error",
	CodeFlood:           "sent too much",
	CodeSlow:            "read too slowly",
	CodeTimeout:         "timed out",
	CodeLost:            "connection lost",
	CodeInternal:        "internal error",
	CodeUnknownMethod:   "unknown method",
	CodeStageNotAllowed: "stage not allowed",
	CodeInvalid:         "invalid request",
	CodeBusy:            "busy",
	CodeUnauthenticated: "not authenticated",
	CodeReplaced:        "replaced by another connection",
	CodeTicket:          "no such ticket",
	CodeMoved:           "moved to another room",
	numCodes - 1:        "game",
}

// String returns the code's text.
func (c Code) String() string {
	switch {
	case c <= CodeMoved:
		return codeTexts[c]
	case c >= CodeGame:
		return fmt.Sprintf("game code %d", uint32(c))
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// Name is the code's name in metrics, where all codes of games have one name.
func (c Code) Name() string { return codeTexts[c.counter()] }

// counter returns the index of the code's counter: codes that this version does not define share a
// counter with the game's codes.
func (c Code) counter() int { return int(min(c, Code(numCodes-1))) } // Also where int has 32 bits.

// Refusal is the error of a handshake that the server declined.
type Refusal struct {
	Code Code
	Text string
	// Moved is the server of the room, with CodeMoved, for a client that can move to another
	// server; nil without one.
	Moved *MovedTo
}

// Error implements error.
func (r *Refusal) Error() string { return describe("refused", r.Code, r.Text) }

// Refuse returns an error with a text for the peer.
func Refuse(c Code, format string, a ...any) error {
	return &Refusal{Code: c, Text: fmt.Sprintf(format, a...)}
}

// Closed is the reason for which a connection ended.
type Closed struct {
	Code   Code
	Text   string
	Remote bool // the peer closed it
}

// Error implements error.
func (c *Closed) Error() string {
	if c.Remote {
		return describe("closed by the peer", c.Code, c.Text)
	}
	return describe("closed", c.Code, c.Text)
}

func describe(what string, c Code, text string) string {
	if text == "" || text == c.String() {
		return "transport: " + what + ": " + c.String()
	}
	return "transport: " + what + ": " + c.String() + ": " + text
}

// clip shortens a text to MaxText bytes without cutting a character in two, and makes it valid
// UTF-8, because the peer has to refuse any other text.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
