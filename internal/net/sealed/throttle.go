package sealed

import (
	"hash/maphash"
	"net/netip"
	"time"
)

const (
	// maxForged is the number of forged records from one site that are examined each second.
	maxForged = 500
	// buckets is the number of counters. Addresses with the same hash share a counter.
	buckets = 4096
)

// counter returns the key under which forged records from an address are counted. The key is the
// address's site: the IPv4 address, or the IPv6 network of 64 bits. The current address of the
// channel's peer is its own key, so that forged records from others behind the same router do not
// stop the peer's records.
func (c *Channel) counter(from netip.AddrPort) netip.AddrPort {
	if same(c.peer.Load(), from) {
		return from
	}
	site := from.Addr().Unmap().WithZone("")
	if site.Is6() {
		network, _ := site.Prefix(64)
		site = network.Addr()
	}
	return netip.AddrPortFrom(site, 0)
}

// throttle counts the forged records of addresses. Only the goroutine that reads the socket uses
// it.
type throttle struct {
	seed   maphash.Seed
	ends   time.Duration // end of the current second
	counts []uint16
	any    bool // a count of the current second is not 0
}

func (t *throttle) init() { t.seed, t.counts = maphash.MakeSeed(), make([]uint16, buckets) }

func (t *throttle) bucket(from netip.AddrPort) *uint16 {
	return &t.counts[maphash.Comparable(t.seed, from)%buckets]
}

// full reports whether records under this key are dropped without a check now.
func (t *throttle) full(from netip.AddrPort, now time.Duration) bool {
	if t.any && now >= t.ends {
		clear(t.counts)
		t.any = false
	}
	return t.any && *t.bucket(from) >= maxForged
}

// add counts a forged record.
func (t *throttle) add(from netip.AddrPort, now time.Duration) {
	if !t.any {
		t.any, t.ends = true, now+time.Second
	}
	*t.bucket(from)++
}
