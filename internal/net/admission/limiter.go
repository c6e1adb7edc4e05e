package admission

import (
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/net/endpoint"
)

// Limiter limits the rate of connections that are not players', such as those for pages. It uses
// the rates of handshakes, but counts separately: page requests do not keep players out. Any
// goroutine may use it.
type Limiter struct {
	mu    sync.Mutex
	rates *rates
}

// NewLimiter returns a Limiter that admits burst connections at once.
func NewLimiter(burst int) *Limiter { return &Limiter{rates: newRates(burst)} }

// Allow charges one connection to the site of an address. It reports false above the rate.
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
