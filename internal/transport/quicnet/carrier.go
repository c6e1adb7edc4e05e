package quicnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/transport/gate"
)

// carrier moves a session's bytes over one QUIC connection.
type carrier struct {
	conn   *quic.Conn
	stream *quic.Stream
	link   *transport.Link
	clock  func() time.Duration
	// chunks are what streams are read into and written from. A connection has one only while
	// something comes or goes, which is seldom.
	chunks *sync.Pool
	// peer is where the session's owner takes the peer to be; nil: the owner does not ask.
	peer net.Addr
	// waits tells how long what has come from there waited to be read; nil: not at all.
	waits atomic.Pointer[gate.Peer]
	peers *gate.Peers // nil: they need not be told

	wake   chan struct{} // there may be datagrams to send: holds one signal
	frames onDemand      // writes the stream
	end    onDemand      // closes the connection

	mu     sync.Mutex
	remote *transport.Closed // the peer's close frame
}

// run moves bytes until the connection is closed and every goroutine of it has ended, and tells
// why. The caller then ends the session. What reads, and what sends a datagram in each tick, has a
// goroutine; the stream's reader is this one. What is done seldom has one while it is done.
func (c *carrier) run() transport.Closed {
	c.wake = make(chan struct{}, 1)
	c.frames.work, c.end.work = c.writeStream, c.close
	c.link.OnWake(c.wakeDatagrams, c.wakeStream)
	c.wakeDatagrams() // For what was there before.
	c.wakeStream()
	var wg sync.WaitGroup
	c.waits.Store(c.peers.Follow(c.conn.RemoteAddr()))
	wg.Go(c.readDatagrams)
	wg.Go(c.writeDatagrams)
	c.readStream()
	<-c.conn.Context().Done()
	c.wakeDatagrams()
	wg.Wait()
	c.frames.stop()
	c.end.stop()
	c.peers.Leave(c.waits.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remote != nil {
		return *c.remote
	}
	return closedBy(context.Cause(c.conn.Context()))
}

func (c *carrier) wakeDatagrams() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// wakeStream is called for the end too.
func (c *carrier) wakeStream() {
	c.frames.ask()
	if c.closing() {
		c.end.ask()
	}
}

// close ends the connection when the session wants to close. It reports false: there is nothing to
// do after it.
func (c *carrier) close() bool {
	why, _ := c.link.Cause()
	if why.Code != transport.CodeSlow { // That peer does not read: waiting is in vain.
		linger := time.NewTimer(lingerTimeout)
		defer linger.Stop()
		select {
		case <-c.conn.Context().Done():
			return false
		case <-linger.C:
		}
	}
	closeConn(c.conn, why.Code, why.Text)
	return false
}

// readDatagrams reads until the connection ends, or the session wants to close: a client
// that is thrown out for sending too much goes on sending for as long as it can.
func (c *carrier) readDatagrams() {
	for !c.closing() {
		b, err := c.conn.ReceiveDatagram(context.Background()) // It ends with the connection.
		if err != nil {
			return
		}
		waited := c.waits.Load().Waited(len(b), time.Now())
		c.link.ReceiveWaited(c.clock(), waited, b) // quic-go has made b for us.
	}
}

// closing tells whether the session wants to close.
func (c *carrier) closing() bool {
	select {
	case <-c.link.Closing():
		return true
	default:
		return false
	}
}

// readStream reads until the stream ends, or the session wants to close.
func (c *carrier) readStream() {
	var first [1]byte
	for !c.closing() {
		_, err := c.stream.Peek(first[:]) // A stream on which nothing comes keeps no memory for it.
		if err == nil {
			var broken error
			if err, broken = c.readChunk(); broken != nil {
				c.streamEnded(broken)
				return
			}
		}
		if err != nil {
			c.streamFailed(err)
			return
		}
	}
}

// streamFailed takes the error after which nothing can be read any more.
func (c *carrier) streamFailed(err error) {
	var reset *quic.StreamError
	if errors.Is(err, io.EOF) || errors.As(err, &reset) {
		// After a close of our own this is the peer's answer; otherwise the peer may not end its
		// stream without a word. Else it is the connection that has ended, and says why itself.
		c.link.Shutdown(transport.CodeProtocol, "the stream ended without a close")
	}
}

// readChunk reads what has come. What is wrong with it is another error than what is wrong with the
// stream.
func (c *carrier) readChunk() (err, broken error) {
	buf := c.takeChunk()
	defer c.chunks.Put(buf)
	n, err := c.stream.Read(buf[:])
	if n > 0 {
		broken = c.link.ReceiveStream(c.clock(), buf[:n])
	}
	return err, broken
}

// takeChunk returns memory that nobody uses.
func (c *carrier) takeChunk() *[streamChunk]byte {
	if buf, ok := c.chunks.Get().(*[streamChunk]byte); ok {
		return buf
	}
	return new([streamChunk]byte)
}

// streamEnded takes the error that ended the reading: the peer's close, which is answered
// by closing the connection, or a broken protocol, for which the session is closing.
func (c *carrier) streamEnded(err error) {
	var why *transport.Closed
	if !errors.As(err, &why) || !why.Remote {
		return
	}
	c.mu.Lock()
	c.remote = why
	c.mu.Unlock()
	closeConn(c.conn, why.Code, "")
}

// writeDatagrams sends until the connection ends. It waits for one channel alone, because it does
// so in each tick, and to wait for two at once costs half as much again.
func (c *carrier) writeDatagrams() {
	nextRTT := c.clock()
	for range c.wake {
		if c.conn.Context().Err() != nil || c.link.SendDatagrams(c.clock, c.sendDatagram) != nil {
			return
		}
		if at := c.clock(); at >= nextRTT {
			c.link.SetRTT(c.conn.ConnectionStats().SmoothedRTT)
			c.follow()
			nextRTT = at + rttPeriod
		}
	}
}

// follow tells the owner when the peer has moved: its network is another one, or its router has
// given it another port.
func (c *carrier) follow() {
	at := c.conn.RemoteAddr() // The same pointer for as long as it is the same address.
	if c.peer != nil && at != c.peer && c.link.Moved(at.String()) {
		c.peer = at
		c.peers.Leave(c.waits.Swap(c.peers.Follow(at)))
	}
}

// sendDatagram blocks while the peer does not take data.
func (c *carrier) sendDatagram(b []byte) error {
	return sendError(c.conn.SendDatagram(b)) // It copies b.
}

// sendError is what a driver says to an error of SendDatagram. The usual nil costs no memory.
func sendError(err error) error {
	if err == nil {
		return nil
	}
	var tooLarge *quic.DatagramTooLargeError
	if errors.As(err, &tooLarge) { // The path carries less than it did.
		return transport.ErrDatagramTooLarge
	}
	return err
}

// writeStream writes what there is, and in the end what ends the stream. It reports false when
// nothing can be written any more.
func (c *carrier) writeStream() bool {
	if c.writeChunks() != nil {
		return false
	}
	why, ended := c.link.CloseRequested()
	if ended && why.Code != transport.CodeSlow {
		_ = c.stream.Close() // The peer reads up to here and closes the connection.
	}
	return !ended
}

// writeChunks writes all that waits.
func (c *carrier) writeChunks() error {
	buf := c.takeChunk()
	for {
		b := c.link.AppendStream(buf[:0], streamChunk)
		if len(b) == 0 {
			c.chunks.Put(buf) // Of what was written well the stream keeps nothing.
			return nil
		}
		if _, err := c.stream.Write(b); err != nil {
			return err
		}
	}
}
