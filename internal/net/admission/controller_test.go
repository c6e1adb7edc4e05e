package admission

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// testConn is an incoming over a wire.
type testConn struct {
	*nettest.Wire
	opens func(context.Context) error // nil: at once
}

func (g *testConn) Kind() transport.Kind { return transport.QUIC }
func (g *testConn) Open(ctx context.Context) (driver.Conn, error) {
	if g.opens != nil {
		if err := g.opens(ctx); err != nil {
			return nil, err
		}
	}
	return g.Wire, nil
}

// said returns the written answer, and the code with which the connection was closed.
func (g *testConn) said(t *testing.T) (frame *netloopv1.Frame, closed transport.Code) {
	t.Helper()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if len(g.Closes) > 0 {
		closed = g.Closes[0].Code
	}
	if len(g.Wrote) == 0 {
		return nil, closed
	}
	b, err := transport.ReadFrame(bytes.NewReader(g.Wrote), transport.MaxHandshake)
	if err != nil {
		t.Fatal(err)
	}
	frame = new(netloopv1.Frame)
	if err := proto.Unmarshal(b, frame); err != nil {
		t.Fatal(err)
	}
	return frame, closed
}

// testController is a Controller and its handler.
type testController struct {
	*Controller
	*nettest.Owner
	stats  *transport.Stats
	log    bytes.Buffer
	tables []byte
	admits func(context.Context, *netloopv1.Hello) error // nil: all are admitted
	knows  func() any                                    // Admitted.Who
	says   *netloopv1.Welcome
	clock  func() time.Duration // of sessions; nil: the Controller's
	counts *transport.Stats     // of sessions; nil: the Controller's
	asked  context.Context      // of the last admission
	last   atomic.Uint64
}

func (h *testController) Tables(*netloopv1.Hello) ([]byte, error) { return h.tables, nil }

func (h *testController) Admit(ctx context.Context, hello *netloopv1.Hello, _ string) (*transport.Admitted, error) {
	h.asked = ctx
	if h.admits != nil {
		if err := h.admits(ctx, hello); err != nil {
			return nil, err
		}
	}
	id := h.last.Add(1)
	a := &transport.Admitted{
		Welcome: h.says, Session: transport.SessionConfig{ID: id, Inbox: h.Arrivals, Moves: true, Limits: transport.DefaultLimits, Clock: h.clock, Stats: h.counts},
		Joined: func(s *transport.Session) {
			h.Arrivals.Push(transport.Arrival{Kind: transport.Joined, Session: s})
		},
	}
	if a.Welcome == nil {
		a.Welcome = nettest.Welcome(id)
	}
	if h.knows != nil {
		a.Who = h.knows()
	}
	return a, nil
}

// open runs a test with a testController in virtual time, and closes the Controller after it.
func open(t *testing.T, name string, test func(t *testing.T, h *testController)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := &testController{stats: new(transport.Stats)}
			h.Owner = nettest.NewOwner(h.stats)
			h.Controller = New(Config{Handler: h, Stats: h.stats, Log: slog.New(slog.NewTextHandler(&h.log, nil))})
			test(t, h)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			h.Close(ctx)
			synctest.Wait()
			if n := h.stats.Unadmitted.Load(); n != 0 || len(h.conns) != 0 {
				t.Errorf("%d unadmitted connections and %d connections are left", n, len(h.conns))
			}
		})
	})
}

// connect connects a connection that sends these bytes; the test holds the other end of the wire.
func (h *testController) connect(says ...[]byte) *testConn {
	g := &testConn{Wire: nettest.NewWire()}
	h.serveConn(g, says...)
	return g
}

func (h *testController) serveConn(g *testConn, says ...[]byte) {
	for _, b := range says {
		g.Stream <- b
	}
	h.Reserve(g.RemoteAddr(), true).Serve(g)
	synctest.Wait()
}

// seen counts the arrivals of a kind.
func (h *testController) seen(k transport.ArrivalKind) (n int) {
	synctest.Wait()
	h.Poll()
	for _, a := range h.Seen {
		if a.Kind == k {
			n++
		}
	}
	return n
}

func helloFrame(t *testing.T) []byte { return helloWithTicket(t, "") }

// helloWithTicket returns a hello with a ticket.
func helloWithTicket(t *testing.T, ticket string) []byte {
	t.Helper()
	hello := nettest.Hello()
	hello.Ticket = ticket
	b, err := transport.AppendHello(nil, hello)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
