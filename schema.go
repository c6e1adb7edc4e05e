package netloop

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Schema is the agreement of a server and its clients: classes of replicated objects and messages,
// by name, and the game's metrics of the server. Package-level declarations fill it, and the first
// server or client that uses it freezes it. A later or an invalid declaration panics, as
// regexp.MustCompile does.
//
// Server and client may be of different builds of a game. Classes, methods and fields are matched
// by their names. A client ignores those that it lacks, a field that only the client has keeps its
// zero value, and a method that only the client has cannot be sent. Those that both have must be of
// the same type. A class or method keeps its name when the Go variable is renamed, and a field with
// the tag name=:
//
//	Velocity Vec `net:"name=Speed"` // older builds know it as Speed
//
// A Schema may be shared by any number of servers and clients of a process.
type Schema struct {
	s       *schema.Schema
	classes []*class
	metrics []*metrics.Game // declared by NewCounter, NewGauge and NewHistogram
}

// NewSchema makes an empty schema. Servers refuse clients with another major version: raise it when
// the meaning of an existing name changes. The smaller of both minor versions is in force, see
// [Join] and the client's Minor.
func NewSchema(name string, major, minor int) *Schema {
	return &Schema{s: schema.New(name, major, minor)}
}

// Name returns the name that the schema was made with.
func (s *Schema) Name() string { return s.s.Name }

// The most bytes of an encoded message. Tags may set less.
const (
	MaxMessage    int = transport.MaxPayload         // 15 808: of an RPC, a question or an answer
	MaxUnreliable int = transport.MaxDatagramPayload // 1 086: of an [Unreliable] RPC
)

// Truncate cuts a text to at most n bytes, the unit of the tag max, without splitting a character:
// use it for a player's text before it is stored in a field or a message. A text that is short
// enough is returned as it is.
func Truncate(s string, n int) string { return codec.Clip(s, n) }
