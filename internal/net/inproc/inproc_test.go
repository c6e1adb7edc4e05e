package inproc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// testHost is a host and its handler.
type testHost struct {
	*Host
	*nettest.Owner
	admits func(context.Context, *netloopv1.Hello) error // nil: all are admitted
	tables []byte
	says   *netloopv1.Welcome // nil: a good one
	last   atomic.Uint64
	clock  func() time.Duration // of sessions; nil: the host's
	stats  *transport.Stats     // of sessions; nil: the host's
	who    []any                // transport.Who of each admission
	ctx    context.Context      // of the last admission
	remote string
}

func newTestHost() *testHost {
	h := &testHost{Owner: nettest.NewOwner(nil)}
	began := time.Now()
	h.Host = &Host{
		Handler: h, AdmitTimeout: time.Minute, Stats: new(transport.Stats),
		Clock: func() time.Duration { return time.Since(began) + time.Hour },
	}
	return h
}

func (h *testHost) Tables(*netloopv1.Hello) ([]byte, error) { return h.tables, nil }

func (h *testHost) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admitted, error) {
	h.who, h.ctx, h.remote = append(h.who, transport.Who(ctx)), ctx, remote
	if h.admits != nil {
		if err := h.admits(ctx, hello); err != nil {
			return nil, err
		}
	}
	id := h.last.Add(1)
	welcome := h.says
	if welcome == nil {
		welcome = nettest.Welcome(id)
	}
	return &transport.Admitted{
		Who: id, Welcome: welcome,
		Session: transport.SessionConfig{ID: id, Inbox: h.Arrivals, Moves: true, Limits: transport.DefaultLimits, Clock: h.clock, Stats: h.stats},
		Joined:  func(s *transport.Session) { h.Arrivals.Push(transport.Arrival{Kind: transport.Joined, Session: s}) },
	}, nil
}

// joined returns the session of the n-th client.
func (h *testHost) joined(t *testing.T, n uint64) *transport.Session {
	t.Helper()
	return h.Find(t, "the join", func(a *transport.Arrival) bool {
		return a.Kind == transport.Joined && a.Session.ID() == n
	}).Session
}

// testClient is a client.
type testClient struct {
	*nettest.Owner
	*transport.Session
}

func dial(ctx context.Context, d *Dialer) (*testClient, *netloopv1.Welcome, error) {
	g := &testClient{Owner: nettest.NewOwner(nil)}
	greeting := transport.Greeting{Hello: nettest.Hello(), Adapt: func(*netloopv1.SchemaTables) error { return nil }}
	s, w, err := d.Dial(ctx, greeting, transport.SessionConfig{
		Inbox: g.Arrivals, Moves: true, Limits: transport.DefaultLimits, Clock: func() time.Duration { return 0 },
	})
	g.Session = s
	return g, w, err
}

func mustDial(t *testing.T, d *Dialer) *testClient {
	t.Helper()
	g, _, err := dial(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// play runs a test in virtual time with a testHost and a dialer, closes both, and checks that no
// connection is left.
func play(t *testing.T, name string, test func(t *testing.T, h *testHost, d *Dialer)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newTestHost()
			d := &Dialer{Host: h.Host}
			test(t, h, d)
			d.Close()
			h.Close(t.Context())
			if len(h.conns) != 0 || len(d.links) != 0 {
				t.Errorf("%d connections and %d links are left", len(h.conns), len(d.links))
			}
		})
	})
}

