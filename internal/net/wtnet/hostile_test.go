package wtnet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// raw is a client of HTTP/3 without the protocol's checks.
type raw struct {
	*quic.Conn
	http *http3.RawClientConn
	host string
}

// rawDial connects and sends no request.
func rawDial(t *testing.T, h *host) *raw {
	t.Helper()
	return rawDialFor(t, h, 1)
}

// rawDialFor is rawDial with the number of streams of one direction that the server may open.
func rawDialFor(t *testing.T, h *host, streams int64) *raw {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	addr := h.listener.Addr().String()
	conn, err := quic.DialAddr(ctx, addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, &quic.Config{
		EnableDatagrams: true, InitialPacketSize: 1200, MaxIncomingUniStreams: streams,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return &raw{conn, (&http3.Transport{EnableDatagrams: true}).NewRawClientConn(conn), addr}
}

// ask makes a request and returns the answer's status. Header lines are pairs of key and value.
func (r *raw) ask(t *testing.T, method, proto, path string, header ...string) (*http3.RequestStream, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	s, err := r.http.OpenRequestStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	req := &http.Request{Method: method, Proto: proto, Host: r.host, Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: r.host, Path: path}}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	if err := s.SendRequestHeader(req); err != nil {
		t.Fatal(err)
	}
	rsp, err := s.ReadResponse() //nolint:bodyclose // The body is the CONNECT stream.
	if err != nil {
		t.Fatal(err)
	}
	return s, rsp.StatusCode
}

// connect asks for a session.
func (r *raw) connect(t *testing.T) *http3.RequestStream {
	t.Helper()
	s, status := r.ask(t, http.MethodConnect, protocol, endpoint.Path)
	if status != http.StatusOK {
		t.Fatal("the answer to a CONNECT is", status)
	}
	return s
}

// open opens a stream that begins with these bytes.
func (r *raw) open(t *testing.T, say ...byte) *quic.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	s, err := r.OpenStreamSync(ctx)
	if err == nil {
		_, err = s.Write(say)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// join opens the stream of a session and performs a correct handshake.
func (r *raw) join(t *testing.T, h *host, id quic.StreamID) *transport.Session {
	t.Helper()
	say, err := transport.AppendHello(head(id), nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	s := r.open(t, say...)
	if _, err := transport.ReadFrame(s, transport.MaxHandshake); err != nil {
		t.Fatal(err)
	}
	return <-h.sessions
}

// head returns the head of a session's stream.
func head(id quic.StreamID) []byte {
	return quicvarint.Append(quicvarint.Append(nil, frameBidirectional), uint64(id))
}

// ended waits for the server's close and returns its code.
func (r *raw) ended(t *testing.T) transport.Code {
	t.Helper()
	select {
	case <-r.Context().Done():
	case <-time.After(nettest.Patience):
		t.Fatal("the server did not close")
	}
	var app *quic.ApplicationError
	if !errors.As(why(context.Cause(r.Context())), &app) || !app.Remote {
		t.Fatal("closed by", context.Cause(r.Context()))
	}
	return transport.Code(app.ErrorCode)
}

// The settings announce one session for every draft, with the drafts' numbers.
func TestAServerTakesOneSession(t *testing.T) {
	if got, want := [...]uint64{frameBidirectional, capsuleClose, bufferedStreamRejected}, [...]uint64{0x41, 0x2843, 0x3994bd84}; got != want {
		t.Errorf("the numbers are %#x, want %#x", got, want)
	}
	want := map[uint64]uint64{0x2b603742: 1, 0x14e9cd29: 1, 0x2c7cf000: 1}
	if got := settings(); !maps.Equal(got, want) {
		t.Errorf("the settings are %v, want %v", got, want)
	}
	r := rawDial(t, serve(t, nil, nil))
	control, err := r.AcceptUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.http.HandleUnidirectionalStream(control) }()
	<-r.http.ReceivedSettings()
	if s := r.http.Settings(); !s.EnableDatagrams || !s.EnableExtendedConnect || !maps.Equal(s.Other, want) {
		t.Errorf("a client reads %+v", s)
	}
	_ = r.CloseWithError(0, "")
	<-done
}

// A request for anything but a session is refused and counted, and another request may follow.
func TestOtherRequestsAreTurnedAway(t *testing.T) {
	pages, err := origin.Parse([]string{"https://example.org"})
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, pages, nil)
	for _, c := range []struct {
		name, method, proto, path string
		header                    []string
		status                    int
		drop                      transport.Drop
	}{
		{"another path", http.MethodConnect, protocol, "/", nil, 404, transport.DropRequest},
		{"a page", http.MethodGet, "", "/index.html", nil, 404, transport.DropRequest},
		{"another method", http.MethodPost, "", endpoint.Path, nil, 405, transport.DropRequest},
		{"another protocol", http.MethodConnect, "websocket", endpoint.Path, nil, 405, transport.DropRequest},
		{"a foreign page", http.MethodConnect, protocol, endpoint.Path, []string{"Origin", "https://evil.example"}, 403, transport.DropOrigin},
		{"a page of two origins", http.MethodConnect, protocol, endpoint.Path, []string{"Origin", "https://example.org", "Origin", "https://evil.example"}, 403, transport.DropOrigin},
		{"no page at all", http.MethodConnect, protocol, endpoint.Path, []string{"Origin", "null"}, 403, transport.DropOrigin},
		{"many headers", http.MethodGet, "", endpoint.Path, []string{"X", strings.Repeat("x", maxHeader)}, 431, transport.DropRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rawDial(t, h)
			before := h.stats.Dropped(c.drop)
			if _, status := r.ask(t, c.method, c.proto, c.path, c.header...); status != c.status {
				t.Errorf("the answer is %d, want %d", status, c.status)
			}
			if n := h.stats.Dropped(c.drop) - before; n != 1 && c.status != 431 {
				t.Error(n, "are counted")
			}
			s, status := r.ask(t, http.MethodConnect, protocolNewest, endpoint.Path, "Origin", "https://example.org")
			if status != http.StatusOK {
				t.Fatal("a page that may come in is answered", status)
			}
			if _, status := r.ask(t, http.MethodConnect, protocol, endpoint.Path); status != http.StatusTooManyRequests {
				t.Error("who asks for a second session is answered", status)
			}
			r.join(t, h, s.StreamID())
		})
	}
}

