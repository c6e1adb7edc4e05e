package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// A client of a crashed server notices by the refusals of the server's machine, where the system
// reports them, and the socket remains usable: it connects to a new server at the same port.
func TestARefusalEndsAConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of refusals")
	}
	d, err := NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		h := serve(t, func(c *ServerConfig) { c.Listen = listen })
		addr := h.listener.Addr().String()
		g := mustDialAt(t, addr, d)
		h.once.Do(func() { _ = h.listener.socket.Close() }) // As the kernel does after a crash.
		g.Send(transport.Message{Method: 1, Reliable: true})
		g.Flush(0)
		if a := g.Find(t, "its end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeLost || !strings.Contains(a.Closed.Text, "connection refused") {
			t.Errorf("at %s the client reads %+v", listen, a.Closed)
		}
		_ = h.listener.Close(t.Context()) // Its error is that of the socket.
		mustDialAt(t, addrOfNext(t, addr), d)
	}
}

// addrOfNext starts another server at the same port and returns its address.
func addrOfNext(t *testing.T, addr string) string {
	return serve(t, func(c *ServerConfig) { c.Listen = addr }).listener.Addr().String()
}

// A refusal counts if no packet arrives after it: it may be forged. A refusal for another address
// does not count.
func TestOnlySilenceMakesARefusalTrue(t *testing.T) {
	onThin(t, netem.Link{Delay: 10 * time.Millisecond}, func(t *testing.T, n *thin, h *host) {
		n.mu.Lock()
		d := NewDialerOn(n.socket(1))
		n.mu.Unlock()
		defer func() { _ = d.Close() }()
		g := &testClient{Owner: nettest.NewOwner(nil)}
		var err error
		g.Session, _, err = Dial(t.Context(), DialConfig{
			Dialer: d, Addr: "10.0.0.0:4433", TLS: &tls.Config{InsecureSkipVerify: true},
			Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := h.session(g)
		server := netip.MustParseAddrPort("10.0.0.0:4433")
		time.Sleep(time.Second) // The handshake's last packets are over.
		for _, other := range []string{"10.0.0.0:4434", "10.0.0.1:4433"} {
			d.refusals.refused(netip.MustParseAddrPort(other))
		}
		time.Sleep(time.Second)
		for range 2 {
			d.refusals.refused(server)
			for conn, w := range d.refusals.conns {
				if !w.examined {
					t.Errorf("a refusal to %v begins a second examination", conn.RemoteAddr())
				}
			}
			d.refusals.refused(server)
			time.Sleep(refusedAfter / 2)
			s.Send(transport.Message{Method: 1, Reliable: true})
			s.Flush(0)
			time.Sleep(time.Second)
		}
		select {
		case <-g.Closing():
			t.Fatal("a connection that lives was closed")
		default:
		}
		d.refusals.refused(server)
		began := time.Now()
		a := g.Find(t, "its end", nettest.Kind(transport.Gone))
		if took := time.Since(began); a.Closed.Code != transport.CodeLost || took > 2*refusedAfter {
			t.Errorf("it was closed after %v: %+v", took, a.Closed)
		}
	})
}

// A dial without an answer fails early; a slowly answered one has all its time.
func TestAnUnansweredDial(t *testing.T) {
	unreading, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unreading.Close() }()
	_, _, err = Dial(t.Context(), DialConfig{
		Addr: unreading.LocalAddr().String(), Greeting: transport.Greeting{Hello: nettest.Hello()}, Quiet: 20 * time.Millisecond,
		Session: transport.SessionConfig{Inbox: nettest.NewOwner(nil).Arrivals},
	})
	if !errors.Is(err, errQuiet) {
		t.Errorf("the error is %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := &thin{began: time.Now(), paths: map[string]*[2]netem.Path{}}
		d := NewDialerOn(n.socket(1))
		defer func() { _ = d.Close() }()
		began := time.Now()
		d.arrived = func() uint64 { return uint64(time.Since(began) / (100 * time.Millisecond)) }
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, _, err := Dial(ctx, DialConfig{
			Dialer: d, Addr: "10.0.0.0:4433", Greeting: transport.Greeting{Hello: nettest.Hello()}, Quiet: time.Second,
			Session: transport.SessionConfig{Inbox: nettest.NewOwner(nil).Arrivals},
		})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("the error is %v after %v", err, took)
		}
	})
}
