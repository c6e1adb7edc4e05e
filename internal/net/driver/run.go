package driver

import (
	"cmp"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Config configures Run.
type Config struct {
	Conn   Conn
	Link   *transport.Link
	Clock  func() time.Duration
	Chunks *Chunks
	// Peer is the peer's address as the session's owner has it; nil if the owner does not use it.
	Peer net.Addr
	// Follow starts to measure how long datagrams from an address wait in the socket; nil: not
	// measured.
	Follow func(net.Addr) Arrivals
}

// Arrivals are the times at which packets of a followed address arrived at the socket.
type Arrivals interface {
	// Waited returns the time from the arrival of a datagram of size bytes, which has just been
	// read, until now.
	Waited(size int, now time.Time) time.Duration
	// Leave ends the following of the address.
	Leave()
}

// unmeasured are the Arrivals of a socket that does not measure.
type unmeasured struct{}

func (unmeasured) Waited(int, time.Time) time.Duration { return 0 }
func (unmeasured) Leave()                              {}

// rttPeriod is the interval at which a link gets the round trip.
const rttPeriod = 200 * time.Millisecond

// Run moves bytes until the connection is closed and all of its goroutines have ended, and returns
// the reason. The caller then ends the session. Reading, and sending the datagrams of each tick,
// have goroutines of their own; the calling goroutine reads the stream. Writing the stream and
// closing have a goroutine only while they run.
func Run(cfg Config) transport.Closed {
	c := carrier{Config: cfg}
	return c.run()
}

// carrier moves a session's bytes over one connection.
type carrier struct {
	Config
	arrivals atomic.Pointer[Arrivals] // from the peer's address
	flush    Flusher                  // Conn, if it implements Flusher

	wake   chan struct{}     // holds one signal that datagrams may be ready
	begun  chan struct{}     // closed once the stream's first bytes have been written
	frames onDemand          // writes the stream
	end    onDemand          // closes the connection
	remote *transport.Closed // the peer's close frame; only for the goroutine of Run
}

func (c *carrier) run() transport.Closed {
	c.wake, c.begun = make(chan struct{}, 1), make(chan struct{})
	c.flush, _ = c.Conn.(Flusher)
	c.frames.work, c.end.work = c.writeStream, c.close
	c.Link.OnWake(c.wakeDatagrams, c.wakeStream)
	c.wakeDatagrams() // For data that was sent before OnWake.
	c.wakeStream()
	var wg sync.WaitGroup
	if c.Follow == nil {
		c.Follow = func(net.Addr) Arrivals { return unmeasured{} }
	}
	first := c.Follow(c.Conn.RemoteAddr())
	c.arrivals.Store(&first)
	wg.Go(c.writeDatagrams)
	if both, merged := c.Conn.(Merged); merged {
		c.readBoth(both)
	} else {
		wg.Go(c.readDatagrams)
		c.readStream()
	}
	<-c.Conn.Context().Done()
	c.wakeDatagrams()
	wg.Wait()
	c.frames.stop()
	c.end.stop()
	(*c.arrivals.Load()).Leave()
	if c.remote != nil {
		return *c.remote
	}
	return c.Conn.Closed()
}

func (c *carrier) wakeDatagrams() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
	if c.flush != nil {
		c.flush.Hurry()
	}
}

// wakeStream is also called when the session wants to close.
func (c *carrier) wakeStream() {
	c.frames.ask()
	if c.closing() {
		c.end.ask()
	}
}

// close ends the connection of a closing session. It reports false, because no work follows.
func (c *carrier) close() bool {
	why, _ := c.Link.Cause()
	if why.Code != transport.CodeSlow { // That peer does not read: do not wait.
		select {
		case <-c.Conn.Context().Done():
			return false
		case <-time.After(Linger):
		}
	}
	c.Conn.Close(why.Code, why.Text)
	return false
}

// readDatagrams reads until the connection ends or the session wants to close: a client that is
// disconnected for sending too much keeps sending as long as it can.
func (c *carrier) readDatagrams() {
	for !c.closing() {
		b, err := c.Conn.ReceiveDatagram() // It ends with the connection.
		if err != nil {
			return
		}
		waited := (*c.arrivals.Load()).Waited(len(b), time.Now())
		c.Link.ReceiveWaited(c.Clock(), waited, b) // ReceiveDatagram gave b away.
	}
}

// closing reports whether the session wants to close.
func (c *carrier) closing() bool {
	select {
	case <-c.Link.Closing():
		return true
	default:
		return false
	}
}

