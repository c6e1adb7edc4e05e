package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// conn is the state that both sides of a connection share, the owner's Session and the driver's
// Link.
type conn struct {
	cfg   SessionConfig
	link  *Link
	stats *Stats

	mu  sync.Mutex
	box mailbox // under mu

	wakers  atomic.Pointer[wakers] // nil: not set yet
	closing chan struct{}
	// accepted is closed when the client's link reads that the room has admitted or resumed the
	// client
	accepted chan struct{}

	srtt        atomic.Int64
	lastArrival atomic.Int64
	// flushLag is the time in ns from the newest flush that was sent completely until the link
	// accepted its last datagram; 0: no flush was sent since TakeFlushLag
	flushLag atomic.Int64
	slotBusy atomic.Bool // the mailbox has the slot's packets

	received atomic.Uint64 // bytes from the driver, of datagrams and the stream

	streamBehind atomic.Bool // more than half of maxReliableBytes is queued
	deaf         atomic.Bool // closing or ended: arrivals are dropped

	usage    inboxUsage   // under the inbox's mutex
	underWay atomic.Int64 // bytes of unprocessed arrivals, at the server
}

// now returns the time of SessionConfig.Clock, 0 without one.
func (c *conn) now() time.Duration {
	if c.cfg.Clock == nil {
		return 0
	}
	return c.cfg.Clock()
}

// Closing returns a channel that is closed when the connection begins to end; Cause then returns
// the reason. From then on a driver waits only a limited time for the stream. Any goroutine may
// call it.
func (c *conn) Closing() <-chan struct{} { return c.closing }

// wakers wake the driver's writers.
type wakers struct{ datagrams, stream func() }

func (c *conn) wakeDatagrams() {
	if w := c.wakers.Load(); w != nil {
		w.datagrams()
	}
}

func (c *conn) wakeStream() {
	if w := c.wakers.Load(); w != nil {
		w.stream()
	}
}

// Cause returns the reason for the end once the connection has begun to end. Any goroutine may call
// it.
func (c *conn) Cause() (Closed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.box.cause == nil {
		return Closed{}, false
	}
	return *c.box.cause, true
}

// shutdown begins the end of the connection: data that the owner has not flushed is not sent. It
// reports false if the end had already begun.
func (c *conn) shutdown(code Code, text string) bool {
	c.mu.Lock()
	ends := c.box.cause == nil
	c.shutdownLocked(Closed{Code: code, Text: clip(text)})
	c.mu.Unlock()
	c.wakeDatagrams()
	return ends
}

// shutdownLocked queues the close frame, unless the end has already begun. The caller then wakes
// the writer of datagrams, without the lock.
func (c *conn) shutdownLocked(why Closed) {
	if c.box.cause != nil {
		return
	}
	c.box.cause = &why
	if why.Code == CodeSlow {
		// The peer does not read its stream, so it would not get a close frame, but only the close
		// of the underlying transport.
		c.box.reliable.reset()
	} else {
		c.box.reliable.buf = appendCloseFrame(c.box.reliable.buf, why)
		c.stats.FramesOut.Add(1)
	}
	c.deaf.Store(true)
	close(c.closing)
	c.wakeStream()
}
