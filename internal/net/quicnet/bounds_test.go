package quicnet

import (
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// refusedAsFull reports whether a dial is refused with CodeFull.
func refusedAsFull(t *testing.T, h *host) bool {
	t.Helper()
	_, err := dial(t, h, nil, nettest.Hello())
	var r *transport.Refusal
	return errors.As(err, &r) && r.Code == transport.CodeFull
}

// A connection above the bound is refused with CodeFull, until another one has ended. All of them
// are counted as handshakes.
func TestConnectionsAreBounded(t *testing.T) {
	h := serve(t, func(c *ServerConfig) { c.MaxConns = 2 })
	first := mustDial(t, h, nil)
	mustDial(t, h, nil)
	if !refusedAsFull(t, h) || h.stats.Dropped(transport.DropFull) != 1 || h.stats.Refused.Load() != 1 {
		t.Error("the connection beyond the bound is let in, or not counted")
	}
	if n := h.stats.Handshakes[transport.QUIC].Load(); n != 3 {
		t.Error(n, "handshakes counted")
	}
	first.Session.Close(transport.CodeLeft, "")
	first.Find(t, "the first client's end", nettest.Kind(transport.Gone))
	if n := h.stats.Joined[transport.QUIC].Load(); n != 2 {
		t.Error(n, "connections are counted as let in")
	}
	nettest.Eventually(t, "the place to be free again", func() bool { return !refusedAsFull(t, h) })
}

// A closed dialer sends a goodbye for its clients, and dials no more.
func TestClosedDialerLeavesAndDialsNoMore(t *testing.T) {
	h := serve(t, nil)
	d, err := NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	g := mustDial(t, h, d)
	s := h.session(g)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(nettest.Patience):
		t.Fatal("the dialer does not close")
	}
	a := h.Find(t, "the server's end", nettest.Kind(transport.Gone))
	if a.Session != s || *a.Closed != (transport.Closed{Code: transport.CodeLeft, Remote: true}) {
		t.Errorf("the server reads %+v", a.Closed)
	}
	if _, err := dial(t, h, d, nettest.Hello()); !errors.Is(err, driver.ErrDialerClosed) {
		t.Error("a dial after the close says", err)
	}
	// Otherwise Close would wait for later links.
	if err := d.enter(); !errors.Is(err, driver.ErrDialerClosed) {
		t.Error("a connection enters a closed dialer:", err)
	}
}
