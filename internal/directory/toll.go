package directory

import (
	"sync"
	"time"
)

// The price of rooms that clients let the game make, and of tickets that open nothing: a site (a
// household or a machine) may have RoomBurst of them at once, and then one more in each RoomGap.
const (
	RoomBurst = 32
	RoomGap   = time.Second
	MaxSites  = 4096 // that are remembered; those beyond wait until one of them may have all again
)

// Toll is what sites have used of what they may. Any goroutine may use it.
type Toll[S comparable] struct {
	mu   sync.Mutex
	paid map[S]time.Duration // until when what a site has used is not all given back
}

// Pay charges a site for one of them, and reports false if it has used up what it may.
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

// Refund gives a site back what it has paid last.
func (t *Toll[S]) Refund(site S) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, known := t.paid[site]; known {
		t.paid[site] = until - RoomGap
	}
}

// Owes reports whether a site has used up what it may.
func (t *Toll[S]) Owes(site S, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.paid[site], now)+RoomGap > now+RoomBurst*RoomGap
}

// forgetLocked forgets the sites that may have all again, and reports whether there were any.
func (t *Toll[S]) forgetLocked(now time.Duration) bool {
	had := len(t.paid)
	for site, until := range t.paid {
		if until <= now {
			delete(t.paid, site)
		}
	}
	return len(t.paid) < had
}
