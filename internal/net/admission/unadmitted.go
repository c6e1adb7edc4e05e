package admission

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/transport"
)

// strangers are the connections that have not been let in, from their first packet until they
// are admitted, refused or gone. They have places of their own beside those of the players.
//
//	half open, address unproven   at most maxHalfOpen; whoever comes then proves its address
//	  │                           first, with a Retry, which costs the server little
//	  ▼
//	known: half open with a       at most max, of a site at most maxPerSite, as fast as rates
//	proven address, connected,    allow; the rest is refused before its cryptographic handshake
//	being asked about
//
// An address may be forged until it is proven, so a place that is taken without proof counts
// against nobody: it only makes others from there prove theirs. Any goroutine may use it.
type strangers struct {
	max     int
	stats   *transport.Stats
	now     func() time.Time
	dismiss func(Visitor) // tells a stranger why it has to go

	mu       sync.Mutex
	rates    *rates
	retries  *rate.Limiter
	known    []*stranger // the oldest first
	sites    map[netip.Prefix]int
	told     int // of known: dismissed, and their admission has not returned yet
	halfOpen int // of unproven addresses
	unproven map[netip.Prefix]int
}

// stranger is one of them. It belongs to the mutex.
type stranger struct {
	site  netip.Prefix
	stage stage
	since time.Time // when it was known
	who   Visitor
}

// stage says how far a stranger has come.
type stage uint8

const (
	unproven  stage = iota // its handshake is half open, its address may be forged
	proven                 // its handshake is half open
	connected              // it says hello, or is being asked about
	dismissed              // it has been told to go; its admission may not have returned yet
	left                   // it has no place any more
)

func newStrangers(most, burst int, stats *transport.Stats) *strangers {
	return &strangers{
		max: most, stats: stats, now: time.Now, rates: newRates(burst), retries: rate.NewLimiter(retryRate, retryBurst),
		sites: make(map[netip.Prefix]int), unproven: make(map[netip.Prefix]int),
	}
}

// siteOf returns the site of a connection's peer.
func siteOf(addr net.Addr) netip.Prefix {
	switch a := addr.(type) {
	case *net.UDPAddr:
		return transport.Site(a.AddrPort().Addr())
	case *net.TCPAddr:
		return transport.Site(a.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// askForProof tells whether a peer shall prove its address before it gets a place: if all have to,
// or it must, and the rate of such questions allows one more. They go to whoever the address
// belongs to.
func (s *strangers) askForProof(addr net.Addr, all bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !all && !s.mustProveLocked(siteOf(addr)) || !s.retries.AllowN(s.now(), 1) {
		return false
	}
	s.stats.Retries.Add(1)
	return true
}

// mustProveLocked tells whether who comes from a site has to prove it. Whoever might be refused
// has to: what has proven its address is refused before it has cost anything.
func (s *strangers) mustProveLocked(site netip.Prefix) bool {
	return s.halfOpen >= maxHalfOpen || s.sites[site]+s.unproven[site] >= maxPerSite ||
		len(s.known)-s.told+s.halfOpen >= s.max || !s.rates.have(site, s.now())
}

// crowded tells whether so many have come, from a site or from all of them, that one more from
// there is refused.
func (s *strangers) crowded(addr net.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	site := siteOf(addr)
	return s.sites[site] >= maxPerSite || !s.rates.have(site, s.now())
}

// begin gives a connection that begins a place, or nil.
func (s *strangers) begin(addr net.Addr, proven bool) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &stranger{site: siteOf(addr)}
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

// met notes that the handshake of a connection is complete, which proves its address. It
// reports false if there is no place for it any more.
func (s *strangers) met(st *stranger, who Visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.stage == unproven {
		s.leaveLocked(st)
		s.rates.take(st.site, s.now())
		s.enterLocked(st)
	}
	if st.stage != proven {
		return false // There is no place, or it has ended meanwhile.
	}
	st.stage, st.who = connected, who
	return true
}

// dismisses tells whether a stranger has been told to go.
func (s *strangers) dismisses(st *stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.stage == dismissed
}

// leave takes a stranger out: it is a player now, or gone. Only the first time counts.
func (s *strangers) leave(st *stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(st)
}

// abandon takes out a stranger whose connection has ended, if its handshake was still half
// open. Otherwise it keeps its place until its admission returns, and whoever makes admissions
// hang has no more of them than places.
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

// enterLocked gives a stranger with a proven address its place, if need be another's.
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

// dismissLocked makes a stranger go for a newcomer, and reports false if none has to. The site
// with the most of them, the newcomer's with it, gives up its oldest. If that is more than the
// newcomer's has, it does so at once: who has many keeps nobody out who has few. Among equals
// one has to have been here for a while: a crowd goes in one after another, instead of everybody
// making everybody go.
func (s *strangers) dismissLocked(newcomer *stranger) bool {
	if s.told >= s.max {
		return false // Their admissions hang, whatever they were told.
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

// count returns how many are half open and unproven, and how many are connected.
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
