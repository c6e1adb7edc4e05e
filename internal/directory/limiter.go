package directory

import (
	"sync"
	"time"
)

// The limit on rooms that clients make the game open, and on tickets that are invalid: a site (a
// household or a machine) may open or show RoomBurst of them at once, and then one more in each
// RoomInterval.
const (
	RoomBurst    = 32
	RoomInterval = time.Second
	// limit of stored sites; a further site waits until a stored one has its full burst again
	MaxSites = 4096
)

// SiteLimiter stores the part of the limit that sites have used. Any goroutine may use it.
type SiteLimiter[S comparable] struct {
	mu     sync.Mutex
	fullAt map[S]time.Duration // time at which the site has its full burst again
}

// Allow counts one opened room or one invalid ticket of a site. If the site has reached the limit,
// it counts nothing and reports false.
func (l *SiteLimiter[S]) Allow(site S, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := max(l.fullAt[site], now) + RoomInterval
	if until > now+RoomBurst*RoomInterval {
		return false
	}
	if _, known := l.fullAt[site]; !known && len(l.fullAt) >= MaxSites && !l.forgetLocked(now) {
		return false
	}
	if l.fullAt == nil {
		l.fullAt = map[S]time.Duration{}
	}
	l.fullAt[site] = until
	return true
}

// Refund takes back the last count of a site.
func (l *SiteLimiter[S]) Refund(site S) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, known := l.fullAt[site]; known {
		l.fullAt[site] = until - RoomInterval
	}
}

// Exhausted reports whether a site has reached the limit.
func (l *SiteLimiter[S]) Exhausted(site S, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.fullAt[site], now)+RoomInterval > now+RoomBurst*RoomInterval
}

// forgetLocked removes the sites with a full burst, and reports whether there were any.
func (l *SiteLimiter[S]) forgetLocked(now time.Duration) bool {
	had := len(l.fullAt)
	for site, until := range l.fullAt {
		if until <= now {
			delete(l.fullAt, site)
		}
	}
	return len(l.fullAt) < had
}
