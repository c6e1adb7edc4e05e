package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// dialerAt opens a socket at a loopback address, which counts as another host.
func dialerAt(t *testing.T, ip net.IP) *Dialer {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip})
	if err != nil {
		t.Skip("this machine has one loopback address only: ", err)
	}
	d := NewDialerOn(socket)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// silentDial connects and sends no hello.
func silentDial(t *testing.T, h *host, d *Dialer) *quic.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	conn, err := d.connect(ctx, h.listener.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// connected returns the number of connected but unadmitted connections.
func (h *host) connected() int {
	_, n := h.listener.Admission().Unadmitted()
	return n
}

// halfOpen returns the number of half-open handshakes.
func (h *host) halfOpen() int {
	n, _ := h.listener.Admission().Unadmitted()
	return n
}

// Silent connections of one host, and connections with a hanging admission, take no place of a
// player, and are evicted, with the reason, for connections of other hosts.
func TestUnadmittedConnectionsMakeRoom(t *testing.T) {
	h := serve(t, func(c *ServerConfig) { c.MaxConns, c.MaxUnadmitted = 1, 2 })
	asked, hang := make(chan struct{}), atomic.Bool{}
	hang.Store(true)
	h.admitBy(func(ctx context.Context, _ *netloopv1.Hello) error {
		if hang.Load() {
			close(asked)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	stranger, player := dialerAt(t, net.IPv4(127, 0, 0, 2)), dialerAt(t, net.IPv4(127, 0, 0, 3))
	hung := make(chan error, 1)
	go func() {
		_, err := dial(t, h, stranger, nettest.Hello())
		hung <- err
	}()
	<-asked
	hang.Store(false)
	silent := silentDial(t, h, stranger)
	nettest.Eventually(t, "two strangers, connected", func() bool { return h.connected() == 2 })

	mustDial(t, h, player)
	var r *transport.Refusal
	if err := <-hung; !errors.As(err, &r) || r.Code != transport.CodeBusy || r.Text != "too many new connections: try again" {
		t.Error("who hung in admission was told", err)
	}
	if err := context.Cause(silent.Context()); err != nil {
		t.Error("beside a player who is in, one silent stranger may stay, but was told", err)
	}
	_ = silent.CloseWithError(0, "")
	nettest.Eventually(t, "no strangers", func() bool { return h.stats.Unadmitted.Load() == 0 })
	if n := h.stats.Dropped(transport.DropDismissed); n != 1 {
		t.Error(n, "dismissed strangers are counted")
	}
}

// A server that admits no client refuses before the handshake has used any resources, and a client
// tries some times before it fails.
func TestRefusalBeforeTheHandshake(t *testing.T) {
	var asked, welcome atomic.Uint64 // welcome is the first attempt to be accepted
	h := serve(t, func(c *ServerConfig) {
		c.Refusing = func() (transport.Code, bool) {
			if asked.Add(1) < welcome.Load() {
				return transport.CodeBusy, false
			}
			return 0, false
		}
	})
	welcome.Store(1000)
	ctx, cancel := context.WithTimeout(context.Background(), 2*driver.DialPause)
	defer cancel()
	_, _, err := Dial(ctx, DialConfig{
		Addr: h.listener.Addr().String(), Greeting: transport.Greeting{Hello: nettest.Hello()},
		Session: transport.SessionConfig{Inbox: transport.NewInbox(0, nil)},
	})
	var r *transport.Refusal
	if !errors.As(err, &r) || r.Code != transport.CodeBusy {
		t.Error("an overloaded server is", err)
	}
	if n := h.stats.Handshakes[transport.QUIC].Load(); n != 0 {
		t.Error(n, "handshakes were made")
	}
	// Each attempt asks twice: whether the address must be proven, and whether to refuse it.
	welcome.Store(asked.Load() + 5)
	mustDial(t, h, nil)
	if dropped, attempts := h.stats.Dropped(transport.DropOverload), (welcome.Load()-1)/2; dropped != attempts {
		t.Errorf("%d attempts were refused, %d are counted", attempts, dropped)
	}
}

// While no client is admitted, first packets with unproven addresses take no place and do not use
// up the rate for players who resume.
func TestForgedFirstPacketsDoNotPreventResumes(t *testing.T) {
	packets := firstPackets(t, 60)
	h := serve(t, func(c *ServerConfig) {
		c.Refusing = func() (transport.Code, bool) { return transport.CodeBusy, true }
	})
	socket, err := net.DialUDP("udp", nil, h.listener.Addr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, packet := range packets {
		if _, err := socket.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	nettest.Eventually(t, "an answer to each", func() bool {
		return h.stats.Retries.Load()+h.stats.Dropped(transport.DropUnproven) >= uint64(len(packets))
	})
	if n := h.stats.Unadmitted.Load(); n != 0 {
		t.Errorf("%d of them have a place", n)
	}
	mustDial(t, h, nil)
	if n := h.stats.Dropped(transport.DropOverload); n != 0 {
		t.Errorf("%d connections were refused for want of a turn", n)
	}
}

// A full server sends some new clients the reason, so that players know it, and refuses the others
// before their handshakes.
func TestFullServerTellsSomeInWords(t *testing.T) {
	var hear atomic.Bool
	hear.Store(true)
	h := serve(t, func(c *ServerConfig) {
		c.Refusing = func() (transport.Code, bool) { return transport.CodeFull, hear.Load() }
	})
	h.admitBy(func(context.Context, *netloopv1.Hello) error {
		return transport.Refuse(transport.CodeFull, "all of them")
	})
	_, err := dial(t, h, nil, nettest.Hello())
	var r *transport.Refusal
	if !errors.As(err, &r) || r.Code != transport.CodeFull || r.Text != "all of them" {
		t.Error("the first was told", err)
	}
	hear.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), driver.DialPause)
	defer cancel()
	d := dialerAt(t, net.IPv4(127, 0, 0, 1))
	if _, err := d.connect(ctx, h.listener.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, 0); !refusedAtOnce(err) {
		t.Error("the others were told", err)
	}
	if n, drops := h.stats.Handshakes[transport.QUIC].Load(), h.stats.Dropped(transport.DropFull); n != 1 || drops == 0 {
		t.Errorf("%d handshakes, %d refusals are counted", n, drops)
	}
}

// A handshake counts as half open until it is complete or has failed.
func TestHandshakesThatAreHalfOpenEnd(t *testing.T) {
	h := serve(t, nil)
	d := dialerAt(t, net.IPv4(127, 0, 0, 1))
	silent := silentDial(t, h, d)
	nettest.Eventually(t, "the handshake to be complete", func() bool { return h.stats.Handshakes[transport.QUIC].Load() == 1 && h.halfOpen() == 0 })
	_ = silent.CloseWithError(0, "")

	// A client that does not trust the certificate ends the handshake, half open.
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	if _, err := d.connect(ctx, h.listener.Addr(), &tls.Config{ServerName: "localhost", NextProtos: []string{ALPN}}, 0); err == nil {
		t.Fatal("the client trusts anybody")
	}
	nettest.Eventually(t, "the places to be free", func() bool { return h.stats.Unadmitted.Load() == 0 })
	if n := h.halfOpen(); n != 0 {
		t.Error(n, "handshakes are half open")
	}
}

// Above a number of half-open handshakes, a new client must prove its address first, and is then
// admitted.
func TestAddressesAreProvenUnderLoad(t *testing.T) {
	h := serve(t, nil)
	mustDial(t, h, nil)
	if n := h.stats.Retries.Load(); n != 0 {
		t.Error(n, "addresses were to be proven")
	}
	forged := 0
	for addr := new(net.UDPAddr); ; forged++ {
		addr.IP = net.IPv4(192, 0, 2, byte(forged))
		if h.listener.Admission().Reserve(addr, false) == nil {
			break // All places of half-open handshakes are taken.
		}
	}
	if n := h.halfOpen(); n != forged || n == 0 {
		t.Errorf("%d of %d are half open", n, forged)
	}
	mustDial(t, h, nil)
	if h.stats.Retries.Load() == 0 {
		t.Error("no address was to be proven")
	}
}
