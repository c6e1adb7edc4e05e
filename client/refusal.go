package client

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// refusals decides when a client that refuses packets of state requests the full state. A correct
// server and client never need this; without it, one packet that is refused for good would leave
// its objects outdated for ever.
type refusals struct {
	count int           // since the last request
	from  time.Duration // the time of the next request, at the earliest
	wait  time.Duration // the minimal interval to the request after it
}

const (
	refusedBeforeFull = 3
	firstFullWait     = time.Second // a server answers no more often
	// a state that is too large for the client does not shrink
	longestFullWait = time.Minute
)

// refused counts a packet that was refused, and reports whether to request the full state.
func (r *refusals) refused(now time.Duration) (ask bool) {
	if r.count++; r.count < refusedBeforeFull || now < r.from {
		return false
	}
	wait := max(2*r.wait, firstFullWait)
	if now-r.from > longestFullWait {
		wait = firstFullWait // that had another cause
	}
	r.wait = min(wait, longestFullWait)
	r.count, r.from = 0, now+r.wait
	return true
}

// refuse counts a packet of state that was refused, and requests the full state when there are too
// many.
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
