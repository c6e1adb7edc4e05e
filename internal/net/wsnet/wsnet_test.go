package wsnet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/web"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a server under test: pages with WebSockets, and a Controller with an owner that collects
// arrivals.
type host struct {
	*nettest.Owner
	t         *testing.T
	at        string
	admission *admission.Controller
	stats     *transport.Stats
	admit     atomic.Pointer[func(context.Context) error]

	tables []byte
	stop   func()

	sockets *Server
	last    atomic.Uint64
}

// Tables implements transport.Handler: all clients have the same tables, unless a test sets others.
func (h *host) Tables(*netloopv1.Hello) ([]byte, error) { return h.tables, nil }

// Admit implements transport.Handler.
func (h *host) Admit(ctx context.Context, _ *netloopv1.Hello, _ string) (*transport.Admitted, error) {
	if admit := h.admit.Load(); admit != nil {
		if err := (*admit)(ctx); err != nil {
			return nil, err
		}
	}
	id := h.last.Add(1)
	return &transport.Admitted{
		Welcome: &netloopv1.Welcome{
			Protocol: transport.ProtocolVersion, ClientId: id,
			TickRate: &netloopv1.Rate{Num: 60, Den: 1}, FixedRate: &netloopv1.Rate{Num: 60, Den: 1},
		},
		Session: transport.SessionConfig{ID: id, Inbox: h.Arrivals, Limits: transport.DefaultLimits},
		Joined:  func(s *transport.Session) { h.Arrivals.Push(transport.Arrival{Kind: transport.Joined, Session: s}) },
	}, nil
}

// settings are the settings of a host that a test may change.
type settings struct {
	admission admission.Config
	origins   []string
	idle      time.Duration
	tls       *tls.Config
	proxies   []string
	through   func(net.Conn) net.Conn
}

// take is the Take of a server on a [connlimit.Pool].
func take(r *http.Request) (net.Conn, func() bool) {
	c := connlimit.FromContext(r.Context())
	return c.Conn, c.Detach
}

