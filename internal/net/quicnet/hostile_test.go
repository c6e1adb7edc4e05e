package quicnet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// raw is a client without the protocol's checks.
type raw struct {
	*quic.Conn
	stream *quic.Stream
	socket net.PacketConn
}

// rawDial connects without a hello.
func rawDial(t *testing.T, h *host, window uint64) *raw {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: socket}
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}
	conn, err := tr.Dial(ctx, h.listener.Addr(), conf, commonQUIC(window))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := conn.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.CloseWithError(0, "")
		_ = tr.Close()
		_ = socket.Close()
	})
	return &raw{conn, stream, socket}
}

// join performs a correct handshake.
func (r *raw) join(t *testing.T) {
	t.Helper()
	b, err := transport.AppendHello(nil, nettest.Hello())
	if err == nil {
		_, err = r.stream.Write(b)
	}
	if err == nil {
		b, err = transport.ReadFrame(r.stream, transport.MaxHandshake)
	}
	if err == nil {
		_, _, err = new(transport.Greeting).Take(b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// closedWith waits for the server's close and returns its code.
func (r *raw) closedWith(t *testing.T) transport.Code {
	t.Helper()
	select {
	case <-r.Context().Done():
	case <-time.After(nettest.Patience):
		t.Fatal("the server did not close")
	}
	var app *quic.ApplicationError
	if !errors.As(context.Cause(r.Context()), &app) || !app.Remote {
		t.Fatal("closed by", context.Cause(r.Context()))
	}
	return transport.Code(app.ErrorCode)
}

func TestGarbageInsteadOfAHello(t *testing.T) {
	h := serve(t, func(c *ServerConfig) { c.HelloTimeout = 100 * time.Millisecond })
	for name, c := range map[string]struct {
		bytes []byte
		fin   bool
		code  transport.Code
	}{
		"noise":             {[]byte{5, 0xff, 0xff, 0xff, 0xff, 0xff}, false, transport.CodeProtocol},
		"an oversize hello": {[]byte{0xff, 0xff, 0x7f}, false, transport.CodeProtocol},
		"an endless length": {[]byte{0xff, 0xff, 0xff, 0xff, 0xff}, false, transport.CodeProtocol},
		"another frame":     {[]byte{2, 7<<3 | 2, 0}, false, transport.CodeProtocol},
		"an empty frame":    {[]byte{0}, false, transport.CodeProtocol},
		"a truncated one":   {[]byte{100, 1, 2, 3}, true, transport.CodeProtocol},
		"a slow one":        {[]byte{100, 1, 2, 3}, false, transport.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			r := rawDial(t, h, clientWindow)
			if _, err := r.stream.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			if c.fin {
				_ = r.stream.Close()
			}
			if code := r.closedWith(t); code != c.code {
				t.Error("closed with", code)
			}
		})
	}
	t.Run("nothing at all", func(t *testing.T) {
		if code := rawDial(t, h, clientWindow).closedWith(t); code != transport.CodeTimeout {
			t.Error("closed with", code)
		}
	})
	if n := h.stats.Dropped(transport.DropHello); n != 6 {
		t.Error(n, "malformed hellos counted")
	}
	if n := h.stats.Dropped(transport.DropHelloTimeout); n != 2 {
		t.Error(n, "timeouts counted")
	}
	mustDial(t, h, nil) // The next one is welcome.
}

func TestWrongALPN(t *testing.T) {
	h := serve(t, nil)
	_, err := quic.DialAddr(context.Background(), h.listener.Addr().String(),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h4"}}, clientQUIC())
	var wire *quic.TransportError
	if !errors.As(err, &wire) || !wire.ErrorCode.IsCryptoError() {
		t.Error(err)
	}
	mustDial(t, h, nil)
}

func TestGarbageAfterTheHandshakeAffectsNoOtherClient(t *testing.T) {
	h := serve(t, nil)
	healthy := mustDial(t, h, nil)
	s := h.session(healthy)
	rng := rand.New(rand.NewPCG(1, 2))

	r := rawDial(t, h, clientWindow)
	r.join(t)
	for range 200 {
		b := make([]byte, rng.IntN(1100))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if err := r.SendDatagram(b); err != nil {
			t.Fatal(err)
		}
	}
	big := make([]byte, transport.MaxDatagram+1)
	// quic-go drops packets for which it has no room.
	nettest.Eventually(t, "the oversize datagram", func() bool {
		if err := r.SendDatagram(big); err != nil {
			t.Fatal(err)
		}
		return h.stats.Dropped(transport.DropDatagramTooLarge) > 0
	})
	if _, err := r.stream.Write([]byte{3, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if code := r.closedWith(t); code != transport.CodeProtocol {
		t.Error("closed with", code)
	}
	if h.stats.Dropped(transport.DropDatagram) == 0 || h.stats.Dropped(transport.DropStream) != 1 {
		t.Error("not counted")
	}

	socket, err := net.Dial("udp", h.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for range 100 {
		if _, err := socket.Write(big[:rng.IntN(len(big))]); err != nil {
			t.Fatal(err)
		}
	}

	if _, ended := s.Cause(); ended {
		t.Error("the healthy client's session ended")
	}
	healthy.Send(transport.Message{Method: 3, Reliable: true})
	healthy.Flush(0)
	h.Find(t, "the healthy client's message", func(a *transport.Arrival) bool { return a.Message.Method == 3 })
}

// TestClientThatStopsReading has a live peer that does not read its stream: the owner's calls
// return, the peer is closed as too slow, and another client gets all of its data.
func TestClientThatStopsReading(t *testing.T) {
	h := serve(t, nil)
	healthy := mustDial(t, h, nil)
	hs := h.session(healthy)
	r := rawDial(t, h, serverWindow)
	r.join(t)
	rs := h.Find(t, "the join", func(a *transport.Arrival) bool { return a.Kind == transport.Joined && a.Session != hs }).Session
	payload := make([]byte, 16<<10-1000)
	for i := range 50 {
		for _, s := range []*transport.Session{rs, hs} {
			s.Send(transport.Message{Method: uint32(i), Reliable: true, Payload: payload})
			s.Flush(0)
		}
		healthy.Find(t, "the healthy client's message", func(a *transport.Arrival) bool {
			return a.Kind == transport.MessageArrived && a.Message.Method == uint32(i)
		})
	}
	if code := r.closedWith(t); code != transport.CodeSlow {
		t.Error("closed with", code)
	}
	a := h.Find(t, "the slow client's end", nettest.Kind(transport.Gone))
	if a.Session != rs || a.Closed.Code != transport.CodeSlow {
		t.Errorf("%d is gone: %v", a.Session.ID(), a.Closed)
	}
}

// TestClientThatVanishes has a peer whose socket closes without a word: the writer waits in
// quic-go, the owner does not, and the mailbox slot remains taken.
func TestClientThatVanishes(t *testing.T) {
	h := serve(t, nil)
	r := rawDial(t, h, clientWindow)
	r.join(t)
	s := h.Find(t, "the join", nettest.Kind(transport.Joined)).Session
	_ = r.socket.Close()
	packet := make([]byte, transport.MaxStatePacket)
	taken := 0
	nettest.Eventually(t, "the slot to stay taken", func() bool {
		for range 100 {
			slot := s.Slot()
			s.Send(transport.Message{Method: 1, Payload: packet[:100]})
			if slot != nil {
				taken = 0
				for range transport.MaxStatePackets {
					slot.Packets = append(slot.Packets, packet)
				}
			} else {
				taken++
			}
			s.Flush(0)
		}
		return taken > 20_000
	})
	if h.stats.Dropped(transport.DropUnreliable) == 0 {
		t.Error("the unreliable queue is not bounded")
	}
	s.Close(transport.CodeTimeout, "no sign of life")
	if a := h.Find(t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeTimeout {
		t.Error(a.Closed)
	}
}

// chunk is the number of stream bytes read at once.
const chunk = 4 << 10

// TestKickedClientIsNotReadAnyMore has a client that keeps sending as fast as it can, on the stream
// and in datagrams, after the server has closed its session: it gets code and text, and its data is
// not read.
func TestKickedClientIsNotReadAnyMore(t *testing.T) {
	h := serve(t, nil)
	r := rawDial(t, h, clientWindow)
	r.join(t)
	s := h.Find(t, "the join", nettest.Kind(transport.Joined)).Session
	s.Close(transport.CodeKicked, "cheated")
	frame, err := transport.ReadFrame(r.stream, transport.MaxFrame)
	if err != nil || !bytes.Contains(frame, []byte("cheated")) {
		t.Fatalf("instead of the close the client reads %q, %v", frame, err)
	}
	datagrams, stream := h.stats.DatagramsIn.Load(), h.stats.StreamBytesIn.Load()
	var flood sync.WaitGroup
	flood.Go(func() {
		for r.SendDatagram([]byte{8, 1}) == nil {
		}
	})
	flood.Go(func() {
		empty := make([]byte, chunk)
		for err := error(nil); err == nil; {
			_, err = r.stream.Write(empty)
		}
	})
	if code := r.closedWith(t); code != transport.CodeKicked {
		t.Error("closed with", code)
	}
	flood.Wait()
	// The reader may be inside a call.
	if n := h.stats.DatagramsIn.Load() - datagrams; n > 1 {
		t.Error(n, "datagrams were read after the kick")
	}
	if n := h.stats.StreamBytesIn.Load() - stream; n > chunk {
		t.Error(n, "bytes of the stream were read after the kick")
	}
}
