package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A connection is admitted or gets the reason: in a frame, if there is a stream, and with the
// close. Internal errors are logged instead, and each refusal is counted.
func TestRefusedConnectionsGetTheReason(t *testing.T) {
	hang := func(ctx context.Context, _ *netloopv1.Hello) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		says   []byte
		admits func(context.Context, *netloopv1.Hello) error
		opens  func(context.Context) error
		want   transport.Code
		text   string
		after  time.Duration
		drop   string // counted
		log    string
		mute   bool // there is no stream to write to
	}{
		"silence":          {want: transport.CodeTimeout, text: "no hello within 5s", after: 5 * time.Second, drop: "handshake/timeout 1"},
		"an end":           {says: []byte{}, want: transport.CodeProtocol, text: "no hello", drop: "handshake/malformed 1"},
		"a huge hello":     {says: []byte{0xff, 0xff, 0xff, 0x7f}, want: transport.CodeProtocol, text: "hello is larger than 32768 bytes", drop: "handshake/malformed 1"},
		"nonsense":         {says: []byte{1, 0xff}, want: transport.CodeProtocol, drop: "handshake/malformed 1"},
		"no stream":        {opens: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, want: transport.CodeTimeout, after: 5 * time.Second, drop: "handshake/timeout 1", mute: true},
		"a bad stream":     {opens: func(context.Context) error { return transport.Refuse(transport.CodeBusy, "so it is") }, want: transport.CodeBusy, text: "so it is", mute: true},
		"a refusal":        {says: helloFrame(t), admits: func(context.Context, *netloopv1.Hello) error { return transport.Refuse(transport.CodeFull, "all") }, want: transport.CodeFull, text: "all"},
		"an own error":     {says: helloFrame(t), admits: func(context.Context, *netloopv1.Hello) error { return errors.New("the disk is full") }, want: transport.CodeInternal, text: "internal error", log: "the disk is full"},
		"a panic":          {says: helloFrame(t), admits: func(context.Context, *netloopv1.Hello) error { panic("at the disco") }, want: transport.CodeInternal, text: "internal error", log: "at the disco"},
		"a long admission": {says: helloFrame(t), admits: hang, want: transport.CodeTimeout, text: "admission timed out", after: 10 * time.Second},
		"a late but own no": {says: helloFrame(t), admits: func(ctx context.Context, _ *netloopv1.Hello) error {
			time.Sleep(time.Second)
			return transport.Refuse(transport.CodeKicked, "no")
		}, want: transport.CodeKicked, text: "no", after: time.Second},
	} {
		open(t, name, func(t *testing.T, h *testController) {
			h.admits = c.admits
			began := time.Now()
			g := &testConn{Wire: nettest.NewWire(), opens: c.opens}
			if c.says != nil {
				g.Stream <- c.says
			}
			h.serveConn(g)
			<-g.Context().Done()
			if took := time.Since(began); took != c.after {
				t.Errorf("it took %v, want %v", took, c.after)
			}
			synctest.Wait()
			frame, closed := g.said(t)
			if closed != c.want || g.Closes[0].Text != c.text && c.text != "" {
				t.Errorf("closed with %+v, want %v %q", g.Closes[0], c.want, c.text)
			}
			if r := frame.GetRefused(); (r == nil) != c.mute || !c.mute && (transport.Code(r.GetCode()) != c.want || r.GetText() != g.Closes[0].Text) {
				t.Errorf("it reads %v", frame)
			}
			if !c.mute && g.Until.IsZero() {
				t.Error("a refusal that nobody reads may take for ever")
			}
			if logged := h.log.String(); (logged != "") != (c.log != "") || !strings.Contains(logged, c.log) {
				t.Errorf("the log is told %q, want %q", logged, c.log)
			}
			if n := h.stats.Refused.Load(); n != 1 || h.stats.Joined[transport.QUIC].Load() != 0 {
				t.Errorf("%d refusals are counted", n)
			}
			dropped := ""
			h.stats.Drops(func(queue, reason string, n uint64) {
				if n > 0 {
					dropped += fmt.Sprint(queue, "/", reason, " ", n)
				}
			})
			if dropped != c.drop {
				t.Errorf("%q is counted, want %q", dropped, c.drop)
			}
		})
	}
}