func serve(t *testing.T, change func(*settings)) *host {
	t.Helper()
	h := &host{t: t, stats: new(transport.Stats)}
	h.Owner = nettest.NewOwner(h.stats)
	o := settings{admission: admission.Config{Handler: h, Stats: h.stats}}
	if change != nil {
		change(&o)
	}
	h.admission = admission.New(o.admission)
	origins, err := origin.Parse(o.origins)
	if err != nil {
		t.Fatal(err)
	}
	h.sockets = New(Config{Admission: h.admission, Origins: origins, Stats: h.stats, IdleTimeout: o.idle, Take: take, Through: o.through})
	proxies, err := web.ParseProxies(o.proxies)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := web.Listen(web.Config{
		Proxies: proxies,
		Listen:  "127.0.0.1:0", TLS: o.tls, Socket: h.sockets, Origins: origins, Counts: new(web.Counts), Log: slog.New(slog.DiscardHandler),
		Facts: func() web.Facts { return web.Facts{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.at = pages.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- pages.Serve(ctx) }()
	h.stop = sync.OnceFunc(func() {
		closing, end := context.WithTimeout(context.Background(), time.Second)
		defer end()
		h.admission.Close(closing)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		h.sockets.Close()
	})
	t.Cleanup(h.stop)
	return h
}

// testClient is a client under test.
type testClient struct {
	*nettest.Owner
	*transport.Session
	welcome *netloopv1.Welcome
}

func dial(h *host, d *Dialer, conf *tls.Config) (*testClient, error) {
	return dialFor(nettest.Patience, h, d, conf)
}

// dialFor dials within a time.
func dialFor(limit time.Duration, h *host, d *Dialer, conf *tls.Config) (*testClient, error) {
	g := &testClient{Owner: nettest.NewOwner(nil)}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	to, err := URL(h.at, conf == nil)
	if err != nil {
		return nil, err
	}
	g.Session, g.welcome, err = d.Dial(ctx, DialConfig{
		URL: to, TLS: conf, Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals},
	})
	return g, err
}

func mustDial(t *testing.T, h *host, conf *tls.Config) *testClient {
	t.Helper()
	d := NewDialer()
	t.Cleanup(d.Close)
	g, err := dial(h, d, conf)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// session is the server's end of a client.
func (h *host) session(g *testClient) *transport.Session {
	return h.Find(h.t, "the join", func(a *transport.Arrival) bool {
		return a.Kind == transport.Joined && a.Session.ID() == g.ID()
	}).Session
}

// Messages, whole snapshots, acknowledgements and time sync work as on every transport, encrypted
// or not.
func TestMessagesStateAndTimeTravel(t *testing.T) {
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	for name, conf := range map[string]*tls.Config{"ws": nil, "wss": {Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, func(o *settings) { o.tls = conf })
			trust := conf
			if trust != nil {
				trust = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
			}
			travel(t, h, mustDial(t, h, trust))
		})
	}
}

// counted counts the bytes that a connection has carried.
type counted struct {
	net.Conn
	in, out *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	c.out.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// A simulated network transfers all bytes of a WebSocket, in both directions.
func TestAWebSocketGoesThroughAnotherConnection(t *testing.T) {
	var in, out atomic.Int64
	h := serve(t, func(o *settings) {
		o.through = func(c net.Conn) net.Conn { return counted{c, &in, &out} }
	})
	_ = mustDial(t, h, nil)
	if in.Load() == 0 || out.Load() == 0 {
		t.Errorf("%d bytes in and %d out", in.Load(), out.Load())
	}
}

func travel(t *testing.T, h *host, g *testClient) {
	s := h.session(g)
	for i := range 20 {
		g.Send(transport.Message{Method: uint32(i), Stage: 3, Reliable: true, Payload: make([]byte, 3000)})
	}
	g.Send(transport.Message{Method: 99, Payload: []byte("unreliable")})
	g.RequestTime()
	g.Flush(0)
	h.Find(t, "the unreliable message", func(a *transport.Arrival) bool { return a.Message.Method == 99 })
	h.Find(t, "the last message", func(a *transport.Arrival) bool { return a.Message.Method == 19 })
	var order []uint32
	for _, a := range h.Seen {
		if a.Message.Reliable {
			order = append(order, a.Message.Method)
		}
	}
	if fmt.Sprint(order) != "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19]" {
		t.Error("the order is", order)
	}
	slot := s.Slot()
	for i := range transport.MaxStatePackets {
		slot.Packets = append(slot.Packets, append(make([]byte, transport.MaxStatePacket-1), byte(i)))
	}
	s.Flush(0)
	g.Find(t, "the time", nettest.Kind(transport.TimeSample))
	nettest.Eventually(t, "the snapshot", func() bool {
		g.Seen = append(g.Seen, g.Arrivals.Swap(nil)...)
		n := 0
		for _, a := range g.Seen {
			if a.Kind == transport.State {
				n++
				g.AckState(uint64(a.State[transport.MaxStatePacket-1]))
			}
		}
		return n == transport.MaxStatePackets
	})
	g.Flush(0)
	if a := h.Find(t, "the acks", nettest.Kind(transport.Acks)); fmt.Sprint(a.Acks) != "[{0 9}]" {
		t.Error("acknowledged", a.Acks)
	}
	nettest.Eventually(t, "the slot", func() bool { return s.Slot() != nil })
	nettest.Eventually(t, "the round trip", func() bool {
		s.RequestTime()
		s.Flush(0)
		return kernelIsMute() || s.LinkFacts().SRTT > 0
	})
	if n := h.stats.Joined[transport.WebSocket].Load(); n != 1 {
		t.Error(n, "joins are counted")
	}
}

// Either end's reason for its close arrives, after all data that it has sent.
func TestCloseTellsTheOtherEndWhy(t *testing.T) {
	h := serve(t, nil)
	g := mustDial(t, h, nil)
	s := h.session(g)
	s.Send(transport.Message{Method: 1, Reliable: true, Payload: []byte("last words")})
	s.Close(transport.CodeKicked, "cheated")
	a := g.Find(t, "the client's end", nettest.Kind(transport.Gone))
	if *a.Closed != (transport.Closed{Code: transport.CodeKicked, Text: "cheated", Remote: true}) {
		t.Errorf("the client reads %+v", a.Closed)
	}
	g.Find(t, "the last words", nettest.Kind(transport.MessageArrived))
	if a := h.Find(t, "the server's end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeKicked || a.Closed.Remote {
		t.Errorf("the server reads %+v", a.Closed)
	}
	g = mustDial(t, h, nil)
	h.session(g)
	g.Close(transport.CodeLeft, "bye")
	a = h.Find(t, "the server's end", func(a *transport.Arrival) bool { return a.Kind == transport.Gone && a.Session.ID() == g.ID() })
	if *a.Closed != (transport.Closed{Code: transport.CodeLeft, Text: "bye", Remote: true}) {
		t.Errorf("the server reads %+v", a.Closed)
	}
}

// At the end of the server every client gets the reason, and no connection is left.
func TestTheEndOfTheServerTellsEveryClient(t *testing.T) {
	h := serve(t, nil)
	var clients []*testClient
	for range 7 {
		clients = append(clients, mustDial(t, h, nil))
	}
	h.admission.Refuse(transport.CodeClosing, "see you")
	h.stop()
	for _, g := range clients {
		if a := g.Find(t, "the client's end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeClosing || a.Closed.Text != "see you" || !a.Closed.Remote {
			t.Errorf("the client reads %+v", a.Closed)
		}
	}
}

// A refusal reaches the client with its text, and a closed dialer sends a goodbye and dials no
// more.
func TestRefusalsAndClosedDialers(t *testing.T) {
	h := serve(t, nil)
	d := NewDialer()
	g, err := dial(h, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if a := g.Find(t, "the client's end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeLeft {
		t.Errorf("the client reads %+v", a.Closed)
	}
	if _, err := dial(h, d, nil); !errors.Is(err, driver.ErrDialerClosed) {
		t.Error("a dial after the close says", err)
	}
	full := func(context.Context) error { return transport.Refuse(transport.CodeFull, "all of them") }
	h.admit.Store(&full)
	other := NewDialer()
	defer other.Close()
	var r *transport.Refusal
	if _, err := dial(h, other, nil); !errors.As(err, &r) || r.Code != transport.CodeFull || r.Text != "all of them" {
		t.Error("the refusal is", err)
	}
	h.admission.Refuse(transport.CodeClosing, "see you")
	if _, err := dial(h, other, nil); !errors.As(err, &r) || r.Code != transport.CodeClosing || r.Text != "see you" {
		t.Error("a closing server says", err)
	}
}

// A server that admits no client refuses before the upgrade, and a client tries again.
func TestWhereThereIsNoPlaceAClientAsksAgain(t *testing.T) {
	var asked, welcome atomic.Uint64
	welcome.Store(3)
	h := serve(t, func(o *settings) {
		o.admission.Refusing = func() (transport.Code, bool) {
			if asked.Add(1) < welcome.Load() {
				return transport.CodeBusy, false
			}
			return 0, false
		}
	})
	mustDial(t, h, nil)
	if n := h.stats.Dropped(transport.DropOverload); n != 2 || asked.Load() != 3 {
		t.Errorf("%d refusals are counted of %d questions", n, asked.Load())
	}
	welcome.Store(1 << 40)
	d := NewDialer()
	defer d.Close()
	var r *transport.Refusal
	if _, err := dialFor(4*driver.DialPause, h, d, nil); !errors.As(err, &r) || r.Code != transport.CodeBusy {
		t.Error("in the end it says", err)
	}
}

// Foreign pages may not connect, and the answer tells their author the option; the server's own
// pages, listed ones and programs may.
func TestForeignPagesMayNotConnect(t *testing.T) {
	h := serve(t, func(o *settings) { o.origins = []string{"https://example.org"} })
	for from, want := range map[string]int{"": 101, "http://" + h.at: 101, "https://example.org": 101, "https://evil.example": 403, "null": 403, "http://127.0.0.1:1": 403} {
		header := http.Header{}
		if from != "" {
			header.Set("Origin", from)
		}
		//nolint:bodyclose // The library closes it.
		ws, resp, err := websocket.Dial(t.Context(), "ws://"+h.at+endpoint.Path, &websocket.DialOptions{Subprotocols: []string{Protocol}, HTTPHeader: header})
		if err == nil {
			_ = ws.CloseNow()
		}
		if resp == nil || resp.StatusCode != want {
			t.Errorf("%q: %v, %v", from, resp, err)
		}
	}
	if n := h.stats.Dropped(transport.DropOrigin); n != 3 {
		t.Error(n, "foreign pages are counted")
	}
}

// URL completes an address without a scheme, without TLS where that is the default.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		addr  string
		local bool
		want  string
	}{
		{"127.0.0.1:8000", true, "ws://127.0.0.1:8000/netloop"},
		{"game.example:443", false, "wss://game.example:443/netloop"},
		{"ws://game.example:80", false, "ws://game.example:80/netloop"},
		{"wss://game.example/", true, "wss://game.example/netloop"},
		{"wss://game.example/behind/proxy", false, "wss://game.example/behind/proxy"},
		{"ws://[::1]", true, "ws://[::1]/netloop"}, {"http://game.example", false, ""}, {"ws://", false, ""}, {"%zz", false, ""},
	} {
		if got, err := URL(c.addr, c.local); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.addr, got, err)
		}
	}
}