// Data of sessions arrives in both directions, over the stream and in datagrams, in order and
// beyond the size of the queues; the host's clock stamps arrivals.
func TestSessionDataArrivesBothWays(t *testing.T) {
	play(t, "both ways", func(t *testing.T, h *testHost, d *Dialer) {
		g, w, err := dial(t.Context(), d)
		if err != nil || w.GetClientId() != 1 || g.ID() != 1 || h.remote != "local" {
			t.Fatalf("%v, %v; the remote address is %q", w, err, h.remote)
		}
		s := h.joined(t, 1)
		for i := range 40 { // More than the stream takes at once.
			g.Send(transport.Message{Method: uint32(i), Reliable: true, Payload: make([]byte, 5000)})
			s.Send(transport.Message{Method: uint32(i), Reliable: true, Payload: make([]byte, 5000)})
			g.Flush(0)
			s.Flush(0)
			synctest.Wait()
		}
		g.Send(transport.Message{Method: 99})
		s.Send(transport.Message{Method: 99})
		g.Flush(0)
		s.Flush(0)
		for name, o := range map[string]*nettest.Owner{"the server": h.Owner, "the client": g.Owner} {
			o.Find(t, "the unreliable message", nettest.Message(99))
			o.Find(t, "the last message", nettest.Message(39))
			next := uint32(0)
			for _, a := range o.Seen {
				if a.Kind == transport.MessageArrived && a.Message.Reliable {
					if a.Message.Method != next {
						t.Fatalf("%s has got %d, want %d", name, a.Message.Method, next)
					}
					next++
				}
				if o == h.Owner && a.Kind == transport.MessageArrived && a.At < time.Hour {
					t.Fatalf("a message came at %v", a.At)
				}
			}
		}
		if h.Stats.DatagramsIn.Load() == 0 {
			t.Error("the host counts nothing")
		}
		if rtt := s.LinkFacts().SRTT; rtt != 0 {
			t.Error("the round trip, which nobody measures, is", rtt)
		}
		if h.ctx.Err() == nil {
			t.Error("the context of an admission outlives it")
		}
	})
	play(t, "by a clock and counters of their own", func(t *testing.T, h *testHost, d *Dialer) {
		h.clock, h.stats = func() time.Duration { return time.Minute }, new(transport.Stats)
		g := mustDial(t, d)
		g.Send(transport.Message{Method: 99})
		g.Flush(0)
		if a := h.Find(t, "the message", nettest.Message(99)); a.At != time.Minute {
			t.Errorf("a message came at %v", a.At)
		}
		if h.Stats.DatagramsIn.Load() != 0 || h.stats.DatagramsIn.Load() == 0 {
			t.Error("the host counts what the session does")
		}
	})
}

