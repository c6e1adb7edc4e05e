package client

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
)

// lull measures the time without packets while Step was called.
type lull struct {
	heard time.Duration // the newest arrival
	step  time.Duration // the last Step
	quiet time.Duration
}

// mostFrame limits the time that one frame counts: beyond it the program hung, or the machine
// slept.
const mostFrame = 100 * time.Millisecond

// stepped records a Step and the time of the newest arrival, and returns the time without packets.
func (l *lull) stepped(now, heard time.Duration) time.Duration {
	if l.quiet += min(now-l.step, mostFrame); heard != l.heard {
		l.quiet = 0
	}
	l.step, l.heard = now, heard
	return l.quiet
}

// listen ends a connection without packets for too long.
func (c *Client) listen() {
	if !c.live() || c.Closed() != nil {
		return
	}
	if c.silence.stepped(c.clock.Now(), c.session.LinkFacts().LastArrival) < c.cfg.LostAfter {
		return
	}
	why := netloop.Closed{Code: netloop.CodeTimeout, Text: fmt.Sprintf("nothing was heard from the server for %v", c.cfg.LostAfter)}
	if c.breaks(why.Code) {
		c.lose(why)
		return
	}
	c.session.Close(why.Code, why.Text)
	c.end(why)
}
