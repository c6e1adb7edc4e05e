package client

import "time"

// acking decides which flushes justify a datagram for acknowledgements alone. Any other data in a
// flush carries them anyway, so this concerns a client without data to send. On a good link it
// acknowledges every third snapshot: the server's window has room for as many, and for as many
// again when that one datagram is lost. On any other link each flush acknowledges.
type acking struct {
	goodFrom time.Duration // the link is good from then on, unless packets are lost or held back
	losses   uint64        // counted so far
	tick     uint64        // of the newest snapshot
	arrived  time.Duration // when it was seen first
	turn     uint64        // the turn that was acknowledged last
	sent     time.Duration // the last flush that justified a datagram
}

const (
	// ackSnapshots and ackSpan limit how many snapshots are acknowledged at once. The window has
	// room for a queue of 50 ms: see internal/transport/window.go.
	ackSnapshots = 3
	ackSpan      = 51 * time.Millisecond // Three periods of 60 Hz, and a little.
	// goodAfter is for how long no packet must have been lost, and no snapshot held back.
	goodAfter = 2 * time.Second
	// ackInterval is the longest time without a datagram: after 300 ms servers consider a client
	// silent.
	ackInterval = 100 * time.Millisecond
	// ackLate is how much later than a period a snapshot may be before each flush tells the server
	// that none arrives.
	ackLate = 50 * time.Millisecond
)

// due reports whether a flush justifies a datagram; period is that of the server's ticks.
//
// The acknowledged snapshots are selected by the server's ticks. So clients that receive the same
// snapshots have acknowledged the same ones, and one encoding serves them all.
func (a *acking) due(now time.Duration, r *losses, period time.Duration) bool {
	if r.count != a.losses {
		a.losses, a.goodFrom = r.count, now+goodAfter
	}
	if r.tick != a.tick {
		a.tick, a.arrived = r.tick, now
	}
	each := time.Duration(r.every) * period
	turn := r.tick / r.every / uint64(min(max(ackSpan/max(each, 1), 1), ackSnapshots))
	late := now-a.arrived > 2*each+ackLate
	if now >= a.goodFrom && !late && now-a.sent < ackInterval && (turn == a.turn || r.inFlight > 0) {
		return false
	}
	a.turn, a.sent = turn, now
	return true
}
