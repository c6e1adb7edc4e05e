package client

import "time"

// acking decides which flushes justify a datagram for acknowledgements alone. Any other data in a
// flush carries them anyway, so this concerns a client without data to send. On a good link it
// acknowledges every third snapshot: the server's limit of unacknowledged snapshots (its window)
// has room for three, and for three more when one such datagram is lost. On any other link each
// flush acknowledges.
type acking struct {
	goodFrom time.Duration // the link is good from then on, unless packets are lost or held back
	losses   uint64        // counted so far
	tick     uint64        // of the newest snapshot
	arrived  time.Duration // when it was seen first
	turn     uint64        // number of the last acknowledged group of snapshots
	sent     time.Duration // the last flush that justified a datagram
}

const (
	// ackSnapshots and ackSpan limit how many snapshots are acknowledged at once. The window has
	// room for a queue of 50 ms: see internal/transport/window.go.
	ackSnapshots = 3
	ackSpan      = 51 * time.Millisecond // Three periods of 60 Hz, and a little.
	// goodAfter is the time without a lost packet or held-back snapshot after which a link is good.
	goodAfter = 2 * time.Second
	// ackInterval is the longest time without a datagram: after 300 ms servers consider a client
	// silent.
	ackInterval = 100 * time.Millisecond
	// When a snapshot is later than expected by more than one period plus ackLate, each flush
	// justifies a datagram, which tells the server that no snapshot arrives.
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