// An admitted client has a session without deadlines; when it ends, its entry is free again.
func TestAnAdmittedClientHasASession(t *testing.T) {
	open(t, "one after another", func(t *testing.T, h *testController) {
		h.SetMaxConns(1)
		var opening context.Context
		g := &testConn{Wire: nettest.NewWire(), opens: func(ctx context.Context) error { opening = ctx; return nil }}
		h.serveConn(g, helloFrame(t))
		frame, _ := g.said(t)
		if opening.Err() == nil || !g.WroteBy.IsZero() {
			t.Errorf("the welcome may be written until %v", g.WroteBy)
		}
		if frame.GetWelcome().GetClientId() != 1 || !g.Deadline.IsZero() || !g.Until.IsZero() || h.stats.Joined[transport.QUIC].Load() != 1 {
			t.Errorf("it reads %v, by %v and %v", frame, g.Deadline, g.Until)
		}
		if halfOpen, met := h.Unadmitted(); halfOpen+met != 0 {
			t.Error("it is an unadmitted connection")
		}
		time.Sleep(time.Minute)
		if _, closed := g.said(t); closed != 0 || h.seen(transport.Joined) != 1 || h.seen(transport.Gone) != 0 {
			t.Error("after a minute it was closed with", closed)
		}
		second := h.connect(helloFrame(t))
		if frame, closed := second.said(t); frame != nil || closed != transport.CodeFull || h.stats.Dropped(transport.DropFull) != 1 {
			t.Errorf("a second one reads %v, %v", frame, closed)
		}
		g.Cut()
		if h.seen(transport.Gone) != 1 {
			t.Error("its owner is not told that it has gone")
		}
		conn := h.connect()
		conn.Cut() // An unadmitted connection that is cut frees no entry of an admitted one.
		synctest.Wait()
		third, fourth := h.connect(helloFrame(t)), h.connect(helloFrame(t))
		if frame, _ := third.said(t); frame.GetWelcome() == nil {
			t.Errorf("when it has gone another one reads %v", frame)
		}
		if _, closed := fourth.said(t); closed != transport.CodeFull {
			t.Error("beside that one another one is closed with", closed)
		}
	})
}

// A session uses the Controller's clock and counters, unless it has its own. The context of its
// admission ends with the admission.
func TestASessionHasTheControllersClockAndCounters(t *testing.T) {
	for name, own := range map[string]bool{"the controller's": false, "its own": true} {
		open(t, name, func(t *testing.T, h *testController) {
			h.cfg.Clock = func() time.Duration { return time.Hour }
			want := time.Hour
			if own {
				want = time.Minute
				h.clock, h.counts = func() time.Duration { return time.Minute }, new(transport.Stats)
			}
			g := h.connect(helloFrame(t))
			peer, link := transport.NewSession(transport.SessionConfig{Inbox: transport.NewInbox(0, nil), Client: true, Limits: transport.DefaultLimits})
			peer.Send(transport.Message{Method: 3, Reliable: true})
			peer.Flush(0)
			g.Stream <- link.AppendStream(nil, 1000)
			if h.seen(transport.MessageArrived) != 1 || h.Seen[len(h.Seen)-1].At != want {
				t.Errorf("there arrive %+v", h.Seen)
			}
			if n := h.stats.FramesIn.Load(); (n == 0) != own || own && h.counts.FramesIn.Load() == 0 {
				t.Errorf("%d frames are counted by the controller", n)
			}
			if h.asked.Err() == nil {
				t.Error("the context of its admission goes on")
			}
		})
	}
}

