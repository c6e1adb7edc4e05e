package admission

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
)

// unadmitted is the table of the unadmitted connections, which have an entry from their first
// packet until they are admitted, refused or closed. They take no seats of players. Admitted
// connections have no limit per site.
//
//	half open, address unproven   at most maxHalfOpen; further peers prove their address
//	  │                           first, with a Retry, which is cheap for the server
//	  ▼
//	known: half open with a       at most max, of a site at most maxPerSite, as fast as rates
//	proven address, connected,    allow; others are refused before their cryptographic handshake
//	or in Handler.Admit
//
// An unproven address may be forged. So an entry without proof does not count against its site: it
// only makes other connections from the site prove their address. Any goroutine may use it.
type unadmitted struct {
	max     int
	stats   *transport.Stats
	now     func() time.Time
	dismiss func(Incoming) // closes a connection to free its entry

	mu        sync.Mutex
	rates     *rates
	retries   *rate.Limiter
	known     []*entry // oldest first
	sites     map[netip.Prefix]int
	dismissed int // entries of known in the stage dismissed: their admission still runs
	halfOpen  int // number with unproven addresses
	unproven  map[netip.Prefix]int
}

// entry is one unadmitted connection. unadmitted.mu guards it.
type entry struct {
	site  netip.Prefix
	stage stage
	since time.Time // when it was added to known
	conn  Incoming
}

// stage is the progress of an unadmitted connection.
type stage uint8

const (
	unproven  stage = iota // half-open handshake, the address may be forged
	proven                 // half-open handshake
	connected              // sends its hello, or waits for Handler.Admit
	dismissed              // was told to close; Handler.Admit may not have returned yet
	removed                // no longer has an entry
)

func newUnadmitted(most, burst int, stats *transport.Stats) *unadmitted {
	return &unadmitted{
		max: most, stats: stats, now: time.Now, rates: newRates(burst), retries: rate.NewLimiter(retryRate, retryBurst),
		sites: make(map[netip.Prefix]int), unproven: make(map[netip.Prefix]int),
	}
}

// mustProveAddress reports whether a peer must prove its address before it gets an entry: if all
// peers must or mustProveLocked says so, and retryRate allows another Retry. The Retry is sent to
// the owner of the address.
func (s *unadmitted) mustProveAddress(addr net.Addr, all bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !all && !s.mustProveLocked(endpoint.SiteOf(addr)) || !s.retries.AllowN(s.now(), 1) {
		return false
	}
	s.stats.Retries.Add(1)
	return true
}

// mustProveLocked reports whether a peer from a site must prove its address. It must if a limit is
// reached: a peer with a proven address can then be refused before the server does any other work.
func (s *unadmitted) mustProveLocked(site netip.Prefix) bool {
	return s.halfOpen >= maxHalfOpen || s.sites[site]+s.unproven[site] >= maxPerSite ||
		len(s.known)-s.dismissed+s.halfOpen >= s.max || !s.rates.have(site, s.now())
}

// refuses reports whether another connection from the site of an address would be refused.
func (s *unadmitted) refuses(addr net.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	site := endpoint.SiteOf(addr)
	return s.sites[site] >= maxPerSite || !s.rates.have(site, s.now())
}

// reserve returns an entry for a new connection, or nil.
func (s *unadmitted) reserve(addr net.Addr, proven bool) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &entry{site: endpoint.SiteOf(addr)}
	if !proven {
		if s.mustProveLocked(a.site) {
			s.stats.Drop(transport.DropUnproven, 1)
			return nil
		}
		s.halfOpen++
		s.unproven[a.site]++
		s.stats.Unadmitted.Add(1)
		return a
	}
	if !s.rates.have(a.site, s.now()) {
		s.stats.Drop(transport.DropHandshakeRate, 1)
		return nil
	}
	if !s.addLocked(a) {
		return nil
	}
	s.rates.take(a.site, a.since)
	return a
}

// complete records that the handshake of a connection is complete, which proves its address. It
// reports false if the connection no longer has an entry.
func (s *unadmitted) complete(a *entry, in Incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stage == unproven {
		s.removeLocked(a)
		s.rates.take(a.site, s.now())
		s.addLocked(a)
	}
	if a.stage != proven {
		return false // No entry is free, or the connection has ended.
	}
	a.stage, a.conn = connected, in
	return true
}

// isDismissed reports whether a connection was told to close to free its entry.
func (s *unadmitted) isDismissed(a *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.stage == dismissed
}

// remove removes a connection that was admitted, was refused or has ended. Later calls have no
// effect.
func (s *unadmitted) remove(a *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(a)
}

// release removes a connection that ended during its handshake. A connection beyond its handshake
// keeps its entry until Handler.Admit returns: so a peer whose admissions hang cannot have more
// admissions than entries.
func (s *unadmitted) release(a *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stage <= proven {
		s.removeLocked(a)
	}
}

func (s *unadmitted) removeLocked(a *entry) {
	switch a.stage {
	case removed:
		return
	case unproven:
		s.halfOpen--
		drop(s.unproven, a.site)
	default:
		s.known = slices.DeleteFunc(s.known, func(o *entry) bool { return o == a })
		drop(s.sites, a.site)
		if a.stage == dismissed {
			s.dismissed--
		}
	}
	a.stage = removed
	s.stats.Unadmitted.Add(-1)
}

func drop(sites map[netip.Prefix]int, site netip.Prefix) {
	if sites[site]--; sites[site] == 0 {
		delete(sites, site)
	}
}

// addLocked gives a connection with a proven address an entry, and may close another connection for
// it. It reports false if the connection is refused.
func (s *unadmitted) addLocked(a *entry) bool {
	a.since = s.now()
	switch {
	case s.sites[a.site] >= maxPerSite:
		s.stats.Drop(transport.DropHandshakeSite, 1)
		return false
	case len(s.known)-s.dismissed >= s.max && !s.dismissLocked(a):
		s.stats.Drop(transport.DropHandshakes, 1)
		return false
	}
	a.stage = proven
	s.stats.Unadmitted.Add(1)
	s.known = append(s.known, a)
	s.sites[a.site]++
	return true
}

// dismissLocked closes the oldest connection of the site with the most unadmitted connections,
// including the new connection, to free its entry. It reports false if it closes no connection. If
// that site has more connections than the site of the new connection, it closes the oldest
// connection at once, so that a site with many connections cannot keep out a site with few.
// Otherwise the oldest connection must have had its entry for dismissAfter, so that during a rush
// connections finish one after another and do not evict each other.
func (s *unadmitted) dismissLocked(newcomer *entry) bool {
	if s.dismissed >= s.max {
		return false // Their admissions hang.
	}
	var oldest *entry
	most := 0
	for _, a := range s.known {
		n := s.sites[a.site]
		if a.site == newcomer.site {
			n++
		}
		if n > most && a.stage == connected {
			oldest, most = a, n
		}
	}
	if oldest == nil || most <= s.sites[newcomer.site]+1 && newcomer.since.Sub(oldest.since) < dismissAfter {
		return false
	}
	oldest.stage = dismissed
	s.dismissed++
	s.stats.Drop(transport.DropDismissed, 1)
	s.dismiss(oldest.conn)
	return true
}

// count returns the number of half-open unproven connections, and of connected connections.
func (s *unadmitted) count() (halfOpen, met int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.known {
		if a.stage == connected {
			met++
		}
	}
	return s.halfOpen, met
}
