package netloop

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Schema is the set of declarations that a server and its clients share: classes of replicated
// objects, and messages, by name. It also has the game's metrics, for the server. Package-level
// declarations add to it until the first server or client uses it. A later or an invalid
// declaration panics, as regexp.MustCompile does.
//
// Server and client may be different builds of a game. Classes, methods and fields are matched by
// their names, and must have the same type on both sides. A client ignores declarations that it
// lacks. A field that only the client has keeps its zero value, and a method that only the client
// has cannot be sent. If a Go variable is renamed, its class or method keeps its declared name; a
// renamed field needs the tag name=:
//
//	Velocity Vec `net:"name=Speed"` // older builds know it as Speed
//
// A Schema may be shared by any number of servers and clients of a process.
type Schema struct {
	s       *schema.Schema
	classes []*class
	metrics []*metrics.Game // declared by NewCounter, NewGauge and NewHistogram
}

// NewSchema makes an empty schema. Servers refuse clients with another major version: increase it
// when the meaning of an existing name changes. Server and client use the smaller of their minor
// versions: see [Join] and the client's Minor.
func NewSchema(name string, major, minor int) *Schema {
	return &Schema{s: schema.New(name, major, minor)}
}

// Name returns the name of the schema.
func (s *Schema) Name() string { return s.s.Name }

// The largest encoded size of a message, in bytes. Tags may set a smaller limit.
const (
	MaxMessage    int = transport.MaxPayload         // 15 808: of an RPC, a question or an answer
	MaxUnreliable int = transport.MaxDatagramPayload // 1 086: of an [Unreliable] RPC
)

// Truncate cuts a text to at most n bytes, the unit of the tag max, without splitting a character:
// use it for a player's text before you store the text in a field or a message. A text that is
// short enough is returned unchanged.
func Truncate(s string, n int) string { return codec.Clip(s, n) }
