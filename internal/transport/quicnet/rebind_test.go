package quicnet

import (
	"net"
	"testing"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/transport"
)

// TestClientsSurviveRebinding has clients whose addresses change six times: all of them go on,
// over the same connections, in both directions. Either the clients' sockets change, or the
// server's end emulates that.
func TestClientsSurviveRebinding(t *testing.T) {
	const clients, rebinds = 4, 6
	routers := []*netem.Conn{} // that are to rebind
	h := serve(t, func(cfg *ServerConfig) {
		cfg.Through = func(socket net.PacketConn) net.PacketConn {
			routers = append(routers, netem.Listen(socket, netem.Config{}))
			return routers[0]
		}
	})
	var guests []*guest
	for range clients {
		router, err := netem.Dial(netem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDialerOn(router)
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		guests, routers = append(guests, mustDial(t, h, d)), append(routers, router)
	}
	for turn := uint32(1); turn <= 2*rebinds; turn++ {
		for _, g := range guests {
			exchange(t, h, g, turn)
		}
		if turn <= rebinds {
			routers[0].Rebind()
			continue
		}
		for _, router := range routers[1:] {
			before := router.LocalAddr().String()
			if router.Rebind(); router.LocalAddr().String() == before {
				t.Error("a client keeps its address", before)
			}
		}
	}
	for _, g := range guests {
		exchange(t, h, g, 2*rebinds+1)
	}
}

// exchange sends a reliable message each way and waits for both.
func exchange(t *testing.T, h *host, g *guest, method uint32) {
	t.Helper()
	arrived := func(s *transport.Session) func(*transport.Arrival) bool {
		return func(a *transport.Arrival) bool {
			if a.Kind == transport.Gone && a.Session == s {
				t.Fatalf("client %d was lost at rebinding %d: %v", g.ID(), method-1, a.Closed)
			}
			return a.Session == s && a.Kind == transport.MessageArrived && a.Message.Method == method
		}
	}
	s := h.session(g)
	for _, from := range []*transport.Session{g.Session, s} {
		from.Send(transport.Message{Method: method, Reliable: true})
		from.Flush(0)
	}
	h.find(t, "the client's message", arrived(s))
	g.find(t, "the server's message", arrived(g.Session))
}
