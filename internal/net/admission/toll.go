package admission

import (
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/limits"
)

// TollRates are the rates of a toll that lets in so many at once, in words.
func TollRates(burst int) limits.Text {
	return limits.Say("%v, and %v; at once %v", siteRate, allRate, burst)
}

// Toll lets in connections that are no players', such as those for pages, at the rates of
// handshakes, which it counts by itself: pages keep no player out. Any goroutine may use it.
type Toll struct {
	mu    sync.Mutex
	rates *rates
}

// NewToll makes a toll that lets in so many at once.
func NewToll(burst int) *Toll { return &Toll{rates: newRates(burst)} }

// Pay charges the site of an address for one connection, or reports false if it came too fast.
func (t *Toll) Pay(from net.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	site, at := siteOf(from), time.Now()
	if !t.rates.have(site, at) {
		return false
	}
	t.rates.take(site, at)
	return true
}
