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

// strangers are the unadmitted connections: from their first packet until they are admitted,
// refused or closed. They do not take up places of players.
//
//	half open, address unproven   at most maxHalfOpen; further peers prove their address
//	  │                           first, with a Retry, which is cheap for the server
//	  ▼
//	known: half open with a       at most max, of a site at most maxPerSite, as fast as rates
//	proven address, connected,    allow; others are refused before their cryptographic handshake
//	or in Handler.Admit
//
// An unproven address may be forged. So a place taken without proof does not count against its
// site: it only makes other connections from the site prove their address. Any goroutine may use
// it.
type strangers struct {
	max     int
	stats   *transport.Stats
	now     func() time.Time
	dismiss func(Visitor) // closes a connection to free its place

	mu       sync.Mutex
	rates    *rates
	retries  *rate.Limiter
	known    []*stranger // oldest first
	sites    map[netip.Prefix]int
	told     int // number of dismissed ones in known with an admission that still runs
	halfOpen int // number with unproven addresses
	unproven map[netip.Prefix]int
}

// stranger is one unadmitted connection. strangers.mu guards it.
type stranger struct {
	site  netip.Prefix
	stage stage
	since time.Time // time of entry in known
	who   Visitor
}

// stage is the progress of an unadmitted connection.
type stage uint8

const (
	unproven  stage = iota // half-open handshake, the address may be forged
	proven                 // half-open handshake
	connected              // sends its hello, or waits for Handler.Admit
	dismissed              // was told to close; Handler.Admit may not have returned yet
	left                   // has no place any more
)

func newStrangers(most, burst int, stats *transport.Stats) *strangers {
	return &strangers{
		max: most, stats: stats, now: time.Now, rates: newRates(burst), retries: rate.NewLimiter(retryRate, retryBurst),
		sites: make(map[netip.Prefix]int), unproven: make(map[netip.Prefix]int),
	}
}

// askForProof reports whether a peer must prove its address before it gets a place: if all peers
// must or mustProveLocked says so, and retryRate allows another Retry. The Retry is sent to the
// owner of the address.
func (s *strangers) askForProof(addr net.Addr, all bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !all && !s.mustProveLocked(endpoint.SiteOf(addr)) || !s.retries.AllowN(s.now(), 1) {
		return false
	}
	s.stats.Retries.Add(1)
	return true
}

// mustProveLocked reports whether a peer from a site must prove its address. It must if it might be
// refused: a proven peer can then be refused before any work is done.
func (s *strangers) mustProveLocked(site netip.Prefix) bool {
	return s.halfOpen >= maxHalfOpen || s.sites[site]+s.unproven[site] >= maxPerSite ||
		len(s.known)-s.told+s.halfOpen >= s.max || !s.rates.have(site, s.now())
}

// crowded reports whether another connection from the site of an address would be refused.
func (s *strangers) crowded(addr net.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	site := endpoint.SiteOf(addr)
	return s.sites[site] >= maxPerSite || !s.rates.have(site, s.now())
}

// begin returns a place for a new connection, or nil.
func (s *strangers) begin(addr net.Addr, proven bool) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &stranger{site: endpoint.SiteOf(addr)}
	if !proven {
		if s.mustProveLocked(st.site) {
			s.stats.Drop(transport.DropUnproven, 1)
			return nil
		}
		s.halfOpen++
		s.unproven[st.site]++
		s.stats.Strangers.Add(1)
		return st
	}
	if !s.rates.have(st.site, s.now()) {
		s.stats.Drop(transport.DropHandshakeRate, 1)
		return nil
	}
	if !s.enterLocked(st) {
		return nil
	}
	s.rates.take(st.site, st.since)
	return st
}

// met records that the handshake of a connection is complete, which proves its address. It reports
// false if the connection has no place any more.
func (s *strangers) met(st *stranger, who Visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.stage == unproven {
		s.leaveLocked(st)
		s.rates.take(st.site, s.now())
		s.enterLocked(st)
	}
	if st.stage != proven {
		return false // No place is free, or the connection has ended.
	}
	st.stage, st.who = connected, who
	return true
}

// dismisses reports whether a connection was told to close to free its place.
func (s *strangers) dismisses(st *stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.stage == dismissed
}

// leave removes a connection that was admitted, was refused or has ended. Later calls have no
// effect.
func (s *strangers) leave(st *stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(st)
}

// abandon removes a connection that ended during its handshake. A connection beyond its handshake
// keeps its place until Handler.Admit returns: a peer that makes admissions hang cannot have more
// of them than places.
func (s *strangers) abandon(st *stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.stage <= proven {
		s.leaveLocked(st)
	}
}

func (s *strangers) leaveLocked(st *stranger) {
	switch st.stage {
	case left:
		return
	case unproven:
		s.halfOpen--
		drop(s.unproven, st.site)
	default:
		s.known = slices.DeleteFunc(s.known, func(o *stranger) bool { return o == st })
		drop(s.sites, st.site)
		if st.stage == dismissed {
			s.told--
		}
	}
	st.stage = left
	s.stats.Strangers.Add(-1)
}

func drop(sites map[netip.Prefix]int, site netip.Prefix) {
	if sites[site]--; sites[site] == 0 {
		delete(sites, site)
	}
}

// enterLocked gives a connection with a proven address a place, and frees one if it must.
func (s *strangers) enterLocked(st *stranger) bool {
	st.since = s.now()
	switch {
	case s.sites[st.site] >= maxPerSite:
		s.stats.Drop(transport.DropHandshakeSite, 1)
		return false
	case len(s.known)-s.told >= s.max && !s.dismissLocked(st):
		s.stats.Drop(transport.DropHandshakes, 1)
		return false
	}
	st.stage = proven
	s.stats.Strangers.Add(1)
	s.known = append(s.known, st)
	s.sites[st.site]++
	return true
}

// dismissLocked closes the oldest connection of the site with the most unadmitted connections,
// counting the new one, to free its place. It reports false if none has to close. If that site has
// more than the site of the new connection, it happens at once: a site with many connections cannot
// keep out a site with few. Between sites with equally many, the oldest must have had its place for
// dismissAfter: in a rush, connections finish one after another instead of evicting each other.
func (s *strangers) dismissLocked(newcomer *stranger) bool {
	if s.told >= s.max {
		return false // Their admissions hang.
	}
	var oldest *stranger
	most := 0
	for _, st := range s.known {
		n := s.sites[st.site]
		if st.site == newcomer.site {
			n++
		}
		if n > most && st.stage == connected {
			oldest, most = st, n
		}
	}
	if oldest == nil || most <= s.sites[newcomer.site]+1 && newcomer.since.Sub(oldest.since) < dismissAfter {
		return false
	}
	oldest.stage = dismissed
	s.told++
	s.stats.Drop(transport.DropDismissed, 1)
	s.dismiss(oldest.who)
	return true
}

// count returns the number of half-open unproven connections, and of connected ones.
func (s *strangers) count() (halfOpen, met int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.known {
		if st.stage == connected {
			met++
		}
	}
	return s.halfOpen, met
}