// readStream reads the stream. It holds no buffer while the stream is idle.
func (c *carrier) readStream() {
	var first [1]byte
	c.readAll(func() error {
		if _, err := c.Conn.Peek(first[:]); err != nil {
			return err
		}
		return c.readChunk()
	})
}

// readBoth reads the stream and datagrams from one sequence.
func (c *carrier) readBoth(from Merged) {
	c.readAll(func() error {
		datagram, err := from.Next()
		switch {
		case err != nil:
			return err
		case !datagram:
			return c.readChunk()
		}
		b, err := from.ReceiveDatagram()
		if err == nil {
			c.Link.ReceiveDatagram(c.Clock(), b)
		}
		return err
	})
}

// readAll calls next until it fails or the session wants to close.
func (c *carrier) readAll(next func() error) {
	for !c.closing() {
		if err := next(); err != nil {
			c.streamEnded(err)
			return
		}
	}
}

// readChunk reads some bytes of the stream. It returns the error of the link, if the link stops
// reading, or else of the connection.
func (c *carrier) readChunk() error {
	buf := c.Chunks.take()
	defer c.Chunks.put(buf)
	n, err := c.Conn.Read(buf[:])
	return cmp.Or(c.Link.ReceiveStream(c.Clock(), buf[:n]), err)
}

// streamEnded handles the error that ended the reading of the stream. It answers a close of the
// peer. A stream that ends without a close frame breaks the protocol, unless this end closed first.
// The link has already answered other protocol errors, and an ended connection has its own error.
func (c *carrier) streamEnded(err error) {
	var why *transport.Closed
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.Link.Shutdown(transport.CodeProtocol, "stream ended without a close frame")
	case errors.As(err, &why) && why.Remote:
		c.remote = why
		c.Conn.Close(why.Code, "")
	}
}

// writeDatagrams sends datagrams until the connection ends. It waits for the first bytes of the
// stream, the server's welcome, so that a client that reads its welcome first loses no datagram.
// The loop waits for one channel only: it runs in each tick, and a select of two channels costs
// half as much again.
func (c *carrier) writeDatagrams() {
	select {
	case <-c.begun:
	case <-c.Conn.Context().Done():
		return
	}
	nextRTT := c.Clock()
	for range c.wake {
		if c.Conn.Context().Err() != nil || c.Link.SendDatagrams(c.Clock, c.sendDatagram) != nil {
			return
		}
		if c.flush != nil {
			c.flush.Flush()
		}
		if at := c.Clock(); at >= nextRTT {
			c.Link.SetRTT(c.Conn.RTT())
			c.follow()
			nextRTT = at + rttPeriod
		}
	}
}

// follow tells the owner when the peer's address has changed: the peer has another network, or its
// router assigned another port.
func (c *carrier) follow() {
	at := c.Conn.RemoteAddr() // The pointer changes only with the address.
	if c.Peer != nil && at != c.Peer && c.Link.Moved(at.String()) {
		c.Peer = at
		next := c.Follow(at)
		(*c.arrivals.Swap(&next)).Leave()
	}
}

// sendDatagram blocks while the peer does not take data.
func (c *carrier) sendDatagram(b []byte) error {
	return c.Conn.SendDatagram(b)
}

// writeStream writes the pending bytes, and the end of the stream when the session closes. It
// reports false when no more bytes can be written.
func (c *carrier) writeStream() bool {
	if c.writeChunks() != nil {
		if !Ended(c.Conn) { // Only the stream has failed.
			c.Conn.Close(transport.CodeProtocol, "stream cannot be written")
		}
		return false
	}
	c.begins()
	why, ended := c.Link.CloseRequested()
	if ended && why.Code != transport.CodeSlow {
		_ = c.Conn.CloseWrite() // The peer reads up to the end and closes the connection.
	}
	return !ended
}

// begins allows datagrams to be sent. The goroutine that writes the stream calls it after each
// write.
func (c *carrier) begins() {
	select {
	case <-c.begun:
	default:
		close(c.begun)
	}
}

// writeChunks writes all pending bytes of the stream.
func (c *carrier) writeChunks() error {
	buf := c.Chunks.take()
	for {
		b := c.Link.AppendStream(buf[:0], chunkSize)
		if len(b) == 0 {
			c.Chunks.put(buf) // Written streams do not keep the buffer.
			return nil
		}
		if _, err := c.Conn.Write(b); err != nil {
			return err
		}
	}
}
