package client

import "time"

// acking decides which flushes justify a datagram only for acknowledgements. Datagrams with other
// data carry acknowledgements anyway, so this concerns a client without data to send. On a good
// link it acknowledges every third snapshot: the server's limit of unacknowledged snapshots (its
// window) has room for three, and for three more if such a datagram is lost. On any other link each
// flush acknowledges.
type acking struct {
	goodFrom time.Duration // the link is good from then on, unless packets are lost or held back
	losses   uint64        // number of losses counted so far
	tick     uint64        // tick of the newest snapshot
	arrived  time.Duration // time at which the newest snapshot was first seen
	turn     uint64        // number of the last acknowledged group of snapshots
	sent     time.Duration // the last flush that justified a datagram
}

const (
	// ackSnapshots and ackSpan limit the number of snapshots that are acknowledged at once. The
	// window has room for a queue of 50 ms: see internal/transport/window.go.
	ackSnapshots = 3
	ackSpan      = 51 * time.Millisecond // A little more than three periods of 60 Hz.
	// goodAfter is the time without a lost packet or held-back snapshot after which a link is good.
	goodAfter = 2 * time.Second
	// ackInterval is the longest time without a datagram: after 300 ms servers consider a client
	// silent.
	ackInterval = 100 * time.Millisecond
	// When a snapshot is later than expected by more than one period plus ackLate, each flush
	// justifies a datagram, which tells the server that no snapshot arrives.
	ackLate = 50 * time.Millisecond
)

// due reports whether a flush justifies a datagram; period is the period of the server's ticks.
//
// The acknowledged snapshots are selected by the server's ticks. So clients that receive the same
// snapshots acknowledge the same snapshots, and can share one encoding.
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