// A client with another schema is sent the server's tables. It accepts them, or leaves because of
// them, which is only counted as a refusal.
func TestTheServersTablesAreTold(t *testing.T) {
	tables, err := transport.AppendTables(nil, &netloopv1.SchemaTables{})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := transport.AppendFrame(nil, &netloopv1.Frame{Kind: &netloopv1.Frame_SchemaAccepted{SchemaAccepted: &netloopv1.SchemaAccepted{}}})
	if err != nil {
		t.Fatal(err)
	}
	counted := func(h *testController) [3]uint64 {
		return [3]uint64{h.stats.Refused.Load(), h.stats.Dropped(transport.DropHello), h.stats.Dropped(transport.DropHelloTimeout)}
	}
	open(t, "it accepts", func(t *testing.T, h *testController) {
		h.tables = tables
		g := h.connect(helloFrame(t))
		if frame, _ := g.said(t); frame.GetSchemaPart() == nil || g.WroteBy != g.Deadline || g.WroteBy.IsZero() {
			t.Fatalf("it reads %v, written until %v", frame, g.WroteBy)
		}
		g.Stream <- accepted
		if h.seen(transport.Joined) != 1 || counted(h) != [3]uint64{} {
			t.Error("it is not let in:", counted(h))
		}
	})
	open(t, "it leaves", func(t *testing.T, h *testController) {
		h.tables = tables
		g := h.connect(helloFrame(t))
		g.Mu.Lock()
		g.Wrote, g.Why = nil, transport.Closed{Code: transport.CodeSchemaMismatch, Remote: true}
		g.Mu.Unlock()
		g.Cut()
		synctest.Wait()
		if frame, closed := g.said(t); frame != nil || closed != 0 || counted(h) != [3]uint64{1, 0, 0} {
			t.Errorf("it reads %v, %v; counted %v", frame, closed, counted(h))
		}
	})
	open(t, "it says nothing more", func(t *testing.T, h *testController) {
		h.tables = tables
		g := h.connect(helloFrame(t))
		<-g.Context().Done()
		if _, closed := g.said(t); closed != transport.CodeTimeout || counted(h) != [3]uint64{1, 0, 1} {
			t.Errorf("it is closed with %v; counted %v", closed, counted(h))
		}
	})
	open(t, "it ends its stream", func(t *testing.T, h *testController) {
		h.tables = tables
		g := h.connect(helloFrame(t), []byte{})
		<-g.Context().Done()
		if _, closed := g.said(t); closed != transport.CodeProtocol || counted(h) != [3]uint64{1, 1, 0} {
			t.Errorf("it is closed with %v; counted %v", closed, counted(h))
		}
	})
	open(t, "it does not take them", func(t *testing.T, h *testController) {
		h.tables = tables
		g := &testConn{Wire: nettest.NewWire()}
		g.Fails = nettest.ErrGone
		h.serveConn(g, helloFrame(t))
		if _, closed := g.said(t); closed != transport.CodeProtocol || counted(h) != [3]uint64{1, 1, 0} {
			t.Errorf("it is closed with %v; counted %v", closed, counted(h))
		}
	})
}

// A client that leaves during its admission gets no answer and is not counted as refused.
func TestALeavingClientGetsNoAnswer(t *testing.T) {
	open(t, "during its admission", func(t *testing.T, h *testController) {
		h.admits = func(ctx context.Context, _ *netloopv1.Hello) error { <-ctx.Done(); return ctx.Err() }
		g := h.connect(helloFrame(t))
		g.Cut()
		synctest.Wait()
		if frame, closed := g.said(t); frame != nil || closed != 0 || h.stats.Refused.Load() != 0 || h.log.Len() != 0 {
			t.Errorf("it reads %v, %v, and the log %q", frame, closed, h.log.String())
		}
	})
}

