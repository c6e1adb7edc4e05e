package admission

import (
	"net"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// Connections of all transports share a site.
func TestTransportsShareASite(t *testing.T) {
	d, ip := New(Config{}), net.IPv4(10, 0, 0, 1)
	for n := range maxPerSite {
		var at net.Addr = &net.UDPAddr{IP: ip, Port: n}
		if n%2 == 0 {
			at = &net.TCPAddr{IP: ip, Port: n}
		}
		if d.Reserve(at, true) == nil {
			t.Fatal("no entry for", at)
		}
	}
	if d.Reserve(&net.TCPAddr{IP: ip}, true) != nil || d.Reserve(&net.UDPAddr{IP: ip}, true) != nil {
		t.Error("over another transport a site has more entries")
	}
	if n := d.cfg.Stats.Dropped(transport.DropHandshakeSite); n != 2 {
		t.Error(n, "are counted")
	}
}

// A Limiter admits its burst from one site at once, and then the rate of handshakes; players are
// charged elsewhere.
func TestALimiterChargesPagesAlone(t *testing.T) {
	const burst = 20
	l, at := NewLimiter(burst), &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	paid := 0
	for range 3 * burst {
		if l.Allow(at) {
			paid++
		}
	}
	if paid < burst || paid == 3*burst {
		t.Errorf("%d of %d are admitted", paid, 3*burst)
	}
	if NewLimiter(burst).Allow(at) == false || New(Config{}).Reserve(at, true) == nil {
		t.Error("others are charged too")
	}
}
