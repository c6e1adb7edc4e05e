package quicnet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a server under test: it admits with a function, and collects arrivals.
type host struct {
	*nettest.Owner
	t        *testing.T
	listener *Listener
	stats    *transport.Stats
	admit    atomic.Pointer[admitFunc]

	once     sync.Once
	mu       sync.Mutex
	lastID   uint64
	tables   []byte // sent to every client
	sessions []*transport.Session
}

// admitFunc decides on a hello.
type admitFunc func(context.Context, *netloopv1.Hello) error

func (h *host) admitBy(a admitFunc) { h.admit.Store(&a) }

// Tables returns the tables of the test.
func (h *host) Tables(*netloopv1.Hello) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tables, nil
}

func (h *host) Admit(ctx context.Context, hello *netloopv1.Hello, _ string) (*transport.Admitted, error) {
	if admit := h.admit.Load(); admit != nil {
		if err := (*admit)(ctx, hello); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	return &transport.Admitted{
		Welcome: nettest.Welcome(h.lastID),
		Session: transport.SessionConfig{ID: h.lastID, Inbox: h.Arrivals},
		Joined: func(s *transport.Session) {
			h.mu.Lock()
			h.sessions = append(h.sessions, s)
			h.mu.Unlock()
			h.Arrivals.Push(transport.Arrival{Kind: transport.Joined, Session: s})
		},
	}, nil
}

func serve(t *testing.T, change func(*ServerConfig)) *host {
	t.Helper()
	h := &host{t: t, stats: new(transport.Stats)}
	h.Owner = nettest.NewOwner(h.stats)
	cfg := ServerConfig{Listen: "127.0.0.1:0", Config: admission.Config{Handler: h, Stats: h.stats}}
	if change != nil {
		change(&cfg)
	}
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.listener = l
	t.Cleanup(h.close)
	return h
}

// close closes the listener, once.
func (h *host) close() {
	h.once.Do(func() {
		if err := h.listener.Close(context.Background()); err != nil {
			h.t.Error(err)
		}
	})
}

// testClient is a client under test.
type testClient struct {
	*nettest.Owner
	*transport.Session
	welcome *netloopv1.Welcome
}

func dial(t *testing.T, h *host, d *Dialer, he *netloopv1.Hello) (*testClient, error) {
	t.Helper()
	return dialAt(h.listener.Addr().String(), d, he)
}

func dialAt(addr string, d *Dialer, he *netloopv1.Hello) (*testClient, error) {
	g := &testClient{Owner: nettest.NewOwner(nil)}
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	var err error
	g.Session, g.welcome, err = Dial(ctx, DialConfig{
		Addr: addr, Greeting: transport.Greeting{Hello: he}, Dialer: d,
		Session: transport.SessionConfig{Inbox: g.Arrivals},
	})
	return g, err
}

func mustDial(t *testing.T, h *host, d *Dialer) *testClient {
	t.Helper()
	return mustDialAt(t, h.listener.Addr().String(), d)
}

func mustDialAt(t *testing.T, addr string, d *Dialer) *testClient {
	t.Helper()
	g, err := dialAt(addr, d, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Session.Close(transport.CodeLeft, "")
		g.Find(t, "the client's end", nettest.Kind(transport.Gone))
	})
	return g
}

// session is the server's end of a client.
func (h *host) session(g *testClient) *transport.Session {
	return h.Find(h.t, "the join", func(a *transport.Arrival) bool {
		return a.Kind == transport.Joined && a.Session.ID() == g.ID()
	}).Session
}

// TestMessagesStateAndTimeTravel, with udpbatch and with a plain socket.
func TestMessagesStateAndTimeTravel(t *testing.T) {
	for _, c := range []struct {
		name, env string
		plain     bool
	}{{"gate", "", false}, {"plain", "", true}, {"plain by environment", "true", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NETLOOP_PLAIN_SOCKET", c.env)
			var socket udpbatch.Stats
			h := serve(t, func(cfg *ServerConfig) { cfg.PlainSocket, cfg.Socket = c.plain, &socket })
			testTravel(t, h)
			gated := runtime.GOOS == "linux" && c.name == "gate"
			if in, out := socket.Received.Load() > 0, socket.Sent.Load() > 0; in != gated || out != gated {
				t.Errorf("packets pass through the gate: in %v, out %v, want %v", in, out, gated)
			}
		})
	}
}

