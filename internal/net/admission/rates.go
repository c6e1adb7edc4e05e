package admission

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// rates are token buckets for the handshakes of proven addresses: one over all, and one for
// each site. They are as large as the server, because all who play may come back at once, from
// one household that is a load test or a school. It belongs to one goroutine at a time.
//
// A site is remembered for as long as its bucket is not full again, in two generations: whoever
// was not seen throughout one of them is forgotten. The bucket over all bounds how many there are.
type rates struct {
	burst       int
	period      time.Duration // of a generation: the longest that a bucket takes to be full
	all         *rate.Limiter
	now, before map[netip.Prefix]*rate.Limiter
	turn        time.Time // when the generation ends
}

func newRates(burst int) *rates {
	return &rates{
		burst:  burst,
		period: time.Duration(burst+maxHalfOpen) * time.Second / siteRate,
		all:    rate.NewLimiter(allRate, burst),
		now:    make(map[netip.Prefix]*rate.Limiter),
	}
}

// have tells whether a handshake of a site may be taken.
func (r *rates) have(site netip.Prefix, at time.Time) bool {
	l := r.find(site, at)
	return r.all.TokensAt(at) >= 1 && (l == nil || l.TokensAt(at) >= 1)
}

// take accounts for a handshake, whether the buckets have it or not.
func (r *rates) take(site netip.Prefix, at time.Time) {
	l := r.find(site, at)
	if l == nil {
		l = rate.NewLimiter(siteRate, r.burst)
		r.now[site] = l
	}
	l.ReserveN(at, 1)
	r.all.ReserveN(at, 1)
}

// find returns the bucket of a site, nil if it is full.
func (r *rates) find(site netip.Prefix, at time.Time) *rate.Limiter {
	if !at.Before(r.turn) {
		r.before, r.now = r.now, make(map[netip.Prefix]*rate.Limiter)
		if at.Sub(r.turn) >= r.period {
			r.before = nil // A whole generation has passed without anybody.
		}
		r.turn = at.Add(r.period)
	}
	l := r.now[site]
	if l == nil && r.before[site] != nil {
		l = r.before[site]
		r.now[site] = l
		delete(r.before, site)
	}
	return l
}
