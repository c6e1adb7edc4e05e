package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// ErrDiverged says that the client's state is not what the server has sent. It
// cannot happen; if it does, the full state has been asked for.
var ErrDiverged = errors.New("client: the state differs from the server's")

// verification is a question whether client and server agree, under way.
type verification struct {
	then     []func(error)
	deadline time.Duration // on the client's clock
	next     time.Duration // digests are not asked for before, also for another question
}

const (
	verifyTimeout = 10 * time.Second
	verifyAgain   = 5 * time.Second / 4 // a server may ignore who asks more than once a second
	// snapshots with a digest per request; a server may grant fewer
	verifyDigests = 60
)

// Verify asks the server for digests of the replicated state, and calls then
// inside Step when one could be compared: with nil if both sides agree, with
// [ErrDiverged] if not, and with another error if none came within 10 s or the
// connection ended. Only a moment at which everything owed to the client has
// arrived can be compared, so on a link that is always behind it fails.
func (c *Client) Verify(then func(error)) {
	v := &c.verify
	v.then = append(v.then, then)
	if len(v.then) == 1 {
		v.deadline = c.clock.Now() + verifyTimeout
	}
}

// step asks again, and gives up.
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

// compared takes what the newest snapshot said.
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
