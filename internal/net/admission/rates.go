package admission

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// rates are token buckets for the handshakes of proven addresses: one for all sites together, and
// one for each site. A bucket holds as many tokens as the server has seats, because all players
// may reconnect at once, and a load test or a school is one site. It belongs to one goroutine at a
// time.
//
// A site's bucket is kept until it is full again. There are two generations of buckets: the bucket
// of a site without handshakes during a whole generation is dropped. The rate of all sites together
// bounds the number of buckets.
type rates struct {
	burst       int
	period      time.Duration // length of a generation: the longest time to refill a bucket
	all         *rate.Limiter
	now, before map[netip.Prefix]*rate.Limiter
	turn        time.Time // end of the generation
}

func newRates(burst int) *rates {
	return &rates{
		burst:  burst,
		period: time.Duration(burst+maxHalfOpen) * time.Second / siteRate,
		all:    rate.NewLimiter(allRate, burst),
		now:    make(map[netip.Prefix]*rate.Limiter),
	}
}

// have reports whether a handshake of a site is within the rates.
func (r *rates) have(site netip.Prefix, at time.Time) bool {
	l := r.find(site, at)
	return r.all.TokensAt(at) >= 1 && (l == nil || l.TokensAt(at) >= 1)
}

// take counts a handshake, even if the buckets are empty.
func (r *rates) take(site netip.Prefix, at time.Time) {
	l := r.find(site, at)
	if l == nil {
		l = rate.NewLimiter(siteRate, r.burst)
		r.now[site] = l
	}
	l.ReserveN(at, 1)
	r.all.ReserveN(at, 1)
}

// find returns the bucket of a site, or nil if the bucket is full.
func (r *rates) find(site netip.Prefix, at time.Time) *rate.Limiter {
	if !at.Before(r.turn) {
		r.before, r.now = r.now, make(map[netip.Prefix]*rate.Limiter)
		if at.Sub(r.turn) >= r.period {
			r.before = nil // A whole generation without handshakes has passed.
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
