package directory

import (
	"sync"
	"time"
)

// The limit on rooms that clients make the game open, and on tickets that are invalid: a site (a
// household or a machine) may use RoomBurst of them at once, and then one more in each RoomGap.
const (
	RoomBurst = 32
	RoomGap   = time.Second
	// limit of stored sites; a further site waits until a stored one has its full burst again
	MaxSites = 4096
)

// Toll stores how much of the limit sites have used. Any goroutine may use it.
type Toll[S comparable] struct {
	mu   sync.Mutex
	paid map[S]time.Duration // time at which the site has its full burst again
}

// Pay charges a site for one of them, and reports false if the site has reached the limit.
func (t *Toll[S]) Pay(site S, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := max(t.paid[site], now) + RoomGap
	if until > now+RoomBurst*RoomGap {
		return false
	}
	if _, known := t.paid[site]; !known && len(t.paid) >= MaxSites && !t.forgetLocked(now) {
		return false
	}
	if t.paid == nil {
		t.paid = map[S]time.Duration{}
	}
	t.paid[site] = until
	return true
}

// Refund takes back the last charge of a site.
func (t *Toll[S]) Refund(site S) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, known := t.paid[site]; known {
		t.paid[site] = until - RoomGap
	}
}

// Owes reports whether a site has reached the limit.
func (t *Toll[S]) Owes(site S, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.paid[site], now)+RoomGap > now+RoomBurst*RoomGap
}

// forgetLocked removes the sites with a full burst, and reports whether there were any.
func (t *Toll[S]) forgetLocked(now time.Duration) bool {
	had := len(t.paid)
	for site, until := range t.paid {
		if until <= now {
			delete(t.paid, site)
		}
	}
	return len(t.paid) < had
}
