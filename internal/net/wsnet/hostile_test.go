package wsnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// upgrade opens a WebSocket by hand and returns the server's answer: with status 0, if the server
// has closed the connection at once.
func upgrade(t *testing.T, h *host, from net.IP, headers ...string) (c net.Conn, status int, extensions string) {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).Dial("tcp", h.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(nettest.Patience))
	_, _ = io.WriteString(c, "GET "+endpoint.Path+" HTTP/1.1\r\nHost: "+h.at+"\r\n"+strings.Join(headers, "\r\n")+"\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return c, 0, ""
	}
	_ = resp.Body.Close()
	return c, resp.StatusCode, resp.Header.Get("Sec-WebSocket-Extensions")
}

// good are the headers of a valid upgrade.
var good = []string{
	"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: netloop.1",
}

// without returns good with one header replaced.
func without(name string, instead ...string) (all []string) {
	for _, h := range good {
		if !strings.HasPrefix(h, name+":") {
			all = append(all, h)
		}
	}
	return append(all, instead...)
}

// loopback is an address of this machine.
var loopback = net.IPv4(127, 0, 0, 1)

// A request that is no WebSocket of ours is answered and counted, and takes no place.
func TestOtherRequestsAreAnsweredAndCounted(t *testing.T) {
	h := serve(t, nil)
	n := uint64(0)
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"a page":              {nil, 400},
		"another protocol":    {without("Sec-WebSocket-Protocol", "Sec-WebSocket-Protocol: chat, netloop.2"), 400},
		"none":                {without("Sec-WebSocket-Protocol"), 400},
		"no upgrade":          {without("Connection"), 426},
		"of something else":   {without("Upgrade", "Upgrade: h2c"), 400},
		"another version":     {without("Sec-WebSocket-Version", "Sec-WebSocket-Version: 12"), 400},
		"a key that is none":  {without("Sec-WebSocket-Key", "Sec-WebSocket-Key: short"), 400},
		"no key":              {without("Sec-WebSocket-Key"), 400},
		"one of ours (good)":  {good, 101},
		"one among others":    {without("Sec-WebSocket-Protocol", "Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Protocol: x,netloop.1"), 101},
		"compressed (is not)": {append(good, "Sec-WebSocket-Extensions: permessage-deflate"), 101},
	} {
		socket, status, extensions := upgrade(t, h, loopback, c.headers...)
		if status != c.want || extensions != "" {
			t.Errorf("%s: %d, %q", name, status, extensions)
		}
		if c.want != 101 {
			n++
		}
		_ = socket.Close()
	}
	if got := h.stats.Dropped(transport.DropRequest); got != n {
		t.Errorf("%d of %d are counted", got, n)
	}
	nettest.Eventually(t, "all places to be free", func() bool { return h.stats.Unadmitted.Load() == 0 })
}

// raw opens a WebSocket of ours without a hello.
func raw(t *testing.T, h *host) *websocket.Conn {
	t.Helper()
	//nolint:bodyclose // The library closes it.
	ws, resp, err := websocket.Dial(t.Context(), "ws://"+h.at+endpoint.Path, &websocket.DialOptions{Subprotocols: []string{Protocol}})
	if err != nil {
		t.Fatal(err, resp)
	}
	ws.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// greeted opens a WebSocket of ours and sends its hello in two pieces.
func greeted(t *testing.T, h *host) *websocket.Conn {
	t.Helper()
	ws := raw(t, h)
	b, err := transport.AppendHello([]byte{streamMessage}, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range [][]byte{{streamMessage}, b[:3], append([]byte{streamMessage}, b[3:]...)} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, b, err := ws.Read(t.Context()); err != nil || len(b) < 2 || b[0] != streamMessage {
		t.Fatalf("the welcome is %x, %v", b, err)
	}
	return ws
}

// closedWith reads until the peer has closed, and returns the code and the text.
func closedWith(t *testing.T, ws *websocket.Conn) (code websocket.StatusCode, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			var said websocket.CloseError
			if errors.As(err, &said) {
				return said.Code, said.Reason
			}
			return 0, err.Error()
		}
	}
}

