package netlooptest

import (
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Link describes a client's connection. The zero Link is perfect: no delay, no loss and no limit.
type Link struct {
	Delay     time.Duration // one way
	Jitter    time.Duration // added to Delay: evenly distributed from 0 to Jitter
	Loss      float64       // share of datagrams lost, each way
	Duplicate float64       // share of datagrams delivered twice
	Reorder   float64       // share of datagrams that later ones overtake
	Bandwidth int           // bit/s each way; 0 is unlimited
	Buffer    time.Duration // router buffer: how long a datagram may wait at Bandwidth
}

// seat is a client of the world.
type seat struct {
	c    *client.Client
	conn *memnet.Conn // the newest
	link memnet.Link

	clock  memnet.Clock
	frames frames

	addr string                           // of every connection; empty: one of its own
	tap  func(data []byte, datagram bool) // see Tap

	cutUp, cutDown, stalled bool // of every connection
	frozen, gone            bool
	audit                   *audit // see Audit
}

// dial connects the client, at first and after a lost connection.
func (s *seat) dial(w *World, g transport.Greeting, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
	if s.audit != nil {
		s.conn.SetTap(nil)
	}
	s.conn = w.net.Dial(s.link, g, cfg, done)
	s.conn.SetClock(s.clock)
	if s.addr != "" {
		s.conn.Rebind(s.addr)
	}
	if s.tap != nil {
		s.conn.SetTap(s.tap)
	}
	s.conn.Stall(s.stalled)
	s.hole()
	if s.audit != nil {
		s.audit.tap(s.conn)
	}
}

// SetLink changes a client's link from now on.
func (w *World) SetLink(c *client.Client, l Link) {
	w.tb.Helper()
	s := w.seat(c)
	s.link = memnet.Link(l)
	s.conn.SetLink(s.link)
}

// Cut makes a client's link a black hole: both sides keep sending, and no datagram arrives until
// Heal. After a while each side gives up the connection, and the client tries to reconnect: see
// [client.Reconnect].
func (w *World) Cut(c *client.Client) {
	w.tb.Helper()
	s := w.seat(c)
	s.cutUp, s.cutDown = true, true
	s.hole()
}

// CutUp drops all packets of a client to the server until Heal, while those to the client arrive.
func (w *World) CutUp(c *client.Client) {
	w.tb.Helper()
	s := w.seat(c)
	s.cutUp = true
	s.hole()
}

// CutDown drops all packets of the server to a client until Heal.
func (w *World) CutDown(c *client.Client) {
	w.tb.Helper()
	s := w.seat(c)
	s.cutDown = true
	s.hole()
}

// hole cuts the newest connection in the directions in which the client's link is cut.
func (s *seat) hole() {
	if s.cutUp {
		s.conn.CutUp()
	}
	if s.cutDown {
		s.conn.CutDown()
	}
}

// Heal ends the effect of Cut, CutUp and CutDown.
func (w *World) Heal(c *client.Client) {
	w.tb.Helper()
	s := w.seat(c)
	s.cutUp, s.cutDown = false, false
	s.conn.Heal()
}

// Stall delays the server's packets to a client at the server, until it is called again with false:
// as when the client, or the server's own network code, gets no time. The client's packets still
// arrive.
func (w *World) Stall(c *client.Client, stall bool) {
	w.tb.Helper()
	s := w.seat(c)
	s.stalled = stall
	s.conn.Stall(stall)
}

// Drop removes a client without a message, like a killed program: it runs no more frames, and the
// server has to notice by itself.
func (w *World) Drop(c *client.Client) {
	w.tb.Helper()
	s := w.seat(c)
	s.gone = true
	s.conn.Drop()
}

// DropAfter drops a client as [World.Drop] does, once the client has sent n more bytes of its
// stream, which begins with the handshake. After that it calls then.
func (w *World) DropAfter(c *client.Client, n int, then func()) {
	w.tb.Helper()
	s := w.seat(c)
	s.conn.DropAfter(n, func() {
		s.gone = true
		then()
	})
}

// Rebind changes a client's address from now on. Clients that share an address share the server's
// limits per address.
func (w *World) Rebind(c *client.Client, addr string) {
	w.tb.Helper()
	s := w.seat(c)
	s.addr = addr
	s.conn.Rebind(addr)
}

// Tap passes the bytes that the server sends to a client to a function: each datagram, and the
// bytes of the stream in order, whether they arrive or not. A client has a Tap or an [Audit].
func (w *World) Tap(c *client.Client, fn func(b []byte, datagram bool)) {
	w.tb.Helper()
	s := w.seat(c)
	s.tap = fn
	s.conn.SetTap(fn)
}

// Forge changes the bytes that a client sends, and those that the server sends to it, on their way:
// each datagram, and the bytes of the stream in pieces. So a client behaves as a hostile program
// does, and meets a server that sends garbage. A function may change the bytes that it gets, and
// returns those that arrive; nil changes nothing. It is for the present connection alone.
func (w *World) Forge(c *client.Client, up, down func(b []byte, datagram bool) []byte) {
	w.tb.Helper()
	w.seat(c).conn.SetForge(up, down)
}

// Break breaks a client's connection without a message. The client notices at once, as when the
// system reports that there is no network, and reconnects by itself; the server has to notice by
// itself.
func (w *World) Break(c *client.Client) {
	w.tb.Helper()
	w.seat(c).conn.Break()
}

// Freeze stops a client's frames until Thaw, like a program that hangs: its connection is kept, and
// arriving data waits.
func (w *World) Freeze(c *client.Client) { w.seat(c).frozen = true }

// Thaw ends the effect of Freeze.
func (w *World) Thaw(c *client.Client) { w.seat(c).frozen = false }

func (w *World) seat(c *client.Client) *seat {
	w.tb.Helper()
	for _, s := range w.clients {
		if s.c == c {
			return s
		}
	}
	w.tb.Fatal("netlooptest: the client is of another world")
	return nil
}
