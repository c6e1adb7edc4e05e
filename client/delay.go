package client

import "time"

// delayMeter finds how far behind the server's time a client has to draw, so that it nearly always
// has the snapshot before and the one after the moment that it draws.
//
// Drawing so far behind, a frame finds the next snapshot there if that arrived in time: while the
// moment lies between two snapshots, the later one is missing until its arrival, which is
//
//	need = lateness of the later + time between the two
//
// behind the earlier. So of a delay it is known what share of the time would have been without a
// neighbour, had it held all along, whatever has made it so: jitter, loss, a server that sends
// every other snapshot or begins its ticks late.
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

	still bool // no object has changed since that
}

const (
	// maxDelays and delayWindow bound what is looked at: 8.5 s of 60 Hz, or 10 s of less.
	maxDelays   = 512
	delayWindow = 10 * time.Second
	// neighbourless is the share of the time that may be without a neighbour, one part of so many.
	// Half of what is promised, because the next seconds are not like the last.
	neighbourless = 200
	// delaySpare makes up for what the estimate of the server's time trembles.
	delaySpare = 2 * time.Millisecond
	// An outage is no jitter: what is further apart than so many periods of snapshots, or ticks, is
	// not looked at. To draw that far behind all the time would be worse.
	maxGap = 5
)

func (d *delayMeter) add(s whole) {
	d.list[d.next] = s
	d.next = (d.next + 1) % maxDelays
	d.count = min(d.count+1, maxDelays)
}

// shift says that the server's time has moved for snapshots before a tick: as if they had arrived
// that much later.
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

// need is how far behind one would have had to draw for this snapshot; one after an outage says
// nothing.
func (s *whole) need(now, game, period time.Duration) (need time.Duration, ok bool) {
	return game - (now - s.at) - s.game + s.gap, now-s.at < delayWindow && s.gap <= maxGap*period
}

// enough reports whether with a delay few enough of the frames would have been without a neighbour.
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
