package metrics

import (
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// source is the origin of a family's values. The code that handles an event counts it there, in
// plain numbers if one goroutine counts and in atomics if several do. The source reads these
// numbers when its function is called. Rare events, and events with labels that are unknown
// before, are counted in the family itself.
type source struct {
	into   func(*Metrics, *Family) // at its creation: hands the family to its counters
	room   func(Room, Part)        // at Report, on the room's goroutine: plain numbers
	scrape func(*Metrics, *Family) // at a scrape: atomics, and values guarded by a lock
}

// Room returns a room's plain numbers, which only the room's goroutine may read. A method with a
// [Part] sets the values of all label sets of that family.
type Room interface {
	State() *netvar.Stats
	Clients() int
	Dropped() int
	Transports(Part)
	DelayBuffer() int
	Depths(Part)
	Drops(Part)
	Messages(Part)
	MessagesWaited(Part)
	Inputs(Part)
	Mispredictions(Part)
	Views(Part)
	Limits(Part)
	Bytes(Part)
	FieldBytes(Part)
}

// Server returns the numbers of a server and its rooms that any goroutine may read.
type Server interface {
	Traffic() *transport.Stats
	SocketCalls(*Family)
	SocketPackets(*Family)
	SocketRetries(*Family)
	Records(*Family)
	RecordPaths(*Family)
	RecordClients(*Family)
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
	ClusterConnected(*Family)
	ClusterServers(*Family)
	ClusterRooms(*Family)
	Tokens(*Family)
	TokenIDs(*Family)
	KeyReloads(*Family)
}

// The kinds of sources in the table.

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

func account(fn func(*ticks.Snapshot, *Family)) source {
	return scraped(func(m *Metrics, f *Family) {
		m.mu.Lock()
		defer m.mu.Unlock()
		fn(&m.account, f)
	})
}

// joined combines several sources of different kinds, each with other label sets.
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
