package admission

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// silentConn is a connection that sends no hello.
type silentConn struct {
	ctx    context.Context
	hangUp context.CancelCauseFunc
	addr   net.Addr
}

func newSilent(n int) *silentConn {
	ctx, hangUp := context.WithCancelCause(context.Background())
	return &silentConn{ctx, hangUp, from(n)}
}

func (c *silentConn) Kind() transport.Kind     { return transport.WebSocket }
func (c *silentConn) Context() context.Context { return c.ctx }
func (c *silentConn) RemoteAddr() net.Addr     { return c.addr }
func (c *silentConn) Close(code transport.Code, t string) {
	c.hangUp(&transport.Refusal{Code: code, Text: t})
}
func (c *silentConn) Open(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// told waits until the connection is closed and returns the code.
func (c *silentConn) told() transport.Code {
	<-c.ctx.Done()
	var r *transport.Refusal
	if !errors.As(context.Cause(c.ctx), &r) {
		return 0
	}
	return r.Code
}

// A verdict is the refusal that a new connection would get, and takes no entry.
func TestRefusalIsThatOfANewConnection(t *testing.T) {
	var code transport.Code
	stats := new(transport.Stats)
	d := New(Config{Stats: stats, Refusing: func() (transport.Code, bool) { return code, true }})
	want := func(what string, want transport.Code) {
		t.Helper()
		for range 2 {
			if r := d.Refusal(from(1)); (r == nil) != (want == 0) || r != nil && (r.Code != want || r.Text == "") {
				t.Errorf("%s: %v, want code %v", what, r, want)
			}
		}
	}
	want("an open server", 0)
	for _, code = range []transport.Code{transport.CodeFull, transport.CodeBusy} {
		want("a server that lets in nobody", code)
	}
	code = 0
	for range maxPerSite {
		if d.Reserve(from(1), true) == nil {
			t.Fatal("a site has no entry")
		}
	}
	want("a site with as many unadmitted connections as it may have", transport.CodeBusy)
	if d.Refusal(from(2)) != nil {
		t.Error("another site pays for it")
	}
	d.Refuse(transport.CodeClosing, "bye")
	want("a closing server", transport.CodeClosing)
	if n := stats.Dropped(transport.DropFull) + stats.Dropped(transport.DropOverload); n != 0 {
		t.Error(n, "refusals are counted, of nobody who came")
	}
}

// While no client is admitted, resumeBurst connections are tried all the same, and no more.
func TestSomeConnectionsAreTriedWhileTheServerIsFull(t *testing.T) {
	for _, c := range []struct {
		code transport.Code
		hear bool
		want int
		drop transport.Drop
	}{
		{transport.CodeFull, true, resumeBurst, transport.DropFull},
		{transport.CodeFull, false, 0, transport.DropFull},
		{transport.CodeBusy, false, 0, transport.DropOverload},
		{0, false, 3 * resumeBurst, transport.DropFull},
	} {
		stats := new(transport.Stats)
		d := New(Config{Stats: stats, Refusing: func() (transport.Code, bool) { return c.code, c.hear }})
		d.resumes.SetLimit(0)
		heard := 0
		for n := range 3 * resumeBurst {
			if p := d.Reserve(from(n), true); p != nil {
				heard++
				p.Release()
				p.Release()
			}
		}
		if heard != c.want || stats.Dropped(c.drop) != uint64(3*resumeBurst-c.want) || stats.Unadmitted.Load() != 0 {
			t.Errorf("%v, %v: %d were heard, want %d; %d refusals are counted", c.code, c.hear, heard, c.want, stats.Dropped(c.drop))
		}
	}
}

// A connection without a hello when the Controller closes is refused, and so is a later one. Each
// is counted for its transport.
func TestCloseEndsUnadmittedConnections(t *testing.T) {
	stats := new(transport.Stats)
	d := New(Config{Stats: stats})
	early, late := newSilent(1), newSilent(2)
	d.Reserve(early.addr, true).Serve(early)
	if _, n := d.Unadmitted(); n != 1 {
		t.Fatal(n, "unadmitted connections are connected")
	}
	d.Refuse(transport.CodeKicked, "for good")
	d.Close(context.Background())
	d.Reserve(late.addr, true).Serve(late)
	if a, b := early.told(), late.told(); a != transport.CodeKicked || b != transport.CodeKicked {
		t.Errorf("they were told %v and %v", a, b)
	}
	if n := stats.Handshakes[transport.WebSocket].Load(); n != 2 || stats.Refused.Load() != 1 || stats.Joined[transport.WebSocket].Load() != 0 {
		t.Errorf("%d handshakes, %d refusals are counted", n, stats.Refused.Load())
	}
	if n := stats.Unadmitted.Load(); n != 0 {
		t.Error(n, "unadmitted connections are left")
	}
}

// The site of an address is the same for UDP and TCP.
func TestASiteIsThatOfItsAddress(t *testing.T) {
	ip := net.IPv4(192, 0, 2, 1)
	if udp, tcp := endpoint.SiteOf(&net.UDPAddr{IP: ip}), endpoint.SiteOf(&net.TCPAddr{IP: ip}); udp != tcp || !udp.IsValid() {
		t.Error(udp, tcp)
	}
	if other := endpoint.SiteOf(&net.UnixAddr{}); other.IsValid() {
		t.Error(other)
	}
}

// While no client is admitted, every peer proves its address, and first packets from forged
// addresses do not use up the rate for players who resume their seats.
func TestForgedAddressesDoNotPreventResumes(t *testing.T) {
	stats := new(transport.Stats)
	d := New(Config{Stats: stats, Refusing: func() (transport.Code, bool) { return transport.CodeBusy, true }})
	d.resumes.SetLimit(0)
	for n := range 10 * resumeBurst {
		if d.Reserve(from(n), false) != nil {
			t.Fatal("an address that may be forged has an entry")
		}
	}
	if n := stats.Dropped(transport.DropUnproven); n != 10*resumeBurst {
		t.Errorf("%d are counted as unproven", n)
	}
	if !d.MustProveAddress(from(1)) {
		t.Error("nobody has to prove its address")
	}
	for n := range resumeBurst {
		if d.Reserve(from(n), true) == nil {
			t.Fatalf("the proven address %d is not heard", n)
		}
	}
	if d.Reserve(from(99), true) != nil {
		t.Error("more are heard than the rate allows")
	}
}

// A Controller closes even if an admission ignores its context: it does not wait for that
// admission.
func TestCloseDoesNotWaitForAHangingAdmission(t *testing.T) {
	open(t, "hangs", func(t *testing.T, h *testController) {
		held := make(chan struct{})
		h.admits = func(context.Context, *netloopv1.Hello) error { <-held; return nil }
		h.connect(helloFrame(t))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		h.Close(ctx)
		if took := time.Since(began); took != 2*time.Second+driver.CloseGrace {
			t.Errorf("it took %v", took)
		}
		if !strings.Contains(h.log.String(), "admission does not return") {
			t.Errorf("the log says %q", h.log.String())
		}
		close(held)
		synctest.Wait()
	})
}
