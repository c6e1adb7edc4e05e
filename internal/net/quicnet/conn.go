package quicnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/transport"
)

// Conn is the common part of all transports on QUIC: a QUIC connection and one of its streams.
type Conn struct {
	*Stream
	QUIC *quic.Conn
	acks acks
}

// plain is a QUIC connection for one session only. Its datagrams may travel as sealed records.
type plain struct {
	Conn
	records *sealed.Table // nil: none
	client  bool
	beside  atomic.Pointer[sealed.Channel]
}

// nudgeDatagram only makes QUIC send a packet, from which the server learns the client's new
// address. A restarted server answers it, because it answers packets that are larger than its
// answer. Every other datagram begins with a field of protobuf, which is never 0.
var nudgeDatagram [32]byte

var (
	_ driver.Flusher    = (*plain)(nil)
	_ driver.WithBeside = (*plain)(nil)
)

// Beside implements driver.WithBeside.
func (c *plain) Beside() driver.Beside {
	peer, ok := c.QUIC.RemoteAddr().(*net.UDPAddr)
	if c.records == nil || !ok {
		return nil
	}
	var nudge func()
	if c.client {
		nudge = func() {
			go func() { _ = c.QUIC.SendDatagram(nudgeDatagram[:]) }() // Fails only after the end.
		}
	}
	channel := c.records.Open(c.QUIC.ConnectionState().TLS, peer, nudge)
	if channel == nil {
		return nil
	}
	c.beside.Store(channel)
	return channel
}

// received returns the number of packets of the peer, of QUIC and records.
func (c *plain) received() uint64 {
	n := c.QUIC.ConnectionStats().PacketsReceived
	if channel := c.beside.Load(); channel != nil {
		n += channel.Received()
	}
	return n
}

// ReceiveDatagram implements driver.Conn. It drops datagrams that are equal to nudgeDatagram.
func (c *plain) ReceiveDatagram() ([]byte, error) {
	for {
		if b, err := c.Conn.ReceiveDatagram(); err != nil || !bytes.Equal(b, nudgeDatagram[:]) {
			return b, err
		}
	}
}

// SendDatagram implements driver.Conn. quic-go copies b.
func (c *plain) SendDatagram(b []byte) error { return SendError(c.QUIC.SendDatagram(b)) }

// Close implements driver.Conn. It does not wait.
func (c *plain) Close(code transport.Code, text string) { closeConn(c.QUIC, code, text) }

// ReceiveDatagram implements driver.Conn. quic-go gives the datagram's memory to the caller.
func (c *Conn) ReceiveDatagram() ([]byte, error) {
	b, err := c.QUIC.ReceiveDatagram(context.Background())
	c.acks.due.Store(true)
	return b, err
}

// Flush implements driver.Flusher.
func (c *Conn) Flush() { c.acks.flush(c.QUIC) }

// Hurry implements driver.Flusher.
func (c *Conn) Hurry() { c.acks.hurry() }

// Context implements driver.Conn.
func (c *Conn) Context() context.Context { return c.QUIC.Context() }

// Err implements driver.Conn.
func (c *Conn) Err() error { return context.Cause(c.QUIC.Context()) }

// Closed implements driver.Conn.
func (c *Conn) Closed() transport.Closed { return ClosedBy(c.Err()) }

// RTT implements driver.Conn.
func (c *Conn) RTT() time.Duration { return c.QUIC.ConnectionStats().SmoothedRTT }

// RemoteAddr implements driver.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.QUIC.RemoteAddr() }

// Stream is a QUIC stream with the errors of driver.Conn.
type Stream struct{ *quic.Stream }

// Read implements driver.Conn.
func (s *Stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	return n, streamError(err)
}

// Peek implements driver.Conn.
func (s *Stream) Peek(b []byte) (int, error) {
	n, err := s.Stream.Peek(b)
	return n, streamError(err)
}

// CloseWrite implements driver.Conn.
func (s *Stream) CloseWrite() error { return s.Stream.Close() }

// streamError converts a read error of a QUIC stream to an error of driver.Conn.
func streamError(err error) error {
	var reset *quic.StreamError
	if err != nil && errors.As(err, &reset) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// SendError converts an error of QUIC's SendDatagram to an error of driver.Conn. It does not
// allocate for a nil error.
func SendError(err error) error {
	if err == nil {
		return nil
	}
	var tooLarge *quic.DatagramTooLargeError
	if errors.As(err, &tooLarge) { // The path's packets have become smaller.
		return transport.ErrDatagramTooLarge
	}
	return err
}

// Protocol is an application protocol over QUIC. The ends select a protocol in TLS.
type Protocol struct {
	ALPN string
	Kind transport.Kind
	// Accept returns, on the server, the stream that the client has opened for its hello. It
	// returns an error soon after ctx has ended or the connection is closed.
	Accept func(ctx context.Context, conn *quic.Conn) (driver.Conn, error)
	// Open opens, on the client, the stream for the hello. Host is the dialled address.
	Open func(ctx context.Context, conn *quic.Conn, host string) (driver.Conn, error)
	// Close closes a connection at once, with or without a stream.
	Close func(conn *quic.Conn, code transport.Code, text string)
}

// Plain returns netloop's own protocol.
func Plain() Protocol {
	return Protocol{ALPN: ALPN, Kind: transport.QUIC, Accept: acceptPlain, Open: openPlain, Close: closeConn}
}

func acceptPlain(ctx context.Context, conn *quic.Conn) (driver.Conn, error) {
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return &plain{Conn: Conn{Stream: &Stream{s}, QUIC: conn}}, nil
}

func openPlain(ctx context.Context, conn *quic.Conn, _ string) (driver.Conn, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	return &plain{Conn: Conn{Stream: &Stream{s}, QUIC: conn}, client: true}, nil
}

// incoming is a connection as package admission uses it.
type incoming struct {
	*quic.Conn
	protocol Protocol
	peers    *udpbatch.Peers // nil for a plain socket
	records  *sealed.Table   // nil: none
}

// Kind implements admission.Incoming.
func (in *incoming) Kind() transport.Kind { return in.protocol.Kind }

// Open implements admission.Incoming.
func (in *incoming) Open(ctx context.Context) (driver.Conn, error) {
	c, err := in.protocol.Accept(ctx, in.Conn)
	if p, ok := c.(*plain); ok {
		p.records = in.records
	}
	return c, err
}

// Close implements admission.Incoming.
func (in *incoming) Close(code transport.Code, text string) { in.protocol.Close(in.Conn, code, text) }

// Follow implements admission.Timed.
func (in *incoming) Follow(at net.Addr) driver.Arrivals { return in.peers.Follow(at) }
