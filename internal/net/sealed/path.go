package sealed

import "time"

const (
	// firstProbe and maxProbe are the first and the longest pause between two challenges while
	// datagrams travel over QUIC. The pauses double up to longProbe. Later they are a quarter of
	// the time since the return to QUIC, because QUIC may wait as long for its next attempt after
	// an outage.
	firstProbe = 100 * time.Millisecond
	longProbe  = 500 * time.Millisecond
	maxProbe   = 8 * time.Second
	// checkPeriod is the interval of challenges on a path in use. They measure the round trip.
	checkPeriod = 2 * time.Second
	// silence is the time, beyond a round trip, after which an end that has sent a datagram and
	// received no record challenges its peer.
	silence = 100 * time.Millisecond
	// askPeriod is the interval of challenges until one is answered, or a quarter of a round trip
	// or of the time so far if that is longer: responses to the last keptTokens challenges count.
	// patience is the time without any record, or two round trips if they are longer, after which
	// datagrams return to QUIC. If records of the peer arrive but records to the peer do not, the
	// peer returns first.
	askPeriod = 80 * time.Millisecond
	patience  = 400 * time.Millisecond
	// settled is the age above which the end of a path does not lengthen the pauses between
	// probes.
	settled = 10 * time.Second
)

// path decides at one end whether datagrams travel as records: from the first answer to a
// challenge until challenges are no longer answered. It reads no clock: now is the time since an
// arbitrary start.
type path struct {
	patient bool // this end sends no record before one has arrived; set on a server
	active  bool
	since   time.Duration // start of the current state
	pause   time.Duration // until the next probe, while not active
	next    time.Duration // time of the next probe, while not active

	heard    bool
	arrival  time.Duration // time of the newest arrival
	waits    time.Duration // time of the first datagram since the last arrival; 0: none
	used     bool          // a datagram was sent or has arrived since the last answer
	answered time.Duration // time of the last answer, or of the start of the active state
	asked    time.Duration // time of the first unanswered challenge; 0: none
	again    time.Duration // time of the newest challenge; 0: none
	rtt      time.Duration // 0: not measured
}

// sent records that a datagram was sent as a record.
func (p *path) sent(now time.Duration) {
	p.used = true
	if p.waits == 0 {
		p.waits = now
	}
}

// arrived records the arrival of an authentic record, perhaps a datagram.
func (p *path) arrived(now time.Duration, datagram bool) {
	if !p.heard && p.patient {
		p.pause, p.next = firstProbe, now+firstProbe
	}
	p.heard, p.arrival, p.waits = true, now, 0
	p.used = p.used || datagram
}

// hinted reports whether a challenge must be sent now, because a record has arrived although the
// path is not active. Without it, only the peer would use the path until this end's next probe.
func (p *path) hinted(now time.Duration) (ask bool) {
	// The pauses grow because the round trip may have grown, so that an answer arrives within a
	// pause.
	pause := max(firstProbe, p.rtt/4, min((now-p.since)/8, time.Second))
	if ask = !p.active && (p.again == 0 || now-p.again >= pause); ask {
		p.again = now
	}
	return ask
}

// answer records the answer to a challenge that was sent at a time, and reports whether the path
// has become active.
func (p *path) answer(now, at time.Duration) (began bool) {
	if s := max(now-at, 1); !p.active {
		p.rtt = s
	} else {
		p.rtt += (s - p.rtt) / 4
	}
	p.answered, p.asked, p.used = now, 0, false
	if p.active {
		return false
	}
	p.active, p.since = true, now
	return true
}

// tick reports whether a challenge must be sent now, and whether the path has ended.
func (p *path) tick(now time.Duration) (ask, ended bool) {
	switch {
	case !p.active:
		if p.patient && !p.heard || now < p.next {
			return false, false
		}
		p.pause = min(max(2*p.pause, firstProbe), max(longProbe, (now-p.since)/4), maxProbe)
		p.again, p.next = now, now+p.pause
		return true, false
	case p.asked != 0 && now-max(p.asked, p.arrival) >= p.patience():
		p.end(now)
		return false, true
	case p.asked != 0:
		ask = now-p.again >= max(askPeriod, p.rtt/4, (now-p.asked)/4)
	case p.used && now-p.answered >= checkPeriod, p.silent(now):
		ask, p.asked = true, now
	}
	if ask {
		p.again = now
	}
	return ask, false
}

// patience returns the time without an answer after which datagrams return to QUIC.
func (p *path) patience() time.Duration { return max(patience, 2*p.rtt) }

// silent reports whether a record of the peer is missing after a datagram was sent.
func (p *path) silent(now time.Duration) bool { return p.waits != 0 && now-p.waits >= silence+p.rtt }

// peerReturned handles a datagram of the peer that arrived over QUIC: the peer no longer gets
// records. It reports whether the path has ended. A path that became active only recently does not
// end, because the datagram may have been sent before.
func (p *path) peerReturned(now time.Duration) (ended bool) {
	if !p.active || now-p.since < p.patience() {
		return false
	}
	p.end(now)
	return true
}

// end returns to QUIC. If the path ends soon after its start, the pauses between probes grow.
func (p *path) end(now time.Duration) {
	if now-p.since >= settled {
		p.pause = 0
	}
	p.active, p.since, p.asked, p.waits = false, now, 0, 0
	p.pause = min(max(2*p.pause, firstProbe), maxProbe)
	p.next = now + p.pause
}