func testTravel(t *testing.T, h *host) {
	g := mustDial(t, h, nil)
	if g.ID() != g.welcome.ClientId || g.ID() == 0 {
		t.Error("the client's id is", g.ID())
	}
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
	s.Send(transport.Message{Method: 7, Call: 3, Reply: true, Code: uint32(transport.CodeRefused), Text: "no", Reliable: true})
	s.PublishEpoch(transport.Epoch{Tick: 5, At: 6})
	s.Flush(0)
	g.Find(t, "the epoch", nettest.Kind(transport.EpochMoved))
	g.Find(t, "the time", nettest.Kind(transport.TimeSample))
	a := g.Find(t, "the reply", nettest.Kind(transport.MessageArrived))
	if a.Message.Text != "no" || a.Message.Code != uint32(transport.CodeRefused) || a.Message.Call != 3 {
		t.Errorf("the reply is %+v", a.Message)
	}
	nettest.Eventually(t, "the snapshot", func() bool {
		g.Poll()
		n := uint64(0)
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
}

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

func TestListenerCloseTellsEveryClient(t *testing.T) {
	h := serve(t, nil)
	d, err := NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var clients []*testClient
	for range 20 {
		clients = append(clients, mustDial(t, h, d))
	}
	h.listener.Admission().Refuse(transport.CodeClosing, "see you")
	h.close()
	for _, g := range clients {
		a := g.Find(t, "the client's end", nettest.Kind(transport.Gone))
		if a.Closed.Code != transport.CodeClosing || a.Closed.Text != "see you" || !a.Closed.Remote {
			t.Errorf("the client reads %+v", a.Closed)
		}
	}
}

func TestRefusalsReachTheClientInWords(t *testing.T) {
	h := serve(t, nil)
	check := func(name string, he *netloopv1.Hello, code transport.Code, text string) {
		t.Helper()
		_, err := dial(t, h, nil, he)
		var r *transport.Refusal
		if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Text, text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.admitBy(func(context.Context, *netloopv1.Hello) error {
		return &transport.Refusal{Code: transport.CodeSchemaMismatch, Text: "class ship: field x"}
	})

	check("admission", nettest.Hello(), transport.CodeSchemaMismatch, "class ship: field x")
	h.admitBy(func(context.Context, *netloopv1.Hello) error { return errors.New("the database password is 1234") })
	check("an error of the server's own", nettest.Hello(), transport.CodeInternal, "internal error")
	h.admitBy(func(context.Context, *netloopv1.Hello) error { panic("a bug in the game") })
	check("a panic", nettest.Hello(), transport.CodeInternal, "internal error")
	h.admit.Store(nil)
	check("another protocol", &netloopv1.Hello{Protocol: 9}, transport.CodeBadVersion, "client 9")
	h.listener.Admission().Refuse(transport.CodeClosing, "closing soon")
	check("a draining server", nettest.Hello(), transport.CodeClosing, "closing soon")
	if n := h.stats.Refused.Load(); n != 5 {
		t.Error(n, "refusals counted")
	}
}

func TestAdmissionHasADeadline(t *testing.T) {
	h := serve(t, func(c *ServerConfig) { c.AdmitTimeout = 10 * time.Millisecond })
	h.admitBy(func(ctx context.Context, _ *netloopv1.Hello) error { <-ctx.Done(); return ctx.Err() })
	_, err := dial(t, h, nil, nettest.Hello())
	var r *transport.Refusal
	if !errors.As(err, &r) || r.Code != transport.CodeTimeout {
		t.Error(err)
	}
}

func TestPortInUseIsNamed(t *testing.T) {
	h := serve(t, nil)
	addr := h.listener.Addr().String()
	_, err := Listen(ServerConfig{Listen: addr, Config: admission.Config{Handler: h}})
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Error(err)
	}
}

// unsettable is a socket that lets nobody set its options.
type unsettable struct{ net.PacketConn }

func (unsettable) SetReadBuffer(int) error               { return nil }
func (unsettable) SyscallConn() (syscall.RawConn, error) { return nil, errors.New("no options") }

// A listener that QUIC cannot serve is an error, and leaves no socket open.
func TestASocketThatQUICCannotUseIsAnError(t *testing.T) {
	var used net.PacketConn
	l, err := Listen(ServerConfig{Listen: "127.0.0.1:0", QUICOnly: true, Through: func(s net.PacketConn) net.PacketConn {
		used = s
		return unsettable{s}
	}})
	if err == nil || !strings.Contains(err.Error(), "no options") {
		t.Fatalf("%v, want the error of the socket", err)
	}
	if l != nil {
		t.Error("there is a listener beside the error")
	}
	if _, err := used.WriteTo([]byte{0}, used.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket is still open: %v", err)
	}
}

func TestNoServerAnswers(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dead.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, _, err = Dial(ctx, DialConfig{Addr: dead.LocalAddr().String(), Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)}})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer in time") {
		t.Error(err)
	}
}

func TestCertificates(t *testing.T) {
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, func(s *ServerConfig) { s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} })
	addr := h.listener.Addr().String()
	try := func(trust Trust) error {
		conf, err := ClientTLS(addr, trust)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
		defer cancel()
		g := nettest.NewOwner(nil)
		s, _, err := Dial(ctx, DialConfig{Addr: addr, TLS: conf, Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals}})
		if err == nil {
			s.Close(transport.CodeLeft, "")
			g.Find(t, "the end", nettest.Kind(transport.Gone))
		}
		return err
	}
	hash := sha256.Sum256(pair.Certificate[0])
	if err := try(Trust{CertHash: fmt.Sprintf("%x", hash)}); err != nil {
		t.Error("the right hash:", err)
	}
	hash[0]++
	if err := try(Trust{CertHash: fmt.Sprintf("%x", hash)}); err == nil {
		t.Error("the wrong hash was accepted")
	}
	if err := try(Trust{CertHash: "12"}); err == nil || !strings.Contains(err.Error(), "64 hex digits") {
		t.Error(err)
	}
	if err := try(Trust{CAFile: "none.pem"}); err == nil {
		t.Error("no authorities were accepted")
	}
	if conf, err := ClientTLS("example.org:1", Trust{}); err != nil || conf.InsecureSkipVerify {
		t.Error("a development certificate would do for another machine", err)
	}
}