// An admitted client has a session that ends, even if its welcome cannot be written.
func TestAWelcomeThatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		welcome *netloopv1.Welcome
		fails   error
		log     string
		closed  transport.Code
	}{
		"it cannot be encoded": {&netloopv1.Welcome{Room: "\xff"}, nil, "encoding the welcome failed", transport.CodeInternal},
		"it cannot be sent":    {nil, nettest.ErrGone, "", transport.CodeProtocol},
	} {
		open(t, name, func(t *testing.T, h *testController) {
			g := &testConn{Wire: nettest.NewWire()}
			h.says, g.Fails = c.welcome, c.fails
			h.serveConn(g, helloFrame(t))
			<-g.Context().Done()
			if _, closed := g.said(t); closed != c.closed || h.seen(transport.Joined) != 1 || h.seen(transport.Gone) != 1 {
				t.Errorf("it is closed with %v", closed)
			}
			if logged := h.log.String(); (logged != "") != (c.log != "") || !strings.Contains(logged, c.log) {
				t.Errorf("the log is told %q", logged)
			}
		})
	}
}

// An approved client is not counted as unadmitted any more, however long its admission takes.
func TestAnApprovedConnectionIsNotUnadmitted(t *testing.T) {
	open(t, "a queue", func(t *testing.T, h *testController) {
		h.admits = func(ctx context.Context, _ *netloopv1.Hello) error {
			time.Sleep(time.Second)
			transport.Approved(ctx)
			time.Sleep(time.Second)
			return nil
		}
		h.connect(helloFrame(t))
		for _, want := range []int{1, 0} {
			time.Sleep(time.Second / 2)
			if _, met := h.Unadmitted(); met != want {
				t.Errorf("%d are unadmitted connections, want %d", met, want)
			}
			time.Sleep(time.Second / 2)
		}
	})
}

// A moving client is admitted anew, with the handler's data of its last admission. A client that
// was told to move and does not is closed after a timeout.
func TestAClientThatMovesIsAskedAboutAnew(t *testing.T) {
	known := make(chan any, 4)
	moving := func(t *testing.T, h *testController) (g *testConn, move func(n int) *transport.Session) {
		h.admits = func(ctx context.Context, _ *netloopv1.Hello) error { known <- transport.Who(ctx); return nil }
		h.knows = func() any { return h.last.Load() }
		g = h.connect(helloFrame(t))
		return g, func(n int) *transport.Session {
			t.Helper()
			if h.seen(transport.Joined) != n {
				t.Fatalf("it has not joined %d times", n)
			}
			var s *transport.Session
			for _, a := range h.Seen {
				if a.Kind == transport.Joined {
					s = a.Session
				}
			}
			s.Move("a ticket")
			synctest.Wait()
			return s
		}
	}
	open(t, "twice", func(t *testing.T, h *testController) {
		g, move := moving(t, h)
		for n, want := range []any{nil, uint64(1), nil, uint64(3)} {
			if got := <-known; got != want {
				t.Errorf("at admission %d it is known as %v, want %v", n+1, got, want)
			}
			if n < 3 {
				move(n + 1)
				g.Stream <- helloWithTicket(t, []string{"a ticket", "", "a ticket"}[n])
				synctest.Wait()
			}
		}
	})
	open(t, "slowly", func(t *testing.T, h *testController) {
		g, move := moving(t, h)
		<-known
		move(1)
		h.admits = func(context.Context, *netloopv1.Hello) error { time.Sleep(9 * time.Second); return nil }
		time.Sleep(4 * time.Second)
		g.Stream <- helloWithTicket(t, "a ticket")
		time.Sleep(time.Minute)
		if n := h.seen(transport.Joined); n != 2 || g.Context().Err() != nil {
			t.Errorf("it has joined %d times, and is closed with %+v", n, g.Closes)
		}
	})
	open(t, "into a refusal", func(t *testing.T, h *testController) {
		g, move := moving(t, h)
		move(1)
		h.admits = func(context.Context, *netloopv1.Hello) error { return transport.Refuse(transport.CodeFull, "all") }
		g.Stream <- helloFrame(t)
		<-g.Context().Done()
		if why := g.Closes[0]; why.Code != transport.CodeFull || why.Text != "all" || h.stats.Refused.Load() != 1 || h.log.Len() != 0 {
			t.Errorf("it is closed with %+v, and the log reads %q", why, h.log.String())
		}
		<-known
	})
	open(t, "into an error", func(t *testing.T, h *testController) {
		g, move := moving(t, h)
		move(1)
		h.admits = func(context.Context, *netloopv1.Hello) error { return errors.New("the disk is full") }
		g.Stream <- helloFrame(t)
		<-g.Context().Done()
		if why := g.Closes[0]; why.Code != transport.CodeInternal || h.stats.Refused.Load() != 1 || !strings.Contains(h.log.String(), "the disk is full") {
			t.Errorf("it is closed with %+v, and the log reads %q", why, h.log.String())
		}
		<-known
	})
	open(t, "not at all", func(t *testing.T, h *testController) {
		g, move := moving(t, h)
		move(1)
		began := time.Now()
		<-g.Context().Done()
		if took := time.Since(began); took != 5*time.Second+driver.Linger || g.Closes[0].Code != transport.CodeTimeout {
			t.Errorf("after %v it is closed with %+v", took, g.Closes[0])
		}
		<-known
	})
}

