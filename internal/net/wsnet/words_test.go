package wsnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// A close frame holds the text up to its size, in whole characters and valid UTF-8.
func TestTheReasonOfACloseFrame(t *testing.T) {
	long := strings.Repeat("x", maxReason-1)
	for text, want := range map[string]string{
		"": "", "bye": "bye", "b\xffe": "b?e", long + "x": long + "x", long + "xy": long + "x", long + "öy": long, long[1:] + "ö": long[1:] + "ö", long[2:] + "€ y": long[2:] + "€", long[1:] + "€": long[1:],
	} {
		if got := reason(text); got != want {
			t.Errorf("of %d bytes are left %q, want %q", len(text), got, want)
		}
	}
}

// Codes are mapped to statuses from 4000 on; the game's codes share the last one.
func TestTheStatusOfACloseFrame(t *testing.T) {
	for code, want := range map[transport.Code]websocket.StatusCode{0: 4000, transport.CodeMoved: 4000 + websocket.StatusCode(transport.CodeMoved), 998: 4998, 999: 4999, transport.CodeGame: 4999, 1 << 31: 4999} {
		if got := status(code); got != want {
			t.Errorf("%d is %d, want %d", uint32(code), got, want)
		}
	}
}

// closedBy converts each error to the peer's code, if it is one of ours, or to a lost connection.
func TestWhyASocketEnded(t *testing.T) {
	said := func(code websocket.StatusCode) error {
		return fmt.Errorf("read: %w", websocket.CloseError{Code: code, Reason: "so it is"})
	}
	for _, c := range []struct {
		err  error
		want transport.Closed
	}{
		{said(4000), transport.Closed{Code: 0, Text: "so it is", Remote: true}},
		{said(4003), transport.Closed{Code: transport.CodeKicked, Text: "so it is", Remote: true}},
		{said(4998), transport.Closed{Code: 998, Text: "so it is", Remote: true}},
		{said(4999), transport.Closed{Code: transport.CodeGame, Text: "so it is", Remote: true}},
		{said(3999), transport.Closed{Code: transport.CodeLost, Text: "peer closed the socket with status 3999"}},
		{said(5000), transport.Closed{Code: transport.CodeLost, Text: "peer closed the socket with status 5000"}},
		{websocket.ErrMessageTooBig, transport.Closed{Code: transport.CodeProtocol, Text: "message is larger than 32769 bytes"}},
		{io.EOF, transport.Closed{Code: transport.CodeLost, Text: "socket is closed"}},
		{fmt.Errorf("read: %w", net.ErrClosed), transport.Closed{Code: transport.CodeLost, Text: "socket is closed"}},
		{errors.New("a cable"), transport.Closed{Code: transport.CodeLost, Text: "a cable"}},
	} {
		if got := closedBy(c.err); got != c.want {
			t.Errorf("%v is %+v, want %+v", c.err, got, c.want)
		}
	}
}

