package admission

import (
	"net"
	"sync"
	"time"
)

// Toll limits the rate of connections that are not players', such as those for pages. It uses the
// rates of handshakes, but counts separately: page requests do not keep players out. Any goroutine
// may use it.
type Toll struct {
	mu    sync.Mutex
	rates *rates
}

// NewToll returns a Toll that admits burst connections at once.
func NewToll(burst int) *Toll { return &Toll{rates: newRates(burst)} }

// Pay charges one connection to the site of an address. It reports false above the rate.
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
