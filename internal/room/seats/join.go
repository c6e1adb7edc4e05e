package seats

import (
	"net/netip"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// Join is a client's request to join.
type Join struct {
	Subject string         // the player, if admission has identified one
	Claims  map[string]any // the other claims of its token
	Token   string
	Addr    string
	Minor   int    // the minor version of the schema to use
	Params  []byte // JSON

	Ticket    bool   // it has a ticket
	Spectator bool   // it asks to be a spectator
	Reserved  []byte // the data of its ticket, JSON
	Game      any    // the game's handle of the Join
}

// SameSubject is the policy for the second connection of a player in the room.
type SameSubject uint8

// The policies.
const (
	TakeOver SameSubject = iota // the new connection takes over the player's client
	Refuse                      // the new connection is refused
	Allow                       // the new connection joins as another client
)

// Holder returns the holder to which the limits of messages apply: the client's player, or its
// address.
func (j *Join) Holder() rpcqueue.Holder {
	switch {
	case j.Subject != "":
		return rpcqueue.Holder{Key: "subject " + j.Subject, Shared: true}
	case j.Addr != "":
		return rpcqueue.Holder{Key: "address " + site(j.Addr)}
	}
	return rpcqueue.Holder{}
}

// site returns the part of a host:port that identifies one household or machine. It returns a text
// that is not an address unchanged.
func site(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	return endpoint.Site(at.Addr()).String()
}
