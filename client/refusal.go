package client

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// refusals decides when a client that refuses packets of state asks for the full state. A server
// and a client that are right never come to that; one packet that is refused for good would
// otherwise leave its objects as they are for ever.
type refusals struct {
	count int           // since the last question
	from  time.Duration // the next question is not before
	wait  time.Duration // and the one after it by so much more
}

const (
	refusedBeforeFull = 3
	firstFullWait     = time.Second // a server answers no more often
	// a state that is too large for the client does not become smaller
	longestFullWait = time.Minute
)

// refused takes a packet that was refused, and tells whether to ask.
func (r *refusals) refused(now time.Duration) (ask bool) {
	if r.count++; r.count < refusedBeforeFull || now < r.from {
		return false
	}
	wait := max(2*r.wait, firstFullWait)
	if now-r.from > longestFullWait {
		wait = firstFullWait // that was something else
	}
	r.wait = min(wait, longestFullWait)
	r.count, r.from = 0, now+r.wait
	return true
}

// refuse accounts for a packet of state that was refused, and asks for the full state when there
// are too many.
func (c *Client) refuse(err error) {
	c.stats.Malformed++
	if !c.refusals.refused(c.clock.Now()) {
		return
	}
	if errors.Is(err, netvar.ErrMemory) {
		c.replica.Forget()
	}
	c.stats.FullStates++
	c.log.Warn("asking for the full state: packets were refused", "refused", c.stats.Malformed, "error", err)
	c.session.RequestFullState()
}
