package netlooptest_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A client that vanishes after any byte of its handshake holds no seat in the end.
func TestAClientVanishesAtEachByteOfTheHandshake(t *testing.T) {
	for n := 0; n < 400; n += 23 {
		w := netlooptest.New(t, game{}, netlooptest.Configure(func(c *netloop.Config) { c.Room.KeepDropped = -1 }))
		c := w.Join("", nil, netlooptest.Link{Delay: 10 * time.Millisecond})
		vanished := false
		w.DropAfter(c, n, func() { vanished = true })
		w.Advance(20 * time.Second)
		w.Tick(func(tick *netloop.Tick) {
			for c := range tick.Clients() {
				if vanished {
					t.Errorf("client %d vanished after %d bytes and has a seat", c.ID(), n)
				}
			}
		})
		if playing := c.State().Phase == client.Playing; playing == vanished {
			t.Errorf("after %d bytes the client plays: %v, and has vanished: %v", n, playing, vanished)
		}
	}
}

// The tap has all that the server sends; the address is that of the game's Join.
func TestATapAndAnAddress(t *testing.T) {
	addr := ""
	w := netlooptest.New(t, game{})
	c := w.Join("", nil, netlooptest.Link{})
	w.Rebind(c, "10.0.0.1:7")
	datagrams, stream := 0, 0
	w.Tap(c, func(b []byte, datagram bool) {
		if datagram {
			datagrams++
		} else {
			stream += len(b)
		}
	})
	w.Step(60)
	w.Tick(func(tick *netloop.Tick) {
		for c := range tick.Clients() {
			addr = c.Join().Addr
		}
	})
	if datagrams < 30 || stream < 10 || addr != "10.0.0.1:7" {
		t.Errorf("%d datagrams, %d bytes of the stream, address %q", datagrams, stream, addr)
	}
}
