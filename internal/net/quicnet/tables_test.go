package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// tell makes the host send tables of several frames.
func (h *host) tell(t *testing.T) {
	t.Helper()
	tables, err := transport.AppendTables(nil, &netloopv1.SchemaTables{
		Classes: []*netloopv1.ClassTable{{Name: strings.Repeat("c", 3*transport.MaxFrame)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tables = tables
}

// adaptTo dials with an Adapt.
func adaptTo(h *host, adapt func(*netloopv1.SchemaTables) error) (*transport.Session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	s, _, err := Dial(ctx, DialConfig{
		Addr: h.listener.Addr().String(), Greeting: transport.Greeting{Hello: nettest.Hello(), Adapt: adapt},
		Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)},
	})
	return s, err
}

func TestTablesTravelBeforeAdmission(t *testing.T) {
	h := serve(t, nil)
	h.tell(t)
	var adapted atomic.Bool
	h.admitBy(func(context.Context, *netloopv1.Hello) error {
		if !adapted.Load() {
			return errors.New("asked before the client knew the tables")
		}
		return nil
	})
	s, err := adaptTo(h, func(tables *netloopv1.SchemaTables) error {
		adapted.Store(len(tables.GetClasses()) == 1 && len(tables.GetClasses()[0].GetName()) == 3*transport.MaxFrame)
		return nil
	})
	if err != nil || !adapted.Load() {
		t.Fatal(adapted.Load(), err)
	}
	s.Close(transport.CodeLeft, "")
}

func TestClientThatCannotAdaptIsNeverAdmitted(t *testing.T) {
	h := serve(t, nil)
	h.tell(t)
	h.admitBy(func(context.Context, *netloopv1.Hello) error {
		t.Error("admitted")
		return nil
	})
	_, err := adaptTo(h, func(*netloopv1.SchemaTables) error {
		return &transport.Refusal{Code: transport.CodeSchemaMismatch, Text: "of two minds"}
	})
	var refusal *transport.Refusal
	if !errors.As(err, &refusal) || refusal.Code != transport.CodeSchemaMismatch || refusal.Text != "of two minds" {
		t.Error(err)
	}
	nettest.Eventually(t, "the refusal to be counted", func() bool { return h.stats.Refused.Load() == 1 })
	if n := h.stats.Dropped(transport.DropHello); n != 0 {
		t.Error(n, "hellos counted as malformed")
	}
}

func TestClientThatNeverAcceptsTimesOut(t *testing.T) {
	h := serve(t, func(c *ServerConfig) { c.HelloTimeout = 100 * time.Millisecond })
	h.tell(t)
	r := rawDial(t, h, clientWindow)
	b, err := transport.AppendHello(nil, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.stream.Write(b); err != nil {
		t.Fatal(err)
	}
	if code := r.closedWith(t); code != transport.CodeTimeout {
		t.Error("closed with", code)
	}
}

// TestServerThatBreaksTheProtocolIsTold answers a hello with invalid answers.
func TestServerThatBreaksTheProtocolIsTold(t *testing.T) {
	l := rawListen(t)
	for name, answer := range map[string]string{
		"garbage":            "\x02\xff\xff",
		"an endless length":  "\xff\xff\xff",
		"a hello":            "\x02\x0a\x00",
		"two kinds":          "\x04\x12\x00\x1a\x00",
		"parts without end":  strings.Repeat("\x04\x4a\x02\x08\x05", 40),
		"malformed tables":   "\x08\x4a\x06\x08\x02\x12\x02\xff\xff",
		"a welcome too soon": "\x07\x4a\x05\x08\x05\x12\x01\x00\x06\x12\x04\x32\x00\x3a\x00",
	} {
		t.Run(name, func(t *testing.T) {
			told, err := answered(l, answer, 0)
			if err == nil {
				t.Error("the client is content")
			}
			if told != transport.CodeProtocol {
				t.Error("the server is told", told)
			}
		})
	}
}

// TestTablesThatDoNotEndTimeOut sends one part only, for a dial without a deadline.
func TestTablesThatDoNotEndTimeOut(t *testing.T) {
	told, err := answered(rawListen(t), "\x07\x4a\x05\x08\x05\x12\x01\x00", 50*time.Millisecond)
	var closed *transport.Closed
	if !errors.As(err, &closed) || closed.Code != transport.CodeTimeout || told != transport.CodeTimeout {
		t.Errorf("%v, and the server is told %v", err, told)
	}
}

// rawListen listens as a server without the protocol's checks.
func rawListen(t *testing.T) *quic.Listener {
	t.Helper()
	cert, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{ALPN}, MinVersion: tls.VersionTLS13}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: socket}
	l, err := tr.Listen(conf, serverQUIC(idleTimeout))
	if err != nil {
		t.Fatal(err)
	}
	// After closing only the listener, the transport's goroutines run until a timer drops the ended
	// connections.
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), tr.Close(), socket.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// answered dials a server that answers the hello with these bytes and no more. It returns the error
// of the dial, and the code with which the client closed.
func answered(l *quic.Listener, answer string, patience time.Duration) (told transport.Code, dialled error) {
	closed := make(chan transport.Code, 1)
	go func() {
		defer close(closed)
		conn, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		_, _ = stream.Write([]byte(answer)) // A client that has closed by now has sent the reason.
		<-conn.Context().Done()
		var app *quic.ApplicationError
		if errors.As(context.Cause(conn.Context()), &app) && app.Remote {
			closed <- transport.Code(app.ErrorCode)
		}
	}()
	_, _, dialled = Dial(context.Background(), DialConfig{
		Addr: l.Addr().String(), Greeting: transport.Greeting{Hello: nettest.Hello()}, TablesTimeout: patience,
		Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)},
	})
	return <-closed, dialled
}