// An incomplete hello times out, whichever part is missing.
func TestAHelloHasToComeInTime(t *testing.T) {
	h := serve(t, nil, func(c *quicnet.ServerConfig) { c.HelloTimeout = 500 * time.Millisecond })
	for name, do := range map[string]func(*testing.T, *raw){
		"nothing":                  func(*testing.T, *raw) {},
		"half a request":           func(t *testing.T, r *raw) { r.open(t, 0x01, 0x40) },
		"a session alone":          func(t *testing.T, r *raw) { r.connect(t) },
		"half a stream's head":     func(t *testing.T, r *raw) { r.connect(t); r.open(t, 0x40) },
		"a stream's kind alone":    func(t *testing.T, r *raw) { r.connect(t); r.open(t, 0x40, frameBidirectional) },
		"a stream's head alone":    func(t *testing.T, r *raw) { r.open(t, head(r.connect(t).StreamID())...) },
		"an endless unknown frame": func(t *testing.T, r *raw) { r.open(t, 0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rawDial(t, h)
			do(t, r)
			if code := r.ended(t); code != transport.CodeTimeout {
				t.Error("closed with", code)
			}
		})
	}
}

// A client that allows the server no control stream is disconnected, also if it opens streams.
func TestAClientWithoutRoomForSettings(t *testing.T) {
	r := rawDialFor(t, serve(t, nil, nil), -1)
	r.open(t, 0x01)
	if code := r.ended(t); code != transport.CodeProtocol {
		t.Error("closed with", code)
	}
}

