package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// ErrDiverged means that the client's state differs from the state that the server has sent. This
// is a defect of netloop; the client then requests the full state.
var ErrDiverged = errors.New("client: the state differs from the server's")

// verification is the check whether client and server agree.
type verification struct {
	then     []func(error)
	deadline time.Duration // on the client's clock
	next     time.Duration // digests are not requested before, also for another check
}

const (
	verifyTimeout = 10 * time.Second
	verifyAgain   = 5 * time.Second / 4 // a server may ignore more than one request a second
	// snapshots with a digest per request; a server may grant fewer
	verifyDigests = 60
)

// Verify requests digests of the replicated state from the server, and calls then inside Step when
// one could be compared: with nil if both sides agree, with [ErrDiverged] if not, and with another
// error if none arrived within 10 s or the connection ended. A digest can be compared only when the
// client has received all changes, so on a link that is always behind it fails.
func (c *Client) Verify(then func(error)) {
	v := &c.verify
	v.then = append(v.then, then)
	if len(v.then) == 1 {
		v.deadline = c.clock.Now() + verifyTimeout
	}
}

// step requests digests again, or gives up.
func (v *verification) step(c *Client, now time.Duration) {
	switch {
	case len(v.then) == 0 || c.session == nil:
	case now >= v.deadline:
		v.done(c, fmt.Errorf("client: no digest could be compared within %v", verifyTimeout))
	case now >= v.next:
		v.next = now + verifyAgain
		c.session.RequestDigest(verifyDigests)
	}
}

// compared handles the comparison with the newest snapshot.
func (v *verification) compared(c *Client, d netvar.DigestState) {
	switch d {
	case netvar.DigestNone:
	case netvar.DigestEqual:
		v.done(c, nil)
	case netvar.DigestUnequal:
		c.stats.Unequal++
		c.stats.FullStates++
		c.session.RequestFullState()
		v.done(c, ErrDiverged)
	}
}

func (v *verification) done(c *Client, err error) {
	then := v.then
	v.then = nil
	for _, fn := range then {
		c.call("Verify", func() { fn(err) })
	}
}