// Nonsense from an admitted client ends its connection, and has no other effect.
func TestNonsenseEndsTheConnection(t *testing.T) {
	h := serve(t, nil)
	say := func(kind websocket.MessageType, b []byte) func(*websocket.Conn) {
		return func(ws *websocket.Conn) { _ = ws.Write(t.Context(), kind, b) }
	}
	for name, c := range map[string]struct {
		does func(*websocket.Conn)
		code websocket.StatusCode // of the close; 0: any
		want transport.Code
	}{
		"text":               {say(websocket.MessageText, []byte("hello")), 4009, transport.CodeProtocol},
		"nothing":            {say(websocket.MessageBinary, nil), 4009, transport.CodeProtocol},
		"an unknown kind":    {say(websocket.MessageBinary, []byte{2, 1}), 4009, transport.CodeProtocol},
		"a broken frame":     {say(websocket.MessageBinary, []byte{0, 0xff, 0xff, 0xff}), 4009, transport.CodeProtocol},
		"a huge message":     {say(websocket.MessageBinary, append([]byte{1}, make([]byte, MaxMessage)...)), websocket.StatusMessageTooBig, transport.CodeProtocol},
		"many messages":      {many(t, []byte{0}, messageBurst+messageRate), 0, transport.CodeFlood},
		"many datagrams":     {many(t, []byte{1, 0xff}, 4000), 0, transport.CodeFlood},
		"a goodbye of a tab": {func(ws *websocket.Conn) { _ = ws.Close(websocket.StatusGoingAway, "") }, websocket.StatusGoingAway, transport.CodeLost},
		"a code of its own":  {func(ws *websocket.Conn) { _ = ws.Close(4001, "bye") }, 4001, transport.CodeLeft},
		"pretends a kick":    {func(ws *websocket.Conn) { _ = ws.Close(4003, "") }, 4003, transport.CodeLeft},
		"just goes":          {func(ws *websocket.Conn) { _ = ws.CloseNow() }, 0, transport.CodeLost},
	} {
		t.Run(name, func(t *testing.T) {
			ws := greeted(t, h)
			id := h.last.Load()
			c.does(ws)
			if code, text := closedWith(t, ws); code != c.code && c.code != 0 && code != 0 {
				t.Errorf("it is closed with %d %q", code, text)
			}
			a := h.Find(t, "its end", func(a *transport.Arrival) bool { return a.Kind == transport.Gone && a.Session.ID() == id })
			if a.Closed.Code != c.want {
				t.Errorf("the server reads %+v", a.Closed)
			}
		})
	}
}

// many writes the same bytes many times, until a write fails.
func many(t *testing.T, b []byte, n int) func(*websocket.Conn) {
	return func(ws *websocket.Conn) {
		for range n {
			if ws.Write(t.Context(), websocket.MessageBinary, b) != nil {
				return
			}
		}
	}
}

// A too large datagram is dropped and counted, and the other datagrams arrive.
func TestALargeDatagramIsDropped(t *testing.T) {
	h := serve(t, nil)
	ws := greeted(t, h)
	for _, size := range []int{transport.MaxDatagram + 1, transport.MaxDatagram + 2, 10_000} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, append([]byte{datagramMessage}, make([]byte, size)...)); err != nil {
			t.Fatal(err)
		}
	}
	nettest.Eventually(t, "all to be counted", func() bool { return h.stats.Dropped(transport.DropDatagramTooLarge) == 3 })
	if n := h.stats.DatagramBytesIn.Load(); n != 3*(transport.MaxDatagram+1) {
		t.Error(n, "bytes were read of them")
	}
}

