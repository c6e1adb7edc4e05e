package quicnet

import (
	"net"
	"net/netip"
	"testing"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// TestClientsSurviveRebinding changes the addresses of clients six times: all of them continue,
// over the same connections, in both directions. Either the clients' sockets change, or the
// server's end emulates that.
func TestClientsSurviveRebinding(t *testing.T) {
	for family, listen := range map[string]string{"IPv4": "127.0.0.1:0", "IPv6": "[::1]:0"} {
		t.Run(family, func(t *testing.T) { testRebinding(t, listen) })
	}
}

func testRebinding(t *testing.T, listen string) {
	const clients, rebinds = 2, 6
	needLoopback(t, listen)
	routers := []*netem.Conn{} // that are to rebind
	h := serve(t, func(cfg *ServerConfig) {
		cfg.Listen = listen
		cfg.Through = func(socket net.PacketConn) net.PacketConn {
			routers = append(routers, netem.Listen(socket, netem.Config{}))
			return routers[0]
		}
	})
	var conns []*testClient
	for range conns {
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
		conns, routers = append(conns, mustDial(t, h, d)), append(routers, router)
	}
	for turn := uint32(1); turn <= 2*rebinds; turn++ {
		for _, g := range conns {
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
	for _, g := range conns {
		exchange(t, h, g, 2*rebinds+1)
	}
}

// needLoopback skips a test on a machine without the address.
func needLoopback(t *testing.T, listen string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", listen)
	if err != nil {
		t.Skip("this machine has no such loopback address: ", err)
	}
	_ = socket.Close()
}

// The owner of a session gets the client's new address whenever it changes.
func TestOwnerIsToldWhereAClientIs(t *testing.T) {
	h := serve(t, nil)
	router, err := netem.Dial(netem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDialerOn(router)
	t.Cleanup(func() { _ = d.Close() })
	g := mustDial(t, h, d)
	s := h.session(g)
	for turn := range uint32(2) {
		exchange(t, h, g, turn)
		if moved := h.moves(s); len(moved) != int(turn) {
			t.Fatalf("after %d moves the owner was told of %v", turn, moved)
		}
		router.Rebind()
		port := router.LocalAddr().(*net.UDPAddr).Port
		nettest.Eventually(t, "the client's new address", func() bool {
			g.Send(transport.Message{Method: 99}) // The change is noticed when it sends.
			g.Flush(0)
			s.Send(transport.Message{Method: 99}) // And found out when something leaves.
			s.Flush(0)
			h.Poll()
			moved := h.moves(s)
			return len(moved) > 0 && netip.MustParseAddrPort(moved[len(moved)-1]).Port() == uint16(port)
		})
	}
}

// moves returns the new addresses of a session's client.
func (h *host) moves(s *transport.Session) (all []string) {
	for i := range h.Seen {
		if a := &h.Seen[i]; a.Session == s && a.Kind == transport.Moved {
			all = append(all, a.Message.Text)
		}
	}
	return all
}

// exchange sends a reliable message each way and waits for both.
func exchange(t *testing.T, h *host, g *testClient, method uint32) {
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
	h.Find(t, "the client's message", arrived(s))
	g.Find(t, "the server's message", arrived(g.Session))
}
