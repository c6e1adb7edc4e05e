package driver

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Conn is one connection of a carrier: one reliable stream and datagrams. One goroutine reads the
// stream, one writes it, one sends datagrams and one receives them; the other methods are for any.
type Conn interface {
	// Read, Write and the deadlines are those of a net.Conn. A stream that the peer has ended
	// reads io.EOF, one that the peer has broken off io.ErrUnexpectedEOF. Any other error says
	// that the connection has ended or is about to.
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(at time.Time) error
	SetWriteDeadline(at time.Time) error
	// Peek waits until there is something to read, or an error. It leaves it there.
	Peek(b []byte) (int, error)
	// CloseWrite ends the stream in one direction: the peer reads up to here.
	CloseWrite() error

	// SendDatagram sends b, which it does not keep. It may wait until the peer takes data. The
	// error transport.ErrDatagramTooLarge loses this one only, any other all that follow.
	SendDatagram(b []byte) error
	// ReceiveDatagram waits for a datagram, which belongs to the caller, until the connection ends.
	ReceiveDatagram() ([]byte, error)

	// Context ends with the connection. Then Err says why, for the carrier's own package, and
	// Closed says it in the transport's words.
	Context() context.Context
	Err() error
	Closed() transport.Closed
	// Close ends the connection for a reason, which the peer reads if it listens. It may wait for
	// that, for Linger at most. The connection may have ended already.
	Close(code transport.Code, text string)

	// RTT is the smoothed round trip, 0 if the carrier does not know it.
	RTT() time.Duration
	// RemoteAddr returns the same pointer for as long as it is the same address.
	RemoteAddr() net.Addr
}

// Flusher is a Conn that is told when no more datagrams follow for now, by who sends them.
type Flusher interface {
	Conn
	// Flush may wait until the datagrams have left.
	Flush()
	// Hurry says that there are more, and ends a Flush that waits in vain. Any goroutine may call
	// it.
	Hurry()
}

// Merged is a Conn that brings the stream and the datagrams in one sequence, so that one goroutine
// reads both.
type Merged interface {
	Conn
	// Next waits until there is something to read. It tells whether that is a datagram, which
	// ReceiveDatagram returns at once, or bytes of the stream, some of which Read does.
	Next() (datagram bool, err error)
}

// Linger is how long a closing session may take to bring out its stream.
const Linger = 500 * time.Millisecond

// chunkSize is how much a stream reader or writer moves at once.
const chunkSize = 4 << 10

// Chunks are what streams are read into and written from. A connection has one only while something
// comes or goes, which is seldom. Any goroutine may use the zero value.
type Chunks struct{ pool sync.Pool }

// take returns memory that nobody uses.
func (c *Chunks) take() *[chunkSize]byte {
	if buf, ok := c.pool.Get().(*[chunkSize]byte); ok {
		return buf
	}
	return new([chunkSize]byte)
}

func (c *Chunks) put(buf *[chunkSize]byte) { c.pool.Put(buf) }

// Ended waits a moment for the end of a connection whose stream has failed, which follows if the
// stream failed because of it, and tells whether it has come.
func Ended(c Conn) bool {
	select {
	case <-c.Context().Done():
		return true
	case <-time.After(Linger):
		return false
	}
}