// When the Controller closes, sessions may write their remaining data until ctx ends; then all are
// closed, with the reason of Refuse.
func TestCloseEndsSessions(t *testing.T) {
	for name, c := range map[string]struct {
		limit, want time.Duration
	}{
		"that has time":    {time.Hour, driver.Linger},
		"that has less":    {driver.Linger / 2, driver.Linger / 2},
		"that has no time": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &testController{stats: new(transport.Stats)}
				h.Owner = nettest.NewOwner(h.stats)
				h.Controller = New(Config{Handler: h, Stats: h.stats})
				in, out := h.connect(helloFrame(t)), h.connect()
				h.Refuse(transport.CodeKicked, "for good")
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				h.Close(ctx)
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				want := transport.Closed{Code: transport.CodeKicked, Text: "for good"}
				for _, g := range []*testConn{in, out} {
					if len(g.Closes) == 0 || g.Closes[0] != want {
						t.Errorf("it was closed with %+v", g.Closes)
					}
				}
			})
		})
	}
}

// A repeated error is logged once in ten seconds for each kind, with the number of messages left
// out.
func TestTheLogIsNotFilled(t *testing.T) {
	open(t, "by errors", func(t *testing.T, h *testController) {
		for _, c := range []struct {
			what string
			want string // in the log; "": no message
			wait time.Duration
		}{
			{"this", "unlogged_before=0", 0}, {"this", "", time.Second}, {"that", "unlogged_before=0", 0}, {"this", "", 8 * time.Second}, {"this", "unlogged_before=2", 10 * time.Second},
		} {
			time.Sleep(c.wait)
			h.log.Reset()
			h.Failed(c.what, "of", 7)
			if got := h.log.String(); (got != "") != (c.want != "") || c.want != "" && (!strings.Contains(got, c.want) || !strings.Contains(got, "of=7") || !strings.Contains(got, c.what)) {
				t.Errorf("%s: the log reads %q, want %q", c.what, got, c.want)
			}
		}
	})
}

// An unadmitted connection that is evicted gets the reason, and is counted once, only as dismissed.
func TestAnEvictedConnectionGetsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &testController{stats: new(transport.Stats)}
		h.Controller = New(Config{Handler: h, Stats: h.stats, MaxUnadmitted: 2, HelloTimeout: time.Hour})
		var all []*testConn
		for n := range 3 {
			g := &testConn{Wire: nettest.NewWire()}
			g.Addr.Store(&net.UDPAddr{IP: net.IPv4(10, 0, byte(n), 1), Port: 1})
			h.serveConn(g)
			all = append(all, g)
			time.Sleep(dismissAfter)
		}
		if _, closed := all[0].said(t); closed != transport.CodeBusy || h.stats.Refused.Load() != 1 {
			t.Errorf("the oldest is closed with %v, and %d are counted", closed, h.stats.Refused.Load())
		}
		if dismissed, malformed := h.stats.Dropped(transport.DropDismissed), h.stats.Dropped(transport.DropHello); dismissed != 1 || malformed != 0 {
			t.Errorf("%d are counted as dismissed and %d as malformed, want 1 and 0", dismissed, malformed)
		}
		for _, g := range all[1:] {
			if _, closed := g.said(t); closed != 0 {
				t.Error("another one is closed with", closed)
			}
		}
		h.Close(t.Context())
	})
}