// Pings are answered, a flood of them is not.
func TestPingsAreBounded(t *testing.T) {
	h := serve(t, nil)
	ws := greeted(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	go func() {
		for { // Pings need a reader.
			if _, _, err := ws.Read(ctx); err != nil {
				_ = ws.CloseNow()
				return
			}
		}
	}()
	for n := range 2*controlBurst + controlRate*int(nettest.Patience.Seconds()) {
		if err := ws.Ping(ctx); err != nil {
			if n < controlBurst {
				t.Errorf("after %d pings: %v", n, err)
			}
			break
		}
	}
	if a := h.Find(t, "its end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeFlood {
		t.Errorf("the server reads %+v", a.Closed)
	}
}

// A client without a hello is closed with the reason, and a silent one is lost.
func TestSilence(t *testing.T) {
	h := serve(t, func(o *settings) { o.admission.HelloTimeout = 50 * time.Millisecond })
	if code, text := closedWith(t, raw(t, h)); code != 4012 || text != "no hello within 50ms" {
		t.Errorf("%d %q", code, text)
	}
	if n := h.stats.Dropped(transport.DropHelloTimeout); n != 1 {
		t.Error(n, "are counted")
	}
	h = serve(t, func(o *settings) { o.idle = 100 * time.Millisecond })
	greeted(t, h) // It answers no ping, because the test does not read.
	if a := h.Find(t, "its end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeLost || !contains(a.Closed.Text, "no packet from the peer") {
		t.Errorf("the server reads %+v", a.Closed)
	}
}

// The end of a server waits for requests that have begun, and refuses later ones.
func TestACloseWaitsForRequests(t *testing.T) {
	s := New(Config{Stats: new(transport.Stats)})
	if !s.enter() {
		t.Fatal("a request is turned away")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Close()
	}()
	<-s.stop
	select {
	case <-ended:
		t.Fatal("the server has ended while there is a request")
	default:
	}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a request that comes later is answered %d", w.Code)
	}
	s.works.Done()
	<-ended
}

// Silence is detected within a quarter of IdleTimeout, or a second.
func TestSilenceIsLookedForOftenEnough(t *testing.T) {
	for idle, want := range map[time.Duration]time.Duration{100 * time.Millisecond: 25 * time.Millisecond, 10 * time.Second: time.Second} {
		if got := (&Config{IdleTimeout: idle}).sweepPeriod(); got != want {
			t.Errorf("of %v the server looks every %v, want %v", idle, got, want)
		}
	}
}

// A connection is silent for the time for which a read of its socket has waited, and not while the
// server does not read, such as during an admission.
func TestSilenceIsHowLongAReadHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		c := newConn(here)
		defer c.cancel()
		for range 2 {
			time.Sleep(time.Hour)
			if silent := c.silence(); silent != 0 {
				t.Errorf("a connection that is not read is silent for %v", silent)
			}
			go func() { _, _ = observedConn{here, c}.Read(make([]byte, 1)) }()
			time.Sleep(time.Minute)
			if silent := c.silence(); silent != time.Minute {
				t.Errorf("after a minute without a byte it is silent for %v", silent)
			}
			_, _ = there.Write([]byte{1})
			synctest.Wait()
		}
	})
}

// A client that does not read delays only its own writers: expired datagrams are dropped and
// counted, the slot is free again for new ones, and other clients are not affected. Reliable data
// waits until its bound.
func TestAnUnreadingClientDelaysItsOwnWriters(t *testing.T) {
	if kernelIsMute() {
		t.Skip("what is unsent is known on Linux alone")
	}
	h := serve(t, nil)
	greeted(t, h)
	s := h.Find(t, "the join", nettest.Kind(transport.Joined)).Session
	well := mustDial(t, h, nil)
	sent := 0
	nettest.Eventually(t, "datagrams that are given up", func() bool {
		if slot := s.Slot(); slot != nil {
			for range transport.MaxStatePackets {
				slot.Packets = append(slot.Packets, make([]byte, transport.MaxStatePacket))
			}
			s.Flush(0)
			sent++
		}
		return h.stats.Dropped(transport.DropDatagramBehind) > 3
	})
	travelBriefly(t, h, well)
	for range 100 {
		s.Send(transport.Message{Method: 1, Reliable: true, Payload: make([]byte, transport.MaxPayload)})
	}
	s.Flush(0)
	a := h.Find(t, "its end", nettest.Of(s, transport.Gone))
	if a.Closed.Code != transport.CodeSlow {
		t.Errorf("after %d snapshots the server reads %+v", sent, a.Closed)
	}
}

