package admission

import (
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/limits"
)

// TollRates describes the rates of a Toll with the given burst.
func TollRates(burst int) limits.Text {
	return limits.Say("%v, and %v; at once %v", siteRate, allRate, burst)
}

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
