package driver

import (
	"cmp"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/transport"
)

// Config is what Run needs to know.
type Config struct {
	Conn   Conn
	Link   *transport.Link
	Clock  func() time.Duration
	Chunks *Chunks
	// Peer is where the session's owner takes the peer to be; nil: the owner does not ask.
	Peer net.Addr
	// Peers tell how long what has come from there waited to be read; nil: not at all.
	Peers *udpbatch.Peers
}

// rttPeriod is how often a link tells its session the round trip.
const rttPeriod = 200 * time.Millisecond

// Run moves bytes until the connection is closed and every goroutine of it has ended, and tells
// why. The caller then ends the session. What reads, and what sends a datagram in each tick, has a
// goroutine; the stream's reader is this one. What is done seldom has one while it is done.
func Run(cfg Config) transport.Closed {
	c := carrier{Config: cfg}
	return c.run()
}

// carrier moves a session's bytes over one connection.
type carrier struct {
	Config
	waits atomic.Pointer[udpbatch.Peer] // of the peer's address
	flush Flusher                       // Conn, if it is one

	wake   chan struct{}     // there may be datagrams to send: holds one signal
	begun  chan struct{}     // closed once the stream's first bytes have been written
	frames onDemand          // writes the stream
	end    onDemand          // closes the connection
	remote *transport.Closed // the peer's close frame; of the goroutine of Run
}

func (c *carrier) run() transport.Closed {
	c.wake, c.begun = make(chan struct{}, 1), make(chan struct{})
	c.flush, _ = c.Conn.(Flusher)
	c.frames.work, c.end.work = c.writeStream, c.close
	c.Link.OnWake(c.wakeDatagrams, c.wakeStream)
	c.wakeDatagrams() // For what was there before.
	c.wakeStream()
	var wg sync.WaitGroup
	c.waits.Store(c.Peers.Follow(c.Conn.RemoteAddr()))
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
	c.Peers.Leave(c.waits.Load())
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
	why, _ := c.Link.Cause()
	if why.Code != transport.CodeSlow { // That peer does not read: waiting is in vain.
		select {
		case <-c.Conn.Context().Done():
			return false
		case <-time.After(Linger):
		}
	}
	c.Conn.Close(why.Code, why.Text)
	return false
}

// readDatagrams reads until the connection ends, or the session wants to close: a client
// that is thrown out for sending too much goes on sending for as long as it can.
func (c *carrier) readDatagrams() {
	for !c.closing() {
		b, err := c.Conn.ReceiveDatagram() // It ends with the connection.
		if err != nil {
			return
		}
		waited := c.waits.Load().Waited(len(b), time.Now())
		c.Link.ReceiveWaited(c.Clock(), waited, b) // Nobody else has b.
	}
}

// closing tells whether the session wants to close.
func (c *carrier) closing() bool {
	select {
	case <-c.Link.Closing():
		return true
	default:
		return false
	}
}

// readStream reads the stream. One on which nothing comes keeps no memory for it.
func (c *carrier) readStream() {
	var first [1]byte
	c.readAll(func() error {
		if _, err := c.Conn.Peek(first[:]); err != nil {
			return err
		}
		return c.readChunk()
	})
}

// readBoth reads the stream and datagrams where they come in one order.
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

// readAll reads until the end, or until there is nothing more to come.
func (c *carrier) readAll(next func() error) {
	for !c.closing() {
		if err := next(); err != nil {
			c.streamEnded(err)
			return
		}
	}
}

// readChunk reads some of the stream. Its error is that of the link, if the link will not read on,
// or of the connection.
func (c *carrier) readChunk() error {
	buf := c.Chunks.take()
	defer c.Chunks.put(buf)
	n, err := c.Conn.Read(buf[:])
	return cmp.Or(c.Link.ReceiveStream(c.Clock(), buf[:n]), err)
}

// streamEnded takes why the stream is not read any more. A close of the peer is answered. A stream
// that ends without one is against the rules, unless a close of our own came first. What else
// breaks them has been answered by the link; and a connection that has ended says why itself.
func (c *carrier) streamEnded(err error) {
	var why *transport.Closed
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.Link.Shutdown(transport.CodeProtocol, "the stream ended without a close")
	case errors.As(err, &why) && why.Remote:
		c.remote = why
		c.Conn.Close(why.Code, "")
	}
}

// writeDatagrams sends until the connection ends, but nothing before the first bytes of the stream,
// which are the server's welcome: a client that reads its welcome first loses no datagram. It waits
// for one channel alone, because it does so in each tick, and to wait for two at once costs half as
// much again.
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

// follow tells the owner when the peer has moved: its network is another one, or its router has
// given it another port.
func (c *carrier) follow() {
	at := c.Conn.RemoteAddr() // The same pointer for as long as it is the same address.
	if c.Peer != nil && at != c.Peer && c.Link.Moved(at.String()) {
		c.Peer = at
		c.Peers.Leave(c.waits.Swap(c.Peers.Follow(at)))
	}
}

// sendDatagram blocks while the peer does not take data.
func (c *carrier) sendDatagram(b []byte) error {
	return c.Conn.SendDatagram(b)
}

// writeStream writes what there is, and in the end what ends the stream. It reports false when
// nothing can be written any more.
func (c *carrier) writeStream() bool {
	if c.writeChunks() != nil {
		if !Ended(c.Conn) { // The peer has refused the stream alone.
			c.Conn.Close(transport.CodeProtocol, "the stream cannot be written")
		}
		return false
	}
	c.begins()
	why, ended := c.Link.CloseRequested()
	if ended && why.Code != transport.CodeSlow {
		_ = c.Conn.CloseWrite() // The peer reads up to here and closes the connection.
	}
	return !ended
}

// begins lets datagrams be sent. The goroutine that writes the stream calls it, after each write.
func (c *carrier) begins() {
	select {
	case <-c.begun:
	default:
		close(c.begun)
	}
}

// writeChunks writes all that waits.
func (c *carrier) writeChunks() error {
	buf := c.Chunks.take()
	for {
		b := c.Link.AppendStream(buf[:0], chunkSize)
		if len(b) == 0 {
			c.Chunks.put(buf) // Of what was written well the stream keeps nothing.
			return nil
		}
		if _, err := c.Conn.Write(b); err != nil {
			return err
		}
	}
}
