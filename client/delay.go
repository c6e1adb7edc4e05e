package client

import "time"

// delayMeter finds how far behind the server's time a client has to draw, so that it nearly always
// has the snapshots before and after the drawn moment.
//
// A frame with this delay finds the next snapshot if that arrived in time: while the moment is
// between two snapshots, the later one is missing until its arrival, which is
//
//	need = lateness of the later + time between the two
//
// behind the earlier. So for each delay the meter computes the share of the time during which the
// next snapshot would have been missing with this delay, for any reason: jitter, loss, a server
// that sends every other snapshot or begins its ticks late.
type delayMeter struct {
	list  [maxDelays]whole // a ring
	next  int
	count int
}

// whole is a snapshot that arrived whole.
type whole struct {
	tick uint64
	game time.Duration // of its tick
	at   time.Duration // its arrival, by the client's clock
	gap  time.Duration // game time since the one before

	still bool // no object has changed since the one before
}

const (
	// maxDelays and delayWindow limit the snapshots considered: 8.5 s of 60 Hz, or 10 s of less.
	maxDelays   = 512
	delayWindow = 10 * time.Second
	// neighbourless is the share of the time during which the next snapshot may be missing, one
	// part in this many. It is half of the promised share, because the next seconds differ from the
	// last.
	neighbourless = 200
	// delaySpare compensates for the jitter of the estimate of the server's time.
	delaySpare = 2 * time.Millisecond
	// An outage is no jitter: gaps longer than this many periods of snapshots, or ticks, are
	// ignored. Drawing that far behind all the time would be worse.
	maxGap = 5
)

func (d *delayMeter) add(s whole) {
	d.list[d.next] = s
	d.next = (d.next + 1) % maxDelays
	d.count = min(d.count+1, maxDelays)
}

// shift records that the server's time has moved for snapshots before a tick: as if they had
// arrived that much later.
func (d *delayMeter) shift(before uint64, by time.Duration) {
	for i := range d.count {
		if s := &d.list[i]; s.tick < before {
			s.at += by
		}
	}
}

// delay returns how far behind to draw when the server's game time is game now; period is that of
// snapshots.
func (d *delayMeter) delay(now, game, period time.Duration) time.Duration {
	low, high := time.Duration(1<<62), time.Duration(0)
	for i := range d.count {
		if need, ok := d.list[i].need(now, game, period); ok {
			low, high = min(low, need), max(high, need)
		}
	}
	for high-low > 50*time.Microsecond {
		mid := (low + high) / 2
		if d.enough(mid, now, game, period) {
			high = mid
		} else {
			low = mid
		}
	}
	return high + delaySpare
}

// need returns the delay that this snapshot would have required; a snapshot after an outage is
// ignored.
func (s *whole) need(now, game, period time.Duration) (need time.Duration, ok bool) {
	return game - (now - s.at) - s.game + s.gap, now-s.at < delayWindow && s.gap <= maxGap*period
}

// enough reports whether with a delay the next snapshot would have been missing rarely enough.
func (d *delayMeter) enough(delay, now, game, period time.Duration) bool {
	var without, all time.Duration
	for i := range d.count {
		if need, ok := d.list[i].need(now, game, period); ok {
			all += d.list[i].gap
			without += min(max(need-delay, 0), d.list[i].gap)
		}
	}
	return without <= all/neighbourless
}
