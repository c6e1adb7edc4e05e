package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// tickets counts the session tickets that a client gets.
type tickets struct{ atomic.Int32 }

func (c *tickets) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (c *tickets) Put(string, *tls.ClientSessionState)        { c.Add(1) }

// A connection takes little memory: quic-go uses no segmentation offload, which takes buffers of 20
// KB, and clients get no tickets, which they would not use.
func TestConnectionsAreLean(t *testing.T) {
	conns := make(chan *quic.Conn, 2) // The server's ends.
	h := serve(t, func(c *ServerConfig) {
		p := Plain()
		p.Accept = func(ctx context.Context, conn *quic.Conn) (driver.Conn, error) {
			conns <- conn
			return acceptPlain(ctx, conn)
		}
		c.Protocols = []Protocol{p}
	})
	g := mustDial(t, h, nil)
	h.session(g)
	if (<-conns).ConnectionState().GSO {
		t.Error("the server's end uses segmentation offload")
	}

	conf, err := ClientTLS(h.listener.Addr().String(), Trust{})
	if err != nil {
		t.Fatal(err)
	}
	cache := new(tickets)
	conf.ClientSessionCache = cache
	s, _, err := Dial(t.Context(), DialConfig{
		Addr: h.listener.Addr().String(), TLS: conf, Greeting: transport.Greeting{Hello: nettest.Hello()},
		Session: transport.SessionConfig{Inbox: g.Arrivals},
	})
	if err != nil {
		t.Fatal(err)
	}
	// This frame arrives after any ticket.
	far := h.session(&testClient{Session: s})
	far.PublishClosing(time.Second)
	far.Flush(0)
	g.Find(t, "the server's word", nettest.Kind(transport.WillClose))
	if n := cache.Load(); n > 0 {
		t.Errorf("the client got %d tickets", n)
	}
	s.Close(transport.CodeLeft, "")
}

// The user's choice of segmentation offload is kept.
func TestSegmentationOffloadIsTheUsersChoice(t *testing.T) {
	const key = "QUIC_GO_DISABLE_GSO"
	t.Setenv(key, "false")
	withoutGSO()
	if said := os.Getenv(key); said != "false" {
		t.Errorf("%s is %q now", key, said)
	}
	_ = os.Unsetenv(key)
	withoutGSO()
	if said := os.Getenv(key); said != "true" {
		t.Errorf("%s is %q without a choice", key, said)
	}
}

// Each sent datagram calls it, mostly without an error.
func TestADatagramThatLeavesCostsNoMemory(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _ = SendError(nil) }); n > 0 {
		t.Errorf("no error takes %v allocations", n)
	}
	if err := SendError(fmt.Errorf("sent: %w", &quic.DatagramTooLargeError{})); !errors.Is(err, transport.ErrDatagramTooLarge) {
		t.Errorf("a datagram that is too large is %v", err)
	}
	if err := SendError(io.ErrClosedPipe); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("another error is %v", err)
	}
}