// The other side gets the reason of a close. A closed dialer or host closes its connections and
// accepts no new ones.
func TestTheReasonOfACloseArrives(t *testing.T) {
	play(t, "the server", func(t *testing.T, h *testHost, d *Dialer) {
		g := mustDial(t, d)
		h.joined(t, 1).Close(transport.CodeKicked, "cheated")
		if a := g.Find(t, "the end", nettest.Kind(transport.Gone)); *a.Closed != (transport.Closed{Code: transport.CodeKicked, Text: "cheated", Remote: true}) {
			t.Errorf("the client reads %+v", a.Closed)
		}
		if a := h.Find(t, "the end", nettest.Kind(transport.Gone)); *a.Closed != (transport.Closed{Code: transport.CodeKicked, Text: "cheated"}) {
			t.Errorf("the server reads %+v", a.Closed)
		}
	})
	play(t, "the client", func(t *testing.T, h *testHost, d *Dialer) {
		g, other := mustDial(t, d), mustDial(t, d)
		g.Session.Close(transport.CodeLeft, "bye")
		if a := h.Find(t, "the end", nettest.Kind(transport.Gone)); *a.Closed != (transport.Closed{Code: transport.CodeLeft, Text: "bye", Remote: true}) || a.Session.ID() != 1 {
			t.Errorf("the server reads %+v", a.Closed)
		}
		synctest.Wait()
		if len(d.links) != 1 || len(h.conns) != 1 {
			t.Errorf("beside %d links and %d connections", len(d.links), len(h.conns))
		}
		if other.Poll(); len(other.Seen) != 0 {
			t.Errorf("the other one reads %+v", other.Seen)
		}
	})
	play(t, "the dialer", func(t *testing.T, h *testHost, d *Dialer) {
		g := mustDial(t, d)
		d.Close()
		if a := g.Find(t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeLeft {
			t.Errorf("the client reads %+v", a.Closed)
		}
		late := mustDial(t, d) // It is closed as soon as it is there.
		late.Find(t, "the end", nettest.Kind(transport.Gone))
		h.Find(t, "its end", func(a *transport.Arrival) bool { return a.Kind == transport.Gone && a.Session.ID() == 2 })
	})
	play(t, "the host", func(t *testing.T, h *testHost, d *Dialer) {
		all := []*testClient{mustDial(t, d), mustDial(t, d), mustDial(t, d)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		h.Close(ctx)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it waits for %v", took)
		}
		for _, g := range all {
			if a := g.Find(t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeClosing || !a.Closed.Remote {
				t.Errorf("the client reads %+v", a.Closed)
			}
		}
		var r *transport.Refusal
		if _, _, err := dial(t.Context(), d); !errors.As(err, &r) || r.Code != transport.CodeClosing {
			t.Error("a dial after the end says", err)
		}
	})
}

// A refused client gets the reason, but not that of an internal error.
func TestRefusedClientsGetTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		admits func(context.Context, *netloopv1.Hello) error
		want   transport.Code
		after  time.Duration
	}{
		"a refusal":        {func(context.Context, *netloopv1.Hello) error { return transport.Refuse(transport.CodeFull, "all") }, transport.CodeFull, 0},
		"an own error":     {func(context.Context, *netloopv1.Hello) error { return io.ErrNoProgress }, transport.CodeInternal, 0},
		"a panic":          {func(context.Context, *netloopv1.Hello) error { panic("at the disco") }, transport.CodeInternal, 0},
		"a long admission": {func(ctx context.Context, _ *netloopv1.Hello) error { <-ctx.Done(); return ctx.Err() }, transport.CodeTimeout, time.Minute},
		"a late refusal": {func(context.Context, *netloopv1.Hello) error {
			time.Sleep(time.Second)
			return transport.Refuse(transport.CodeFull, "all")
		}, transport.CodeFull, time.Second},
	} {
		play(t, name, func(t *testing.T, h *testHost, d *Dialer) {
			h.admits = c.admits
			began := time.Now()
			_, _, err := dial(t.Context(), d)
			var r *transport.Refusal
			if !errors.As(err, &r) || r.Code != c.want || time.Since(began) != c.after || h.Stats.Refused.Load() != 1 {
				t.Errorf("after %v it says %v, and %d are counted", time.Since(began), err, h.Stats.Refused.Load())
			}
		})
	}
	play(t, "a user that gives up", func(t *testing.T, h *testHost, d *Dialer) {
		h.admits = func(ctx context.Context, _ *netloopv1.Hello) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, _, err := dial(ctx, d); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v it says %v", time.Since(began), err)
		}
	})
	play(t, "a hello that is none", func(t *testing.T, h *testHost, _ *Dialer) {
		for text, says := range map[string][]byte{"first frame is malformed": {1, 0xff}, "no hello": {0xff, 0xff, 0xff, 0xff}} {
			c, err := h.open()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(says); err != nil {
				t.Fatal(err)
			}
			<-c.Context().Done()
			if why := c.Closed(); why.Code != transport.CodeProtocol || why.Text != text || !why.Remote {
				t.Errorf("%x: it reads %+v", says, why)
			}
		}
	})
	play(t, "a welcome that cannot be encoded", func(t *testing.T, h *testHost, d *Dialer) {
		h.says = &netloopv1.Welcome{Room: "\xff"}
		if _, _, err := dial(t.Context(), d); err == nil {
			t.Error("it is let in")
		}
		if a := h.Find(t, "its end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeInternal {
			t.Errorf("the server reads %+v", a.Closed)
		}
	})
	play(t, "a hello that cannot be encoded", func(t *testing.T, h *testHost, d *Dialer) {
		bad := nettest.Hello()
		bad.Room = "\xff"
		if _, _, err := d.Dial(t.Context(), transport.Greeting{Hello: bad}, transport.SessionConfig{Inbox: transport.NewInbox(0, nil)}); err == nil || !strings.HasPrefix(err.Error(), "hello: ") || len(h.who) != 0 {
			t.Errorf("it says %v", err)
		}
	})
}