// Streams of no session are rejected, the session's own may follow, and a client that sends too
// many is disconnected.
func TestStreamsOfNoSession(t *testing.T) {
	h := serve(t, nil, nil)
	r := rawDial(t, h)
	rejected := func(s *quic.Stream) {
		t.Helper()
		_, err := s.Read(make([]byte, 1))
		var e *quic.StreamError
		if !errors.As(err, &e) || e.ErrorCode != bufferedStreamRejected {
			t.Error("such a stream ends with", err)
		}
	}
	_ = r.open(t).Close() // It ends before its first byte, and is skipped.
	rejected(r.open(t, head(0)...))
	s := r.connect(t)
	rejected(r.open(t, head(s.StreamID()+4)...))
	r.join(t, h, s.StreamID())
	if err := r.SendDatagram(append(quicvarint.Append(nil, uint64(s.StreamID()/4)), 1<<3, 1)); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the session's datagram", func() bool { return h.stats.DatagramsIn.Load() == 1 })
	if n := h.stats.Dropped(transport.DropDatagram); n != 0 {
		t.Error("the session's datagram is one of another")
	}

	r = rawDial(t, h)
	for range maxStreams {
		_ = r.open(t, head(0)...).Close()
	}
	if code := r.ended(t); code != transport.CodeProtocol || h.stats.Dropped(transport.DropRequest) != 1 {
		t.Error("closed with", code)
	}
}

// stuck is a CONNECT stream that cannot be written.
type stuck struct {
	connectStream
	until time.Time
}

func (*stuck) Write([]byte) (int, error)             { return 0, errTooMuch }
func (s *stuck) SetWriteDeadline(at time.Time) error { s.until = at; return nil }

// The first reason for the end of a session is kept, and the connection has one, too.
func TestASessionEndsOnce(t *testing.T) {
	h := serve(t, nil, nil)
	r, connect := rawDial(t, h), new(stuck)
	s := &session{Conn: quicnet.Conn{QUIC: r.Conn}, connect: connect, read: make(chan struct{})}
	close(s.read)
	began := time.Now()
	s.Close(transport.CodeLeft, "bye")
	if left := connect.until.Sub(began); left < driver.Linger || left > driver.Linger+nettest.Patience {
		t.Errorf("the capsule must be written within %v", left)
	}
	connect.until = time.Time{}
	s.Close(transport.CodeKicked, "")
	if s.ends(errTooMuch) || !connect.until.IsZero() || s.Closed() != (transport.Closed{Code: transport.CodeLeft, Text: "bye"}) {
		t.Errorf("it ends again, with %+v", s.Closed())
	}
	s.end = nil
	if s.ends(errTooMuch) || s.Err() == nil {
		t.Error("a session ends after its connection, or without a reason")
	}
}

// A session has its reason once the CONNECT stream is read to its end, which may be after the end
// of the connection.
func TestTheErrorOfASessionWaitsForItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{read: make(chan struct{})}
		var got error
		go func() { got = s.Err() }()
		synctest.Wait()
		s.end = errTooMuch
		close(s.read)
		if synctest.Wait(); !errors.Is(got, errTooMuch) {
			t.Errorf("it ends with %v", got)
		}
	})
}

// Other streams of a browser, and their data, are never read: the player continues.
func TestOtherStreamsAreNotRead(t *testing.T) {
	h := serve(t, nil, nil)
	r := rawDial(t, h)
	c := r.connect(t)
	s := r.join(t, h, c.StreamID())
	noise := bytes.Repeat([]byte{0x21}, 64<<10)
	for {
		u, err := r.OpenUniStream()
		if err != nil {
			break // As many as there may be.
		}
		_ = u.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := u.Write(noise); err == nil {
			t.Errorf("%d bytes were read", n)
		}
	}
	// A datagram of an unknown session is discarded and charged.
	for _, b := range [][]byte{{1, 8, 1}, {0x40}, {}} {
		if err := r.SendDatagram(b); err != nil {
			t.Fatal(err)
		}
	}
	nettest.Eventually(t, "the datagrams to be counted", func() bool { return h.stats.Dropped(transport.DropDatagram) == 3 })
	if err := c.SendDatagram([]byte{1 << 3, 1}); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the session's datagram", func() bool { return h.stats.DatagramsIn.Load() == 4 })
	if why, ended := s.Cause(); ended || h.stats.Dropped(transport.DropDatagram) != 3 {
		t.Error("the player is out: ", why)
	}
}

