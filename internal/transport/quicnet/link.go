package quicnet

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// link moves a session's bytes over one QUIC connection.
type link struct {
	conn    *quic.Conn
	stream  *quic.Stream
	session *transport.Session
	clock   func() time.Duration

	mu     sync.Mutex
	remote *transport.Closed // the peer's close frame
}

// run starts the four goroutines, returns once all of them have ended and the connection
// is closed, and tells why. The caller then ends the session.
func (l *link) run() transport.Closed {
	var wg sync.WaitGroup
	wg.Go(l.readDatagrams)
	wg.Go(l.readStream)
	wg.Go(l.writeDatagrams)
	wg.Go(l.writeStream)
	l.supervise()
	wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remote != nil {
		return *l.remote
	}
	return closedBy(context.Cause(l.conn.Context()))
}

// supervise waits for the end of the connection, and brings it about when the session
// wants to close.
func (l *link) supervise() {
	gone := l.conn.Context().Done()
	select {
	case <-gone:
		return
	case <-l.session.Closing():
	}
	c, _ := l.session.Cause()
	if c.Code != transport.CodeSlow { // That peer does not read: waiting is in vain.
		linger := time.NewTimer(lingerTimeout)
		defer linger.Stop()
		select {
		case <-gone:
			return
		case <-linger.C:
		}
	}
	closeConn(l.conn, c.Code, c.Text)
}

// readDatagrams reads until the connection ends, or the session wants to close: a client
// that is thrown out for sending too much goes on sending for as long as it can.
func (l *link) readDatagrams() {
	for !l.closing() {
		b, err := l.conn.ReceiveDatagram(context.Background()) // It ends with the connection.
		if err != nil {
			return
		}
		l.session.ReceiveDatagram(l.clock(), b) // quic-go has made b for us.
	}
}

// closing tells whether the session wants to close.
func (l *link) closing() bool {
	select {
	case <-l.session.Closing():
		return true
	default:
		return false
	}
}

// readStream reads until the stream ends, or the session wants to close.
func (l *link) readStream() {
	buf := make([]byte, streamChunk)
	for !l.closing() {
		n, err := l.stream.Read(buf)
		if n > 0 {
			if err := l.session.ReceiveStream(l.clock(), buf[:n]); err != nil {
				l.streamEnded(err)
				return
			}
		}
		var reset *quic.StreamError
		if errors.Is(err, io.EOF) || errors.As(err, &reset) {
			// After a close of our own this is the peer's answer; otherwise the peer
			// may not end its stream without a word.
			l.session.Shutdown(transport.CodeProtocol, "the stream ended without a close")
		}
		if err != nil {
			return // Else it is the connection that has ended, and says why itself.
		}
	}
}

// streamEnded takes the error that ended the reading: the peer's close, which is answered
// by closing the connection, or a broken protocol, for which the session is closing.
func (l *link) streamEnded(err error) {
	var c *transport.Closed
	if !errors.As(err, &c) || !c.Remote {
		return
	}
	l.mu.Lock()
	l.remote = c
	l.mu.Unlock()
	closeConn(l.conn, c.Code, "")
}

func (l *link) writeDatagrams() {
	wake, _ := l.session.Wake()
	nextRTT := l.clock()
	for {
		select {
		case <-l.conn.Context().Done():
			return
		case <-wake:
		}
		if err := l.session.SendDatagrams(l.clock, l.sendDatagram); err != nil {
			return
		}
		if at := l.clock(); at >= nextRTT {
			l.session.SetRTT(l.conn.ConnectionStats().SmoothedRTT)
			nextRTT = at + rttPeriod
		}
	}
}

// sendDatagram blocks while the peer does not take data.
func (l *link) sendDatagram(b []byte) error {
	err := l.conn.SendDatagram(b) // It copies b.
	var tooLarge *quic.DatagramTooLargeError
	if errors.As(err, &tooLarge) { // The path carries less than it did.
		return transport.ErrDatagramTooLarge
	}
	return err
}

func (l *link) writeStream() {
	_, wake := l.session.Wake()
	buf := make([]byte, 0, streamChunk)
	for {
		select {
		case <-l.conn.Context().Done():
			return
		case <-wake:
		}
		for {
			buf = l.session.AppendStream(buf[:0], streamChunk)
			if len(buf) == 0 {
				break
			}
			if _, err := l.stream.Write(buf); err != nil {
				return
			}
		}
		if c, ok := l.session.CloseRequested(); ok {
			if c.Code != transport.CodeSlow {
				_ = l.stream.Close() // The peer reads up to here and closes the connection.
			}
			return
		}
	}
}
