package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/netvar/replica"
)

// ErrDiverged means that the client's state differs from the state that the server has sent. This
// is a defect of netloop; the client then requests the full state.
var ErrDiverged = errors.New("client: the state differs from the server's")

// verification checks whether client and server have the same state.
type verification struct {
	then     []func(error)
	deadline time.Duration // on the client's clock
	next     time.Duration // time before which no check requests digests again
}

const (
	verifyTimeout = 10 * time.Second
	verifyAgain   = 5 * time.Second / 4 // a server may ignore more than one request a second
	// snapshots with a digest per request; a server may grant fewer
	verifyDigests = 60
)

// Verify requests digests of the replicated state from the server, and calls then inside Step after
// a digest was compared: with nil if the states are equal, and with [ErrDiverged] if not. It calls
// then with another error if no digest could be compared within 10 s, or if the connection ended. A
// digest can be compared only when the client has received all changes, so Verify fails on a link
// that always lags. then must not be nil.
func (c *Client) Verify(then func(error)) {
	v := &c.receiver.verify
	v.then = append(v.then, then)
	if len(v.then) == 1 {
		v.deadline = c.clock.Now() + verifyTimeout
	}
}

// requestDigest requests digests again if a check waits, or ends the check after its deadline.
func (r *receiver) requestDigest(now time.Duration) {
	switch v := &r.verify; {
	case len(v.then) == 0 || r.conn.session == nil:
	case now >= v.deadline:
		r.verified(fmt.Errorf("client: no digest could be compared within %v", verifyTimeout))
	case now >= v.next:
		v.next = now + verifyAgain
		r.conn.session.RequestDigest(verifyDigests)
	}
}

// digestCompared handles the result of comparing the server's digest with the client's state.
func (r *receiver) digestCompared(d replica.DigestState) {
	switch d {
	case replica.DigestNone:
	case replica.DigestEqual:
		r.verified(nil)
	case replica.DigestUnequal:
		r.stats.Unequal++
		r.stats.FullStates++
		r.conn.session.RequestFullState()
		r.verified(ErrDiverged)
	}
}

// verified calls the functions that wait for a check.
func (r *receiver) verified(err error) {
	then := r.verify.then
	r.verify.then = nil
	for _, fn := range then {
		r.call("Verify", func() { fn(err) })
	}
}
