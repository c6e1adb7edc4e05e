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
	Minor   int    // the minor version of the schema in force
	Params  []byte // JSON

	Ticket    bool   // it has a ticket
	Spectator bool   // it asks to be a spectator
	Reserved  []byte // the data of its ticket, JSON
	Game      any    // the game's own view of it
}

// SameSubject is the policy for the second connection of a player in the room.
type SameSubject uint8

// The policies.
const (
	TakeOver SameSubject = iota // the newcomer takes over the player's client
	Refuse                      // the newcomer is refused
	Allow                       // the newcomer is another client
)

// Holder returns the account that a client's messages are charged to.
func (j *Join) Holder() rpcqueue.Holder {
	switch {
	case j.Subject != "":
		return rpcqueue.Holder{Key: "subject " + j.Subject, Shared: true}
	case j.Addr != "":
		return rpcqueue.Holder{Key: "address " + site(j.Addr)}
	}
	return rpcqueue.Holder{}
}

// site returns the part of a host:port that identifies one household or machine. A text that is
// not an address is returned as it is.
func site(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	return endpoint.Site(at.Addr()).String()
}
