//go:build unix

package wsnet

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// frame is a masked frame of a client, with at most 125 bytes and a key of zero.
func frame(kind byte, b []byte) []byte {
	return append([]byte{0x80 | kind, 0x80 | byte(len(b)), 0, 0, 0, 0}, b...)
}

const (
	binaryFrame = 2
	pingFrame   = 9
)

// deaf opens a socket with a buffer of 2 KiB and does not read after the upgrade: it sends pings,
// whose pongs fill the socket, and a hello.
func deaf(t *testing.T, h *host) *net.TCPConn {
	t.Helper()
	c := dialSmall(t, h.at)
	_, _ = io.WriteString(c, "GET "+endpoint.Path+" HTTP/1.1\r\nHost: "+h.at+"\r\n")
	for _, header := range good {
		_, _ = io.WriteString(c, header+"\r\n")
	}
	_, _ = io.WriteString(c, "\r\n")
	for answer := []byte{}; !bytes.HasSuffix(answer, []byte("\r\n\r\n")); {
		one := make([]byte, 1)
		if _, err := c.Read(one); err != nil {
			t.Fatal(err)
		}
		answer = append(answer, one...)
	}
	for range controlBurst - 2 {
		_, _ = c.Write(frame(pingFrame, make([]byte, 125)))
	}
	say, err := transport.AppendHello([]byte{streamMessage}, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(frame(binaryFrame, say))
	return c
}

// dialSmall opens a socket with a receive buffer of 2 KiB.
func dialSmall(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	small := func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
	}
	c, err := (&net.Dialer{Control: small}).Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(nettest.Patience))
	return c.(*net.TCPConn)
}

// reset closes a socket at once with a TCP reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// A client that does not read the answer to its hello takes resources only briefly: an admitted one
// joins at once, and ends when its socket is closed or silent for too long; a refused one returns
// its entry.
func TestAClientThatDoesNotReadItsAnswer(t *testing.T) {
	if kernelIsMute() {
		t.Skip("only Linux tells what is unsent")
	}
	for name, closes := range map[string]bool{"it closes its socket": true, "it stays": false} {
		t.Run("let in: "+name, func(t *testing.T) {
			h := serve(t, func(o *settings) {
				if !closes {
					o.idle = 200 * time.Millisecond
				}
			})
			c := deaf(t, h)
			h.Find(t, "the join", nettest.Kind(transport.Joined))
			if closes {
				reset(c)
			}
			if a := h.Find(t, "its end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeLost {
				t.Errorf("the server reads %+v", a.Closed)
			}
		})
		t.Run("refused: "+name, func(t *testing.T) {
			h := serve(t, nil)
			refuse := func(context.Context) error { return transport.Refuse(transport.CodeFull, "all of them") }
			h.admit.Store(&refuse)
			for range 3 {
				c := deaf(t, h)
				nettest.Eventually(t, "the refusal", func() bool { return h.last.Load() == 0 && h.stats.Refused.Load() > 0 })
				if closes {
					reset(c)
				}
			}
			nettest.Eventually(t, "all places to be free", func() bool { return h.stats.Unadmitted.Load() == 0 })
		})
	}
}

// The server's tables, which a client reads before its welcome, are written within the time of the
// hello.
func TestAnswersAreWrittenInTime(t *testing.T) {
	if kernelIsMute() {
		t.Skip("only Linux tells what is unsent")
	}
	h := serve(t, func(o *settings) { o.admission.HelloTimeout = 200 * time.Millisecond })
	h.tables = make([]byte, 32<<10)
	deaf(t, h)
	nettest.Eventually(t, "its place to be free", func() bool { return h.stats.Unadmitted.Load() == 0 && h.stats.Refused.Load() == 1 })
	if timeouts, malformed := h.stats.Dropped(transport.DropHelloTimeout), h.stats.Dropped(transport.DropHello); timeouts != 1 || malformed != 0 {
		t.Errorf("%d are counted as too late and %d as malformed, want 1 and 0", timeouts, malformed)
	}
}

// A client that stops in the middle of a message is lost after the same time as one that stops
// between messages.
func TestSilenceInsideAMessage(t *testing.T) {
	h := serve(t, func(o *settings) { o.idle = 200 * time.Millisecond })
	header := []byte{0x82, 0xfe, 0x40, 0, 0, 0, 0, 0} // 16 KiB follow.
	parts := [][]byte{
		header[:1],
		header,
		append(slices.Clip(header), datagramMessage, 1, 2, 3),
		append(slices.Clip(header), streamMessage, 1),
		{0x02, 0x82, 0, 0, 0, 0, streamMessage, 0xff}, // Another frame of the message follows.
	}
	say, err := transport.AppendHello([]byte{streamMessage}, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		c, status, _ := upgrade(t, h, loopback, good...)
		if status != http.StatusSwitchingProtocols {
			t.Fatal(status)
		}
		_, _ = c.Write(append(frame(binaryFrame, say), part...))
	}
	for id := range len(parts) {
		a := h.Find(t, "its end", func(a *transport.Arrival) bool { return a.Kind == transport.Gone && a.Session.ID() == uint64(id+1) })
		if a.Closed.Code != transport.CodeLost || !contains(a.Closed.Text, "no packet from the peer") {
			t.Errorf("the server reads %+v", a.Closed)
		}
	}
}

