package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// conn is what both sides of a connection share. Owner and driver meet nowhere else.
type conn struct {
	cfg   SessionConfig
	link  *Link
	stats *Stats

	mu  sync.Mutex
	box mailbox // under mu

	wakers  atomic.Pointer[wakers] // nil: nobody is told
	closing chan struct{}
	// closed when the client's link reads that the room has taken it in, or back
	accepted chan struct{}

	srtt        atomic.Int64
	lastArrival atomic.Int64
	// of the newest flush that has left, since it was last taken; 0 is none
	flushLag atomic.Int64
	slotBusy atomic.Bool // the mailbox holds the slot's packets

	streamBehind atomic.Bool // half of the reliable data that may wait does
	deaf         atomic.Bool // closing or ended: what still arrives is dropped

	usage    inboxUsage   // under the inbox's mutex
	underWay atomic.Int64 // bytes of what has arrived and is not done with, on the server
}

// now returns the time of SessionConfig.Clock, 0 without one.
func (c *conn) now() time.Duration {
	if c.cfg.Clock == nil {
		return 0
	}
	return c.cfg.Clock()
}

// Closing returns a channel that is closed once an end is under way, and Cause says why: from then
// on a driver waits for the stream only for so long. Any goroutine may call it.
func (c *conn) Closing() <-chan struct{} { return c.closing }

// wakers are what a driver is told by.
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

// Cause returns why the connection is ending, once it is. Any goroutine may call it.
func (c *conn) Cause() (Closed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.box.cause == nil {
		return Closed{}, false
	}
	return *c.box.cause, true
}

// shutdown begins the end: what the owner has not flushed is not sent. It reports false if an end
// was under way already.
func (c *conn) shutdown(code Code, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := c.box.cause == nil
	c.shutdownLocked(Closed{Code: code, Text: clip(text)})
	return ends
}

// shutdownLocked queues the close frame, unless an end is under way already.
func (c *conn) shutdownLocked(why Closed) {
	if c.box.cause != nil {
		return
	}
	c.box.cause = &why
	if why.Code == CodeSlow {
		// The peer does not read its stream: only the link's own close reaches it.
		c.box.reliable.reset()
	} else {
		c.box.reliable.buf = appendCloseFrame(c.box.reliable.buf, why)
		c.stats.FramesOut.Add(1)
	}
	c.deaf.Store(true)
	close(c.closing)
	c.wakeStream()
	c.wakeDatagrams()
}