// HostOf returns the port, explicit or by default.
func TestHostsOfURLs(t *testing.T) {
	for of, want := range map[string]string{
		"ws://a:1/x": "a:1", "ws://a/x": "a:80", "wss://a/x": "a:443", "ws://[::1]/x": "[::1]:80", "wss://[::1]:5": "[::1]:5", "%zz": "",
	} {
		if got := HostOf(of); got != want {
			t.Errorf("%s: %s", of, got)
		}
	}
}

// A dial to a closed port or to another service fails at once with the reason.
func TestDialsThatLeadNowhere(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	h := serve(t, nil)
	d := NewDialer()
	defer d.Close()
	for to, want := range map[string]string{"ws://" + closed.Addr().String(): "refused", "ws://" + h.at + "/elsewhere": "is not a netloop WebSocket: 404 Not Found"} {
		_, _, err := d.Dial(t.Context(), DialConfig{URL: to, Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)}})
		if err == nil || !contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hang := func(context.Context) error { cancel(); time.Sleep(time.Millisecond); return nil }
	h.admit.Store(&hang)
	_, _, err = d.Dial(ctx, DialConfig{URL: "ws://" + h.at + endpoint.Path, Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)}})
	if err != nil && !errors.Is(err, context.Canceled) { // The welcome may have been there first.
		t.Error("a dial that is given up says", err)
	}
}

// A full server still reads some hellos, because a returning client has a seat. It does so for
// proven addresses only, and the address of a TCP connection is proven.
func TestAFullServerHearsAClient(t *testing.T) {
	h := serve(t, func(o *settings) {
		o.admission.Refusing = func() (transport.Code, bool) { return transport.CodeFull, true }
	})
	mustDial(t, h, nil)
	if n := h.stats.Dropped(transport.DropUnproven); n != 0 {
		t.Errorf("%d clients are refused as unproven", n)
	}
}