// kernelIsMute reports whether this system's kernel cannot be queried about sockets.
func kernelIsMute() bool { return fmt.Sprint(newKernel(new(net.TCPConn))) == "{}" }

// travelBriefly sends a message in each direction.
func travelBriefly(t *testing.T, h *host, g *testClient) {
	t.Helper()
	s := h.session(g)
	s.Send(transport.Message{Method: 5, Payload: []byte("there")})
	s.Flush(0)
	g.Find(t, "a message", nettest.Kind(transport.MessageArrived))
	g.Send(transport.Message{Method: 6, Payload: []byte("back")})
	g.Flush(0)
	h.Find(t, "its answer", func(a *transport.Arrival) bool { return a.Message.Method == 6 })
}

// A thousand WebSockets of one site without a hello take the places of their site only.
func TestSocketsOfOneSite(t *testing.T) {
	h := serve(t, func(o *settings) { o.admission.MaxConns, o.admission.MaxUnadmitted = 256, 64 })
	refused := 0
	for range 1000 {
		if _, status, _ := upgrade(t, h, net.IPv4(127, 0, 0, 2), good...); status != http.StatusSwitchingProtocols {
			refused++
		}
	}
	if refused < 1000-64 {
		t.Errorf("%d of 1000 are refused", refused)
	}
	if n := h.stats.Unadmitted.Load(); n > 8 {
		t.Errorf("one site has the places of %d strangers", n)
	}
	travelBriefly(t, h, mustDial(t, h, nil))
}

// Players behind a configured proxy have sites of their own, and the server has their addresses;
// behind another proxy they are one site.
func TestPlayersBehindAProxy(t *testing.T) {
	for proxy, want := range map[string]int64{"127.0.0.0/8": 12, "192.0.2.1": 8} {
		h := serve(t, func(o *settings) { o.proxies = []string{proxy} })
		for n := range 12 {
			upgrade(t, h, loopback, append(good, fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n))...)
		}
		nettest.Eventually(t, "strangers", func() bool { return h.stats.Unadmitted.Load() == want })
		h.sockets.mu.Lock()
		for in := range h.sockets.conns {
			if known := contains(in.RemoteAddr().String(), "203.0.113."); known != (want == 12) {
				t.Errorf("%s: a player is known as %v", proxy, in.RemoteAddr())
			}
		}
		h.sockets.mu.Unlock()
	}
}

// Half a request, or a WebSocket that stops in the middle of a frame, does not block others.
func TestHalfAFrame(t *testing.T) {
	h := serve(t, func(o *settings) { o.admission.HelloTimeout = 100 * time.Millisecond })
	c, status, _ := upgrade(t, h, loopback, good...)
	if status != http.StatusSwitchingProtocols {
		t.Fatal(status)
	}
	// 28 KiB would follow.
	_, _ = c.Write([]byte{0x82, 0xff, 0, 0, 0, 0, 0, 0, 0x70, 0, 1, 2, 3, 4, 0})
	nettest.Eventually(t, "the place to be free", func() bool { return h.stats.Unadmitted.Load() == 0 && h.stats.Refused.Load() == 1 })
	if timeouts, malformed := h.stats.Dropped(transport.DropHelloTimeout), h.stats.Dropped(transport.DropHello); timeouts != 1 || malformed != 0 {
		t.Errorf("%d are counted as too late and %d as malformed, want 1 and 0", timeouts, malformed)
	}
	c, _, _ = upgrade(t, h, loopback, good...)
	// A length that is negative.
	_, _ = c.Write([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4})
	nettest.Eventually(t, "the place to be free", func() bool {
		return h.stats.Unadmitted.Load() == 0 && h.stats.Handshakes[transport.WebSocket].Load() == 2
	})
}
