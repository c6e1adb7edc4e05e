package admission

import (
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/net/endpoint"
)

// Limiter limits the rate of connections that are not from players, such as requests for pages. It
// uses the rates of handshakes, but counts separately, so that page requests do not keep out
// players. Any goroutine may use it.
type Limiter struct {
	mu    sync.Mutex
	rates *rates
}

// NewLimiter returns a Limiter that admits burst connections at once.
func NewLimiter(burst int) *Limiter { return &Limiter{rates: newRates(burst)} }

// Allow counts one connection of the site of an address. It reports false above the rate.
func (l *Limiter) Allow(from net.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	site, at := endpoint.SiteOf(from), time.Now()
	if !l.rates.have(site, at) {
		return false
	}
	l.rates.take(site, at)
	return true
}
