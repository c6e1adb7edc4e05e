package client

import "time"

// acking decides which flushes are worth a datagram for acknowledgements alone. What else leaves
// carries them anyway, so this is about a client that has nothing to say. On a link that is well it
// acknowledges every third snapshot: the server's window has room for as many, and for as many
// again when that one datagram is lost. On any other link each flush acknowledges.
type acking struct {
	well time.Duration // from when on the link counts as well, if nothing happens
	seen uint64        // of reception.rough
	tick uint64        // of the newest snapshot
	came time.Duration // when it was seen first
	turn uint64        // that was acknowledged last
	sent time.Duration // the last flush that was worth a datagram
}

const (
	// ackSnapshots and ackSpan bound how many snapshots are acknowledged at once. The window has
	// room for a queue of 50 ms: see internal/transport/window.go.
	ackSnapshots = 3
	ackSpan      = 51 * time.Millisecond // Three periods of 60 Hz, and a little.
	// wellAfter is for how long nothing must have been lost, and nothing held back.
	wellAfter = 2 * time.Second
	// ackMost is how long a client says nothing at most: servers take 300 ms for silence.
	ackMost = 100 * time.Millisecond
	// ackLate is how much later than by a period a snapshot may be, until the server is to hear at
	// each flush that none comes.
	ackLate = 50 * time.Millisecond
)

// due reports whether a flush is worth a datagram; period is that of the server's ticks.
//
// Whose turn it is to be acknowledged follows from the server's ticks. So clients that get the same
// have acknowledged the same, and one encoding serves them all.
func (a *acking) due(now time.Duration, r *reception, period time.Duration) bool {
	if r.rough != a.seen {
		a.seen, a.well = r.rough, now+wellAfter
	}
	if r.tick != a.tick {
		a.tick, a.came = r.tick, now
	}
	each := time.Duration(r.every) * period
	turn := r.tick / r.every / uint64(min(max(ackSpan/max(each, 1), 1), ackSnapshots))
	late := now-a.came > 2*each+ackLate
	if now >= a.well && !late && now-a.sent < ackMost && (turn == a.turn || r.open > 0) {
		return false
	}
	a.turn, a.sent = turn, now
	return true
}
