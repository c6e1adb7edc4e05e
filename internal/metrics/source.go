package metrics

import (
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// source is where the values of a family come from. Whoever counts does so at its own place, in
// plain numbers if one goroutine counts and in atomics if several do; the source says when the
// numbers are read. What happens rarely, or has labels that only the moment knows, is counted into
// the family itself.
type source struct {
	into   func(*Metrics, *Family) // when it is made: hands the family to those who count into it
	room   func(Room, Part)        // at Report, on the room's goroutine: plain numbers
	scrape func(*Metrics, *Family) // at a scrape: atomics, and what a lock guards
}

// Room is a room's plain numbers, which its goroutine alone may read. A method with a family
// reports all label sets of it.
type Room interface {
	State() *netvar.Stats
	Clients() int
	Dropped() int
	Reel() int
	Depths(Part)
	Drops(Part)
	Messages(Part)
	MessagesWaited(Part)
	Inputs(Part)
	Views(Part)
	Limits(Part)
	Bytes(Part)
	FieldBytes(Part)
}

// Server is what any goroutine may read of a server and its rooms.
type Server interface {
	Traffic() *transport.Stats
	Socket() *udpbatch.Stats
	Traces(*Family)
	TimeScale(*Family)
	Overload(*Family)
	Quarantined(*Family)
	Simulated(*Family)
	LogsDropped(*Family)
	AdminRefusals(*Family)
	WebRequests(*Family)
	WebConnections(*Family)
	CertificateLeft(*Family)
	CertificateReloads(*Family)
	Tokens(*Family)
	TokenIDs(*Family)
	KeyReloads(*Family)
}

// The sources that the table is made of.

func into(fn func(*Metrics, *Family)) source    { return source{into: fn} }
func room(fn func(Room, Part)) source           { return source{room: fn} }
func scraped(fn func(*Metrics, *Family)) source { return source{scrape: fn} }

func state(fn func(*netvar.Stats, Part)) source {
	return room(func(r Room, p Part) { fn(r.State(), p) })
}

func server(fn func(Server, *Family)) source {
	return scraped(func(m *Metrics, f *Family) {
		if m.server != nil {
			fn(m.server, f)
		}
	})
}

func traffic(fn func(*transport.Stats, *Family)) source {
	return server(func(s Server, f *Family) { fn(s.Traffic(), f) })
}

func sockets(fn func(*udpbatch.Stats, *Family)) source {
	return server(func(s Server, f *Family) { fn(s.Socket(), f) })
}

func account(fn func(*ticks.Snapshot, *Family)) source {
	return scraped(func(m *Metrics, f *Family) {
		m.mu.Lock()
		defer m.mu.Unlock()
		fn(&m.account, f)
	})
}

// joined is several sources of different kinds, of which each has label sets of its own.
func joined(parts ...source) (all source) {
	for _, s := range parts {
		if s.into != nil {
			all.into = s.into
		}
		if s.room != nil {
			all.room = s.room
		}
		if s.scrape != nil {
			all.scrape = s.scrape
		}
	}
	return all
}
