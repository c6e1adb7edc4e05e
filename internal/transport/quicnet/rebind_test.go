package quicnet

import (
	"testing"

	"github.com/netloop/netloop/internal/relay"
	"github.com/netloop/netloop/internal/transport"
)

// TestClientsSurviveRebinding has a router that forgets its clients' addresses six times:
// all of them go on, over the same connections, in both directions.
func TestClientsSurviveRebinding(t *testing.T) {
	const clients, rebinds = 4, 6
	h := serve(t, nil)
	router, err := relay.Listen(h.listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Close(); err != nil {
			t.Error(err)
		}
	})
	var guests []*guest
	for range clients {
		guests = append(guests, mustDialAt(t, router.Addr().String(), nil))
	}
	seen := map[string]bool{}
	for turn := uint32(1); turn <= rebinds+1; turn++ {
		for _, g := range guests {
			exchange(t, h, g, turn)
		}
		for _, at := range router.Paths() {
			if seen[at.String()] {
				t.Error("the server knew the address", at, "before")
			}
			seen[at.String()] = true
		}
		if err := router.Rebind(); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != clients*(rebinds+1) {
		t.Error("the server saw", len(seen), "addresses")
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
