package sealed

import (
	"hash/maphash"
	"net/netip"
	"time"
)

const (
	// maxForged is the number of forged records of one address that are examined in each second.
	maxForged = 500
	// buckets is the number of counters. Addresses with one hash share a counter.
	buckets = 4096
)

// throttle counts the forged records of addresses. It has one owner.
type throttle struct {
	seed   maphash.Seed
	ends   time.Duration // of the current second
	counts []uint16
	any    bool // some count is not 0 in this second
}

func (t *throttle) init() { t.seed, t.counts = maphash.MakeSeed(), make([]uint16, buckets) }

func (t *throttle) bucket(from netip.AddrPort) *uint16 {
	return &t.counts[maphash.Comparable(t.seed, from.Addr())%buckets]
}

// full reports whether the records of an address are dropped unread now.
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
