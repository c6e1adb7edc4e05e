package room_test

import (
	"bytes"
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// bare is a server without a network: its test plays the transport.
type bare struct {
	t      testing.TB
	s      *netloop.Server
	server bridge.Server
	room   *room.Room
	played *netloop.Room // the same, as the game's view
	tick   uint64
}

var (
	bareSchema = netloop.NewSchema("bare", 1, 0)
	bareWords  = netloop.NewRPC[struct{ N uint64 }](bareSchema, "words")
	bareText   = netloop.NewRPC[blob](bareSchema, "text")
	bareBig    = netloop.NewCall[struct{ N uint64 }, blob](bareSchema, "big")
	bareNobody = netloop.NewCall[struct{ N uint64 }, struct{ N uint64 }](bareSchema, "nobody")
)

type blob struct {
	B []byte `net:"max=20000"`
}

type bareGame func(*netloop.Room)

func (bareGame) Schema() *netloop.Schema      { return bareSchema }
func (g bareGame) Open(r *netloop.Room) error { g(r); return nil }

func newBare(t testing.TB, g bareGame) *bare {
	t.Helper()
	return newBareAs(t, netloop.Config{}, g)
}

func newBareAs(t testing.TB, cfg netloop.Config, g bareGame) *bare {
	t.Helper()
	return newBareOf(t, cfg, g)
}

func newBareOf(t testing.TB, cfg netloop.Config, g netloop.Game) *bare {
	t.Helper()
	// Clients are silent unless a test lets them send.
	cfg.LostAfter = cmp.Or(cfg.LostAfter, time.Hour)
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{t: t, s: s, server: bridge.Netloop.Server(s)}
	b.room = b.server.Room
	if err := b.inspect(func(tick *netloop.Tick) { b.played = tick.Room() }); err != nil {
		t.Fatal(err)
	}
	return b
}

// idOf and nameOf return the id and name of an RPC or a call.
func idOf(descriptor any) uint32   { return bridge.Netloop.Method(descriptor).Queue.ID }
func nameOf(descriptor any) string { return bridge.Netloop.Method(descriptor).Queue.Name }

func hello(s *netloop.Schema) *netloopv1.Hello { return bridge.Netloop.Schema(s).Hello() }

// inspect calls fn with a live tick between two ticks.
func (b *bare) inspect(fn func(*netloop.Tick)) error {
	return b.room.Inspect(func() { fn(b.server.Tick.(*netloop.Tick)) })
}

// inFlight returns how many snapshots are under way to a client.
func inFlight(c *room.Client) int {
	_, n, _ := c.Link()
	return n
}

func (b *bare) step() {
	b.t.Helper()
	b.tick++
	in := b.room.Timeline().Input(b.tick)
	in.Epoch = loop.Epoch{Tick: 1}
	in.Start = b.room.Timeline().GameTime(b.tick) // It is never late.
	if err := b.room.Step(in); err != nil {
		b.t.Fatal(err)
	}
}

// join admits a client; its Joined waits for the next step.
func (b *bare) join() *testConn {
	b.t.Helper()
	return b.joinFrom("here")
}

func (b *bare) joinFrom(addr string) *testConn {
	b.t.Helper()
	adm, err := b.server.Handler.Admit(context.Background(), hello(bareSchema), addr)
	if err != nil {
		b.t.Fatal(err)
	}
	session := newTestConn(adm)
	return session
}

// testConn is both ends of a client's connection: the owner's, and the driver's, which a test
// plays.
type testConn struct {
	*transport.Session
	*transport.Link
}

// newTestConn connects an admitted client.
func newTestConn(adm *transport.Admitted) *testConn {
	g := new(testConn)
	g.Session, g.Link = transport.NewSession(adm.Session)
	adm.Joined(g.Session)
	return g
}

// Cause is the same for both ends.
func (g *testConn) Cause() (transport.Closed, bool) { return g.Session.Cause() }

// carry takes the waiting datagrams of one session to another; nil drops them.
func carry(from, to *testConn) {
	// The function that sends never fails.
	_ = from.SendDatagrams(func() time.Duration { return 0 }, func(b []byte) error {
		if to != nil {
			to.ReceiveDatagram(0, bytes.Clone(b))
		}
		return nil
	})
}

func (b *bare) push(s *testConn, a transport.Arrival) {
	b.t.Helper()
	a.Session = s.Session
	if m, ok := b.room.Schema().Method(a.Message.Method); ok {
		a.Method = m // As the network sets it.
	}
	if !b.room.Inbox().Push(a) {
		b.t.Fatal("the inbox does not take it")
	}
}
