package memnet

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// The server closes the connection of a client that was told to move and sends no hello in time.
func TestAMovedClientHasToSayHello(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.joined[0].Move("a ticket")
	w.run(HandshakeTimeout - ms)
	if gone := closed(t, p.arrivals()); gone != nil {
		t.Errorf("before the limit the client is closed: %v", gone.Closed)
	}
	w.run(ms)
	w.run(time.Second)
	if gone := closed(t, p.arrivals()); gone == nil || gone.Closed.Code != transport.CodeTimeout {
		t.Errorf("after the limit: %v", gone)
	}
}