// A client with another schema is sent the server's tables, and joins if it can use them.
func TestTheServersTablesAreTold(t *testing.T) {
	tables, err := transport.AppendTables(nil, &netloopv1.SchemaTables{})
	if err != nil {
		t.Fatal(err)
	}
	play(t, "it can", func(t *testing.T, h *testHost, d *Dialer) {
		h.tables = tables
		mustDial(t, d)
		h.joined(t, 1)
	})
	play(t, "it cannot", func(t *testing.T, h *testHost, d *Dialer) {
		h.tables = tables
		_, _, err := d.Dial(t.Context(), transport.Greeting{Hello: nettest.Hello()}, transport.SessionConfig{Inbox: transport.NewInbox(0, nil)})
		var r *transport.Refusal
		if !errors.As(err, &r) || r.Code != transport.CodeSchemaMismatch || len(h.who) != 0 {
			t.Errorf("it says %v", err)
		}
	})
}

// A moving client is admitted anew, with the handler's data of it. A client that was told to move
// and does not is closed after a timeout.
func TestAClientThatMovesIsAskedAboutAnew(t *testing.T) {
	follow := func(g *testClient) (next *transport.Session, err error) {
		hello := nettest.Hello()
		hello.Ticket = "a ticket"
		done := make(chan struct{})
		g.Session.Follow(transport.Next{
			Hello: hello, Session: transport.SessionConfig{Inbox: g.Arrivals, Moves: true, Limits: transport.DefaultLimits},
			Done: func(s *transport.Session, _ *netloopv1.Welcome, e error) { next, err = s, e; close(done) },
		})
		<-done
		return next, err
	}
	play(t, "twice", func(t *testing.T, h *testHost, d *Dialer) {
		g := mustDial(t, d)
		for n := range uint64(2) {
			h.joined(t, n+1).Move("a ticket")
			synctest.Wait()
			next, err := follow(g)
			if err != nil || next.ID() != n+2 {
				t.Fatalf("after move %d it says %v", n, err)
			}
			g.Session = next
		}
		if len(h.who) != 3 || h.who[0] != nil || h.who[1] != uint64(1) || h.who[2] != uint64(2) {
			t.Errorf("it is known as %v", h.who)
		}
	})
	play(t, "into a refusal", func(t *testing.T, h *testHost, d *Dialer) {
		g := mustDial(t, d)
		s := h.joined(t, 1)
		h.admits = func(context.Context, *netloopv1.Hello) error { return transport.Refuse(transport.CodeFull, "all") }
		s.Move("a ticket")
		synctest.Wait()
		var r *transport.Refusal
		if _, err := follow(g); !errors.As(err, &r) || r.Code != transport.CodeFull || h.Stats.Refused.Load() != 1 {
			t.Errorf("it says %v", err)
		}
	})
	play(t, "not at all", func(t *testing.T, h *testHost, d *Dialer) {
		g := mustDial(t, d)
		h.joined(t, 1).Move("a ticket")
		began := time.Now()
		<-g.Closing()
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("it was closed after %v", took)
		}
		if a := g.Find(t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeTimeout {
			t.Errorf("it reads %+v", a.Closed)
		}
	})
}