// Settings of a Config are kept, and missing ones get defaults.
func TestConfigIsKeptAndCompleted(t *testing.T) {
	said := Config{
		Clock: func() time.Duration { return time.Hour }, Stats: new(transport.Stats), Log: slog.New(slog.DiscardHandler),
		HelloTimeout: 1, AdmitTimeout: 1, MaxConns: 1, MaxUnadmitted: 1,
		Refusing: func() (transport.Code, bool) { return transport.CodeBusy, false },
	}
	c := said.complete()
	if c.HelloTimeout != 1 || c.AdmitTimeout != 1 || c.MaxConns != 1 || c.MaxUnadmitted != 1 || c.Stats != said.Stats || c.Log != said.Log {
		t.Errorf("%+v becomes %+v", said, c)
	}
	if code, _ := c.Refusing(); code != transport.CodeBusy || c.Clock() != time.Hour {
		t.Error("another clock is taken, or another answer")
	}
	synctest.Test(t, func(t *testing.T) {
		d := New(Config{})
		time.Sleep(time.Minute)
		if c := d.cfg; c.HelloTimeout != 5*time.Second || c.AdmitTimeout != 10*time.Second || c.MaxConns != 4096 || c.MaxUnadmitted != 1024 || c.Clock() != time.Minute {
			t.Errorf("the defaults are %+v", c)
		}
		d.Failed("nobody is told")
		for n := range 3 * resumeBurst {
			if d.Reserve(from(n), true) == nil {
				t.Fatal("somebody is turned away")
			}
		}
	})
	for conns, want := range map[int]int{1: minBurst, minBurst: minBurst, 500: 500} {
		if got := New(Config{MaxConns: conns}).unadmitted.rates.burst; got != want {
			t.Errorf("a controller for %d takes %d at once, want %d", conns, got, want)
		}
	}
}

// Unadmitted counts half-open handshakes with unproven addresses and connected clients, but no
// half-open handshakes with proven addresses.
func TestUnadmittedReportsCounts(t *testing.T) {
	open(t, "by their stage", func(t *testing.T, h *testController) {
		forged := h.Reserve(from(1), false)
		known := h.Reserve(from(2), true)
		h.connect()
		if halfOpen, met := h.Unadmitted(); halfOpen != 1 || met != 1 {
			t.Errorf("%d are half open, and %d connected", halfOpen, met)
		}
		forged.Release()
		known.Release()
	})
}

// timedConn is a connection with a socket that measures the waiting times of datagrams.
type timedConn struct {
	*testConn
	followed []net.Addr
}

func (g *timedConn) Follow(at net.Addr) driver.Arrivals {
	g.followed = append(g.followed, at)
	return noWait{}
}

type noWait struct{}

func (noWait) Waited(int, time.Time) time.Duration { return 0 }
func (noWait) Leave()                              {}

// The address of a client is followed in a socket that measures.
func TestASocketThatMeasuresFollowsItsClients(t *testing.T) {
	open(t, "timed", func(t *testing.T, h *testController) {
		g := &timedConn{testConn: &testConn{Wire: nettest.NewWire()}}
		g.Stream <- helloFrame(t)
		h.Reserve(g.RemoteAddr(), true).Serve(g)
		if synctest.Wait(); len(g.followed) != 1 || g.followed[0] != g.RemoteAddr() {
			t.Errorf("followed: %v", g.followed)
		}
	})
}