// The error of a dial is the server's refusal, a timeout, or the original error.
func TestDialErrors(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	given, cancel := context.WithCancel(t.Context())
	cancel()
	other := errors.New("a cable")
	refused := func(code transport.Code) *transport.Refusal { return &transport.Refusal{Code: code, Text: "so"} }
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want *transport.Refusal // only its code is compared
		is   error
	}{
		"no place":                {t.Context(), errBusy, refused(transport.CodeBusy), nil},
		"the peer's close":        {t.Context(), &transport.Closed{Code: transport.CodeKicked, Text: "so", Remote: true}, refused(transport.CodeKicked), nil},
		"a close of its own":      {t.Context(), &transport.Closed{Code: transport.CodeProtocol, Text: "so"}, nil, nil},
		"a close of a socket":     {t.Context(), websocket.CloseError{Code: 4004, Reason: "so"}, refused(4), nil},
		"a refusal":               {t.Context(), refused(transport.CodeFull), refused(transport.CodeFull), nil},
		"no time":                 {over, other, nil, context.DeadlineExceeded},
		"no patience":             {given, other, nil, context.Canceled},
		"no patience, but a word": {given, &transport.Closed{Code: transport.CodeKicked, Text: "so", Remote: true}, refused(transport.CodeKicked), nil},
		"a cable":                 {t.Context(), other, nil, other},
	} {
		got := dialError(c.ctx, c.err)
		var r *transport.Refusal
		if errors.As(got, &r) != (c.want != nil) || c.want != nil && (r.Code != c.want.Code || r.Text != c.want.Text && c.want.Code != transport.CodeBusy) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.is != nil && !errors.Is(got, c.is) {
			t.Errorf("%s: %v, want %v", name, got, c.is)
		}
		if late := strings.HasPrefix(got.Error(), "no answer in time"); late != (c.ctx == over) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A connection has no reason before its end, and then keeps the first.
func TestTheFirstReasonCounts(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	c := newConn(here)
	defer c.cancel()
	if err := c.Err(); err != nil || c.ending() || c.Closed().Code != transport.CodeLost {
		t.Errorf("an open one says %v, %+v", err, c.Closed())
	}
	first, later := transport.Closed{Code: transport.CodeKicked, Text: "cheated"}, transport.Closed{Code: transport.CodeLeft}
	if !c.because(first, nil) || c.because(later, io.EOF) {
		t.Error("a second reason is taken")
	}
	var closed *transport.Closed
	if err := c.Err(); !errors.As(err, &closed) || *closed != first || c.Closed() != first || !c.ending() {
		t.Errorf("it says %v, %+v", err, c.Closed())
	}
	other := newConn(here)
	defer other.cancel()
	if other.because(later, io.EOF); !errors.Is(other.Err(), io.EOF) || other.Closed() != later {
		t.Errorf("with an error it says %v, %+v", other.Err(), other.Closed())
	}
}

// A peer is pinged every few seconds, one ping at a time. The answer measures the round trip if the
// kernel does not; closing connections are not pinged.
func TestPeersAreAskedForASign(t *testing.T) {
	h := serve(t, nil)
	g := mustDial(t, h, nil)
	h.session(g)
	var in *incoming
	h.sockets.mu.Lock()
	for in = range h.sockets.conns {
	}
	at := time.Now().Add(time.Hour) // The sweep of the server itself is before its time.
	in.pinged = at
	h.sockets.mu.Unlock()
	pinged := func() (time.Time, bool) {
		h.sockets.mu.Lock()
		defer h.sockets.mu.Unlock()
		return in.pinged, in.pinging
	}
	if h.sockets.checkAll(at.Add(3*time.Second - 1)); in.pinged != at {
		t.Error("a peer is asked before its time")
	}
	in.rtt.Store(0)
	h.sockets.checkAll(at.Add(3 * time.Second))
	if last, _ := pinged(); last != at.Add(3*time.Second) {
		t.Error("a peer is not asked after three seconds")
	}
	nettest.Eventually(t, "the answer", func() bool { _, busy := pinged(); return !busy && in.rtt.Load() != 0 })
	h.sockets.mu.Lock()
	in.pinging = true
	h.sockets.mu.Unlock()
	if h.sockets.checkAll(at.Add(time.Hour)); in.pinged != at.Add(3*time.Second) {
		t.Error("a peer is asked while it has not answered")
	}
	h.sockets.mu.Lock()
	in.pinging = false
	h.sockets.mu.Unlock()
	in.because(transport.Closed{}, nil)
	if h.sockets.checkAll(at.Add(time.Hour)); in.pinged != at.Add(3*time.Second) {
		t.Error("a peer that is closing is asked")
	}
}

// A datagram before the welcome is lost, and a too large one is refused by the sender.
func TestDatagramsOutOfTheirTime(t *testing.T) {
	h := serve(t, nil)
	ws := raw(t, h)
	say, err := transport.AppendHello([]byte{streamMessage}, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{{datagramMessage, 1, 2, 3}, say} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, b, err := ws.Read(t.Context()); err != nil || len(b) < 2 || b[0] != streamMessage || h.stats.DatagramsIn.Load() != 0 {
		t.Errorf("after a datagram the welcome is %x, %v", b, err)
	}
	if err := new(Conn).SendDatagram(make([]byte, transport.MaxDatagram+1)); !errors.Is(err, transport.ErrDatagramTooLarge) {
		t.Error("one that is too large says", err)
	}
}

// An ended connection fails to read and write; before that its data is read byte by byte or at
// once, and its round trip is measured.
func TestAConnectionThatHasEnded(t *testing.T) {
	h := serve(t, nil)
	c, err := NewDialer().connect(t.Context(), &DialConfig{URL: "ws://" + h.at + endpoint.Path})
	if err != nil {
		t.Fatal(err)
	}
	say, err := transport.AppendHello(nil, nettest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Write(say); n != len(say) || err != nil {
		t.Fatal(n, err)
	}
	one := make([]byte, 1)
	if n, err := c.Peek(one); n != 1 || err != nil || one[0] == 0 {
		t.Fatalf("the length of the welcome is %x, %v", one[:n], err)
	}
	welcome := make([]byte, 1+int(one[0]))
	if n, err := c.Read(welcome[:1]); n != 1 || err != nil || welcome[0] != one[0] {
		t.Fatal(n, err)
	}
	n, err := c.Read(welcome[1:])
	if n < 2 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := io.ReadFull(c, welcome[1+n:]); err != nil {
		t.Fatal(err)
	}
	if frame, err := transport.ReadFrame(bytes.NewReader(welcome), transport.MaxHandshake); err != nil || !bytes.Equal(frame, welcome[1:]) {
		t.Errorf("the welcome is %x, %v", welcome, err)
	}
	if rtt := c.RTT(); !kernelIsMute() && (rtt <= 0 || rtt%time.Microsecond != 0) {
		t.Errorf("the kernel, which counts in microseconds, says %v", rtt)
	}
	mute := new(Conn) // Its socket is not TCP.
	if mute.rtt.Store(7); mute.RTT() != 7 {
		t.Errorf("without the kernel's round trip it is %v", mute.RTT())
	}
	c.Close(transport.CodeLeft, "bye")
	if c.Context().Err() == nil || c.Closed() != (transport.Closed{Code: transport.CodeLeft, Text: "bye"}) {
		t.Errorf("it has ended with %+v", c.Closed())
	}
	if n, err := c.Read(welcome); n != 0 || err == nil {
		t.Errorf("it reads %d bytes, %v", n, err)
	}
	if n, err := c.Peek(one); n != 0 || err == nil {
		t.Errorf("it peeks at %d bytes, %v", n, err)
	}
	if datagram, err := c.Next(); datagram || err == nil {
		t.Errorf("the next is a datagram: %v, %v", datagram, err)
	}
	if n, err := c.Write(say); n != 0 || err == nil {
		t.Errorf("it writes %d bytes, %v", n, err)
	}
	if err := c.SendDatagram(one); err == nil {
		t.Error("it sends a datagram")
	}
	if a := h.Find(t, "the end", nettest.Kind(transport.Gone)); *a.Closed != (transport.Closed{Code: transport.CodeLeft, Text: "bye", Remote: true}) {
		t.Errorf("the server reads %+v", a.Closed)
	}
}