// A deadline that is set while the connection closes does not delay its end.
func TestNoDeadlineDelaysAClose(t *testing.T) {
	h := serve(t, nil)
	socket, status, _ := upgrade(t, h, loopback, good...) // It never answers a close.
	if status != http.StatusSwitchingProtocols {
		t.Fatal(status)
	}
	in := h.visitor(t)
	in.Close(transport.CodeKicked, "")
	nettest.Eventually(t, "the close", in.ending)
	for _, set := range []func(time.Time) error{in.SetReadDeadline, in.SetWriteDeadline} {
		if err := set(time.Time{}); err != nil {
			t.Error(err)
		}
	}
	began := time.Now()
	<-in.Context().Done()
	if took := time.Since(began); took > 4*time.Second { // The library alone would wait for five.
		t.Errorf("it takes %v", took)
	}
	_ = socket.Close()
}

// visitor returns the only connection of a host.
func (h *host) visitor(t *testing.T) (in *incoming) {
	t.Helper()
	nettest.Eventually(t, "a connection", func() bool {
		h.sockets.mu.Lock()
		defer h.sockets.mu.Unlock()
		for in = range h.sockets.conns {
		}
		return in != nil
	})
	return in
}

// However a connection ends, its socket is closed, and the server drops all of its state.
func TestEndedConnectionsReleaseTheirState(t *testing.T) {
	h := serve(t, nil)
	for name, says := range map[string][]byte{
		"a frame without a mask": {0x82, 1, 0},
		"text":                   frame(1, []byte("hello")),
		"a frame of no kind":     frame(3, nil),
		"a close":                frame(8, nil),
	} {
		c, status, _ := upgrade(t, h, loopback, good...)
		if status != http.StatusSwitchingProtocols {
			t.Fatal(status)
		}
		_, _ = c.Write(says)
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: the server does not close the socket: %v", name, err)
		}
		nettest.Eventually(t, "the server to forget it", func() bool {
			h.sockets.mu.Lock()
			defer h.sockets.mu.Unlock()
			return len(h.sockets.conns) == 0
		})
	}
	nettest.Eventually(t, "all places to be free", func() bool { return h.stats.Unadmitted.Load() == 0 })
}

// yields closes the socket of a request during its upgrade, as a full Pool does.
type yields struct {
	http.ResponseWriter
	socket *connlimit.Conn
}

// Unwrap is for http.ResponseController.
func (y yields) Unwrap() http.ResponseWriter {
	y.socket.Detach()
	return y.ResponseWriter
}

// A connection that the Pool of pages closes during the upgrade is closed, and returns its entry at
// the Controller.
func TestASocketThatIsTakenBackDuringTheUpgrade(t *testing.T) {
	stats := new(transport.Stats)
	d := admission.New(admission.Config{Handler: &host{}, Stats: stats})
	s := New(Config{Admission: d, Stats: stats, Take: take})
	pages := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(yields{w, connlimit.FromContext(r.Context())}, r)
	}))
	pages.Listener = connlimit.New(pages.Listener, connlimit.Config{Max: 4, Evicted: func() {}})
	pages.Config.ConnContext = connlimit.WithConn
	pages.Start()
	t.Cleanup(func() {
		pages.Close()
		d.Close(t.Context())
		s.Close()
	})
	c, _, _ := upgrade(t, &host{at: pages.Listener.Addr().String()}, loopback, good...)
	_, _ = io.Copy(io.Discard, c)
	nettest.Eventually(t, "its place to be free", func() bool { return stats.Unadmitted.Load() == 0 && len(s.conns) == 0 })
	if n := stats.Handshakes[transport.WebSocket].Load(); n != 0 {
		t.Errorf("%d handshakes are counted", n)
	}
}

// If a client has not read an earlier answer, its socket is full: the upgrade waits only briefly,
// and the entry is free again.
func TestAnUpgradeIntoAFullSocket(t *testing.T) {
	stats := new(transport.Stats)
	d := admission.New(admission.Config{Handler: &host{}, Stats: stats, HelloTimeout: 100 * time.Millisecond})
	s := New(Config{Admission: d, Stats: stats, Take: take})
	var began atomic.Bool
	pages := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket := connlimit.FromContext(r.Context())
		for size := 64 << 10; size > 0; size /= 2 { // Until not even a byte has room.
			_ = socket.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			for err := error(nil); err == nil; {
				_, err = socket.Write(make([]byte, size))
			}
		}
		_ = socket.SetWriteDeadline(time.Time{})
		began.Store(true)
		s.ServeHTTP(w, r)
	}))
	pages.Listener = connlimit.New(pages.Listener, connlimit.Config{Max: 4, Evicted: func() {}})
	pages.Config.ConnContext = connlimit.WithConn
	pages.Start()
	c := dialSmall(t, pages.Listener.Addr().String())
	t.Cleanup(func() {
		_ = c.Close() // Without a deadline the upgrade ends here.
		pages.Close()
		d.Close(t.Context())
		s.Close()
	})
	_, _ = io.WriteString(c, "GET "+endpoint.Path+" HTTP/1.1\r\nHost: a\r\n"+strings.Join(good, "\r\n")+"\r\n\r\n")
	nettest.Eventually(t, "the socket to be full", began.Load)
	nettest.Eventually(t, "its place to be free", func() bool { return stats.Refused.Load() == 1 && stats.Unadmitted.Load() == 0 })
}