// A CONNECT stream contains a close and little more. A client that sends more is disconnected, and
// one with an ended or aborted stream has left.
func TestCONNECTStreamCapsules(t *testing.T) {
	h := serve(t, nil, nil)
	for name, c := range map[string]struct {
		do   func(*http3.RequestStream)
		want transport.Closed
	}{
		"a close":        {func(s *http3.RequestStream) { _, _ = s.Write(appendClose(nil, 1234, "bye")) }, transport.Closed{Code: 1234, Text: "bye", Remote: true}},
		"a code of ours": {func(s *http3.RequestStream) { _, _ = s.Write(appendClose(nil, transport.CodeKicked, "")) }, transport.Closed{Code: transport.CodeLeft, Remote: true}},
		"its end":        {func(s *http3.RequestStream) { _ = s.Close() }, transport.Closed{Code: transport.CodeLeft, Remote: true}},
		"its break":      {func(s *http3.RequestStream) { s.CancelWrite(1) }, transport.Closed{Code: transport.CodeLost}},
		"half a capsule": {func(s *http3.RequestStream) { _, _ = s.Write([]byte{1}); _ = s.Close() }, transport.Closed{Code: transport.CodeLost}},
		"half a close": {func(s *http3.RequestStream) {
			_, _ = s.Write(appendClose(nil, 1234, "bye")[:6])
			_ = s.Close()
		}, transport.Closed{Code: transport.CodeLost}},
		"unknown capsules without end": {func(s *http3.RequestStream) {
			for err := error(nil); err == nil; {
				_, err = s.Write(append([]byte{0x21, 0x44, 0}, make([]byte, 0x400)...))
			}
		}, transport.Closed{Code: transport.CodeLost}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rawDial(t, h)
			connect := r.connect(t)
			s := r.join(t, h, connect.StreamID())
			c.do(connect)
			a := h.Find(t, "the end", func(a *transport.Arrival) bool { return nettest.Kind(transport.Gone)(a) && a.Session == s })
			if got := *a.Closed; got.Code != c.want.Code || got.Remote != c.want.Remote || c.want.Text != "" && got.Text != c.want.Text {
				t.Errorf("the server tells %+v, want %+v", got, c.want)
			}
		})
	}
}

// A refused page gets the reason, and the time to read it: the connection is kept until the page
// has closed it, or for Linger.
func TestAPageReadsWhyItIsTurnedAway(t *testing.T) {
	h := serve(t, nil, nil)
	h.refuse = func(*netloopv1.Hello) error { return transport.Refuse(transport.CodeRoomUnknown, "no such room") }
	for _, closes := range []bool{true, false} {
		r := rawDial(t, h)
		s := r.connect(t)
		say, err := transport.AppendHello(head(s.StreamID()), nettest.Hello())
		if err != nil {
			t.Fatal(err)
		}
		r.open(t, say...)
		why, err := readClose(s)
		if want := (transport.Closed{Code: transport.CodeRoomUnknown, Text: "no such room", Remote: true}); err != nil || why != want {
			t.Errorf("the page reads %+v, %v", why, err)
		}
		if r.Context().Err() != nil {
			t.Error("the connection is closed before the page can have read that")
		}
		if closes {
			_ = r.CloseWithError(0, "")
		} else if code := r.ended(t); code != transport.CodeRoomUnknown {
			t.Error("closed with", code)
		}
	}
	nettest.Eventually(t, "nobody to be left", func() bool { return h.stats.Unadmitted.Load() == 0 })
}