// The stream and the queue of datagrams are bounded: a writer blocks above the bound, and the end
// of the connection unblocks it.
func TestTheEndsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair()
		var wrote, sent atomic.Int64
		over := make(chan error, 2)
		go func() {
			for {
				if _, err := client.Write(make([]byte, 1<<10)); err != nil {
					over <- err
					return
				}
				wrote.Add(1 << 10)
			}
		}()
		go func() {
			for {
				if err := client.SendDatagram([]byte{1}); err != nil {
					over <- err
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		if wrote.Load() != maxStream || sent.Load() != 32 {
			t.Errorf("%d bytes and %d datagrams wait", wrote.Load(), sent.Load())
		}
		if n, err := server.Peek(make([]byte, 10)); n != 10 || err != nil {
			t.Errorf("of the stream are there %d bytes, %v", n, err)
		}
		if n, err := server.Read(make([]byte, 5<<10)); n != 5<<10 || err != nil {
			t.Errorf("of the stream are there %d bytes, %v", n, err)
		}
		if b, err := server.ReceiveDatagram(); len(b) != 1 || err != nil {
			t.Errorf("there is %x, %v", b, err)
		}
		synctest.Wait()
		if wrote.Load() != maxStream+5<<10 || sent.Load() != 32+1 {
			t.Errorf("%d bytes and %d datagrams have gone", wrote.Load(), sent.Load())
		}
		if server.Err() != nil || client.Err() != nil {
			t.Errorf("an open connection says %v, %v", server.Err(), client.Err())
		}
		server.Close(transport.CodeKicked, "cheated")
		client.Close(transport.CodeLeft, "later")
		for range 2 {
			if err := <-over; err == nil {
				t.Error("nothing is said about the end")
			}
		}
		if got := client.Closed(); got != (transport.Closed{Code: transport.CodeKicked, Text: "cheated", Remote: true}) || client.Err().Error() != got.Error() {
			t.Errorf("the client reads %+v, %v", got, client.Err())
		}
		if got := server.Closed(); got.Remote || got.Code != transport.CodeKicked {
			t.Errorf("the server reads %+v", got)
		}
	})
}

// A stream with one queued byte has no room for maxStream more.
func TestAStreamThatIsNotEmptyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair()
		_, _ = client.Write([]byte{1})
		wrote := make(chan struct{})
		go func() { _, _ = client.Write(make([]byte, maxStream)); close(wrote) }()
		synctest.Wait()
		select {
		case <-wrote:
			t.Error("it takes more than it may hold")
		default:
		}
		if n, err := server.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
		<-wrote
		client.Close(transport.CodeLeft, "")
	})
}

// A stream is read to the end of its data, whether the stream or the connection ends.
func TestAStreamIsReadToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*conn)
		want error
	}{
		"its end":                   {func(c *conn) { _ = c.CloseWrite() }, nil},
		"the end of the connection": {func(c *conn) { c.Close(transport.CodeLeft, "") }, net.ErrClosed},
	} {
		client, server := pair()
		big := bytes.Repeat([]byte("x"), 2*maxStream) // An empty stream takes anything at once.
		if n, err := client.Write(big); n != len(big) || err != nil {
			t.Fatal(n, err)
		}
		c.end(client)
		if n, err := client.Write([]byte("more")); n != 0 || err == nil {
			t.Errorf("%s: after it more is written", name)
		}
		if got, err := io.ReadAll(readOnly{server}); !bytes.Equal(got, big) || !errors.Is(err, c.want) {
			t.Errorf("%s: %d bytes are read, %v", name, len(got), err)
		}
		client.Close(transport.CodeLeft, "")
	}
}

// readOnly is an end as a reader alone.
type readOnly struct{ c *conn }

func (r readOnly) Read(b []byte) (int, error) { return r.c.Read(b) }

// A direction holds 64 KiB, a writer waits for room, and the first end of a direction counts.
func TestADirectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, writes := newPipe(), 0
		go func() {
			for _, size := range []int{64<<10 - 1, 1, 1} {
				if _, err := p.write(make([]byte, size)); err != nil {
					t.Error(err)
				}
				writes++
			}
		}()
		for _, want := range []int{2, 3} {
			if synctest.Wait(); writes != want {
				t.Errorf("%d pieces are written, want %d", writes, want)
			}
			if n, err := p.read(make([]byte, 1), true); n != 1 || err != nil {
				t.Error(n, err)
			}
		}
		p.end(io.EOF)
		p.end(net.ErrClosed)
		if all, err := io.ReadAll(reader{p}); len(all) != 64<<10-1 || err != nil {
			t.Errorf("%d bytes are left, %v", len(all), err)
		}
	})
}

type reader struct{ *pipe }

func (r reader) Read(b []byte) (int, error) { return r.read(b, true) }
