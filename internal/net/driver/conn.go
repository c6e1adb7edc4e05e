package driver

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Conn is one connection of a transport: one reliable stream and datagrams. One goroutine reads the
// stream, one writes it, one sends datagrams and one receives datagrams; any goroutine may call the
// other methods.
type Conn interface {
	// Read, Write and the deadlines behave like those of a net.Conn. Read returns io.EOF when the
	// peer has ended the stream, and io.ErrUnexpectedEOF when the peer has aborted it. Any other
	// error means that the connection has ended or is about to.
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(at time.Time) error
	SetWriteDeadline(at time.Time) error
	// Peek waits until there are bytes to read, or an error, and does not consume the bytes.
	Peek(b []byte) (int, error)
	// CloseWrite ends the stream in this direction.
	CloseWrite() error

	// SendDatagram sends b and does not keep it. It may block until the peer accepts data. After
	// transport.ErrDatagramTooLarge and transport.ErrBehind only this datagram is lost; after any
	// other error, all later datagrams are lost too.
	SendDatagram(b []byte) error
	// ReceiveDatagram waits for a datagram until the connection ends. The caller owns the bytes.
	ReceiveDatagram() ([]byte, error)

	// Context ends with the connection. Then Err returns the transport's own error, and Closed
	// returns it as a close code and a text.
	Context() context.Context
	Err() error
	Closed() transport.Closed
	// Close ends the connection with a code and a text for the peer. It may wait for the peer, at
	// most Linger. It may be called after the connection has ended.
	Close(code transport.Code, text string)

	// RTT returns the smoothed round trip, or 0 if the transport does not measure it.
	RTT() time.Duration
	// RemoteAddr returns the same pointer until the address changes.
	RemoteAddr() net.Addr
}

// Flusher is a Conn that sends datagrams in batches: its sender calls Flush after the last
// datagram.
type Flusher interface {
	Conn
	// Flush may wait until the datagrams have been sent.
	Flush()
	// Hurry announces more datagrams and ends a Flush that waits. Any goroutine may call it.
	Hurry()
}

// Merged is a Conn that receives the stream and the datagrams in one sequence, so that one
// goroutine reads both.
type Merged interface {
	Conn
	// Next waits until there is data to read. It reports whether the data is a datagram, which
	// ReceiveDatagram returns at once, or bytes of the stream for Read.
	Next() (datagram bool, err error)
}

// Linger is the time that a closing session has to write the rest of its stream.
const Linger = 500 * time.Millisecond

// chunkSize is the number of bytes that a stream reader or writer moves at once.
const chunkSize = 4 << 10

// Chunks is a pool of buffers for reading and writing streams. A connection holds a buffer only
// while its stream moves bytes, which is seldom. Any goroutine may use the zero value.
type Chunks struct{ pool sync.Pool }

// take returns an unused buffer.
func (c *Chunks) take() *[chunkSize]byte {
	if buf, ok := c.pool.Get().(*[chunkSize]byte); ok {
		return buf
	}
	return new([chunkSize]byte)
}

func (c *Chunks) put(buf *[chunkSize]byte) { c.pool.Put(buf) }

// Ended reports whether a connection has ended. It waits up to Linger, because a stream may fail
// shortly before its connection ends.
func Ended(c Conn) bool {
	select {
	case <-c.Context().Done():
		return true
	case <-time.After(Linger):
		return false
	}
}
