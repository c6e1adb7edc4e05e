package sealed

import (
	"hash/maphash"
	"net/netip"
	"time"
)

const (
	// maxForged is the number of forged records of one site that are examined in each second.
	maxForged = 500
	// buckets is the number of counters. Addresses with one hash share a counter.
	buckets = 4096
)

// counter returns the key under which forged records from an address are counted: that of its site,
// which is an address of IPv4 or a network of 64 bits. The address of the peer has a counter of its
// own, so that others behind the same router do not stop its records.
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

// throttle counts the forged records of addresses. It has one owner.
type throttle struct {
	seed   maphash.Seed
	ends   time.Duration // of the current second
	counts []uint16
	any    bool // some count is not 0 in this second
}

func (t *throttle) init() { t.seed, t.counts = maphash.MakeSeed(), make([]uint16, buckets) }

func (t *throttle) bucket(from netip.AddrPort) *uint16 {
	return &t.counts[maphash.Comparable(t.seed, from)%buckets]
}

// full reports whether records under a key are dropped unread now.
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
