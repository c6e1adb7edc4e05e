package client

import (
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
)

// playout selects the moment that a client draws: a little before the server's time, between two
// snapshots that it has completely. Only Step's goroutine uses it.
//
// The moment advances with the frames. It runs faster or slower to approach its target, the
// server's time minus the delay. It never decreases, even if the server's time is corrected or
// stops, or the delay grows.
type playout struct {
	meter    delayMeter
	delay    time.Duration
	computed time.Duration // when the delay was last computed

	snapshots []arrival     // the one before the moment, one earlier, and all after it
	changed   time.Duration // game time of the newest snapshot with a change
	period    time.Duration // of snapshots
	tick      time.Duration
	started   bool
	wanted    time.Duration // game time that should be drawn
	at        time.Duration // game time that is drawn: it waits at the newest snapshot plus ahead
	ahead     time.Duration // limit of extrapolation beyond the newest snapshot
	moment    state.Moment
	frames    frameClock

	drawn, starved, extrapolations, jumps uint64
}

const (
	// The moment runs slower or faster than time by at most 1/maxSlower or 1/maxFaster. It must
	// slow down soon when frames lack the next snapshot: 1/20 is invisible in moving objects, and
	// gains one period of 60 Hz in 1/3 s. It need not speed up as fast.
	maxSlower = 20
	maxFaster = 50
	// slewOver is about the time to correct an error, so that a small one hardly changes the speed.
	slewOver = time.Second
	// maxBehind is the longest time by which the moment may be behind its target before it jumps.
	maxBehind = 250 * time.Millisecond
	// maxDelay limits the delay, as does the time of state.Horizon/2 ticks.
	maxDelay = 500 * time.Millisecond
	// delayInterval is the interval between computations of the delay.
	delayInterval = 100 * time.Millisecond
	// idleAfter is the time without a changed object after which a missing next snapshot no longer
	// counts as starved, because a room may sleep after a second without changes, and then sends no
	// snapshots.
	idleAfter = 750 * time.Millisecond
	// maxSnapshots limits the snapshots that wait to be drawn: at most those of maxDelay count.
	maxSnapshots = state.Horizon
)

// add adds a whole snapshot. Its tick must be later than the tick of the last added snapshot.
func (p *playout) add(s arrival) {
	if n := len(p.snapshots); n > 0 {
		s.gap = s.game - p.snapshots[n-1].game
		p.meter.add(s)
	}
	if len(p.snapshots) == maxSnapshots {
		p.snapshots = append(p.snapshots[:0], p.snapshots[1:]...)
	}
	p.snapshots = append(p.snapshots, s)
	if !s.unchanged {
		p.changed = s.game
	}
}

// restart drops the snapshots and measurements of the last connection. The drawn moment remains
// until the new connection's first snapshot.
func (p *playout) restart() {
	p.meter, p.snapshots, p.started = delayMeter{}, p.snapshots[:0], false
}

// reset also drops the drawn moment, because another room has a different game time.
func (p *playout) reset() {
	p.restart()
	p.at, p.moment = 0, state.Moment{}
}

// frame advances the drawn moment by one frame of the given length. now is the client's clock, and
// game the server's game time at now.
func (p *playout) frame(now, game, length time.Duration) {
	passed, late := p.frames.step(now, length)
	n := len(p.snapshots)
	if n == 0 {
		return
	}
	newest := p.snapshots[n-1].game
	if !p.started || now-p.computed >= delayInterval {
		p.computed = now
		p.setDelay(now, game)
	}
	p.steer(game-late-p.delay, passed)
	p.at = max(p.at, p.snapshots[0].game, min(p.wanted, newest+p.ahead))
	p.findMoment()
	if p.wanted > newest && newest-p.changed < idleAfter {
		p.starved++
		if p.at > newest {
			p.extrapolations++
		}
	}
	p.drawn++
}

func (p *playout) setDelay(now, game time.Duration) {
	if p.meter.count > 0 {
		p.delay = p.meter.delay(now, game, p.period)
	} else { // Only the arrival of the first snapshot is known.
		s := &p.snapshots[0]
		p.delay = game - (now - s.at) - s.game + p.period + delaySpare
	}
	p.delay = min(max(p.delay, 0), maxDelay, state.Horizon/2*p.tick)
}

// steer advances the time to draw by the passed time, a little more or less to approach its target.
// If it is more than maxBehind behind the target, it jumps.
func (p *playout) steer(target, passed time.Duration) {
	if p.wanted > p.at { // It has waited for snapshots, so it can be set back invisibly.
		p.wanted = max(p.at, min(p.wanted, target-passed))
	}
	switch off := target - p.wanted - passed; {
	case !p.started:
		p.started, p.wanted = true, target
	case off > maxBehind:
		p.wanted = target
		p.jumps++
	default:
		correction := time.Duration(int64(off) * int64(passed) / int64(slewOver))
		p.wanted += passed + min(max(correction, -passed/maxSlower), passed/maxFaster)
	}
}

// findMoment finds the snapshots around the moment, and drops earlier ones.
func (p *playout) findMoment() {
	i := len(p.snapshots) - 1
	for i > 0 && p.snapshots[i].game > p.at {
		i--
	}
	if i > 1 { // One more snapshot is kept, to extrapolate from it and the newest snapshot.
		p.snapshots = append(p.snapshots[:0], p.snapshots[i-1:]...)
		i = 1
	}
	s := &p.snapshots[i]
	p.moment = state.Moment{From: s.tick, To: s.tick}
	if i+1 < len(p.snapshots) {
		next := &p.snapshots[i+1]
		p.moment = state.Moment{From: s.tick, To: next.tick, Alpha: float64(p.at-s.game) / float64(next.game-s.game)}
	}
}

// extrapolated returns the moment for a class that extrapolates beyond the newest snapshot by at
// most the time most.
func (p *playout) extrapolated(most time.Duration) state.Moment {
	n := len(p.snapshots)
	if n < 2 || p.moment.From != p.snapshots[n-1].tick || most == 0 {
		return p.moment
	}
	older, newest := &p.snapshots[n-2], &p.snapshots[n-1]
	further := min(p.at-newest.game, most)
	if further <= 0 {
		return p.moment
	}
	return state.Moment{From: older.tick, To: newest.tick, Alpha: 1 + float64(further)/float64(newest.game-older.game)}
}

// oldest returns the tick of the oldest snapshot that may still be drawn.
func (p *playout) oldest() uint64 {
	if len(p.snapshots) == 0 {
		return p.moment.From
	}
	return min(p.moment.From, p.snapshots[0].tick)
}

// frameClock is the time of frames. It adds the frame lengths that the game passes, and approaches
// the clock only slowly, because the times at which frames are computed vary by milliseconds.
type frameClock struct {
	started bool
	at      time.Duration
}

// maxUneven is the largest error of the sum of frame lengths; above it only the clock is used.
const maxUneven = 20 * time.Millisecond

// step advances to the frame at now. It returns the time by which it advanced, and the time by
// which the frame clock is then behind now.
func (f *frameClock) step(now, length time.Duration) (passed, late time.Duration) {
	before := f.at
	f.at += length
	f.at += time.Duration(float64(now-f.at) * min(length.Seconds(), 1))
	if !f.started || length <= 0 || f.at-now > maxUneven || now-f.at > maxUneven {
		if !f.started {
			before = now
		}
		f.started, f.at = true, now
	}
	f.at = max(f.at, before)
	return f.at - before, now - f.at
}

// delayMeter computes the delay with which a client has to draw, so that it nearly always has the
// snapshots before and after the drawn moment.
//
// A moment between two snapshots can be drawn when the later snapshot has arrived. At its arrival
// the server's time is ahead of the earlier snapshot by
//
//	required = lateness of the later + time between the two
//
// and with a smaller delay the later snapshot is missing for a part of the frames between the two.
// So for each delay the meter computes the share of the time during which the next snapshot would
// have been missing with this delay, for any reason: jitter, loss, a server that sends every other
// snapshot or begins its ticks late.
type delayMeter struct {
	list  [maxDelays]arrival // a ring
	next  int
	count int
}

// arrival is the arrival of the last packet of a snapshot.
type arrival struct {
	tick uint64
	game time.Duration // game time of its tick
	at   time.Duration // time of arrival, by the client's clock
	gap  time.Duration // game time since the previous snapshot

	unchanged bool // no object has changed since the previous snapshot
}

const (
	// maxDelays and delayWindow limit the measured snapshots to the last 512 and the last 10 s: at
	// 60 Hz that is 8.5 s.
	maxDelays   = 512
	delayWindow = 10 * time.Second
	// The next snapshot may be missing for 1/missingShare of the time. This is half of the 1 % that
	// netloop promises, because the next seconds may be worse than the measured seconds.
	missingShare = 200
	// delaySpare compensates for the jitter of the estimate of the server's time.
	delaySpare = 2 * time.Millisecond
	// maxGap is the longest gap, in periods of snapshots, that is measured. A longer gap is an
	// outage and not jitter: a delay that covers it would be worse than a rare stop.
	maxGap = 5
)

func (d *delayMeter) add(s arrival) {
	d.list[d.next] = s
	d.next = (d.next + 1) % maxDelays
	d.count = min(d.count+1, maxDelays)
}

// shift handles an epoch that has moved the server's time: it adds by to the arrival times of
// snapshots before a tick, so that they remain comparable with later arrival times.
func (d *delayMeter) shift(before uint64, by time.Duration) {
	for i := range d.count {
		if s := &d.list[i]; s.tick < before {
			s.at += by
		}
	}
}

// delay returns the delay for drawing at the server's game time game; period is the period of
// snapshots.
func (d *delayMeter) delay(now, game, period time.Duration) time.Duration {
	low, high := time.Duration(1<<62), time.Duration(0)
	for i := range d.count {
		if delay, ok := d.list[i].required(now, game, period); ok {
			low, high = min(low, delay), max(high, delay)
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

// required returns the delay that this snapshot would have required. Snapshots after an outage are
// ignored.
func (s *arrival) required(now, game, period time.Duration) (delay time.Duration, ok bool) {
	return game - (now - s.at) - s.game + s.gap, now-s.at < delayWindow && s.gap <= maxGap*period
}

// enough reports whether, with this delay, the next snapshot would have been missing for at most
// 1/missingShare of the time.
func (d *delayMeter) enough(delay, now, game, period time.Duration) bool {
	var without, all time.Duration
	for i := range d.count {
		if required, ok := d.list[i].required(now, game, period); ok {
			all += d.list[i].gap
			without += min(max(required-delay, 0), d.list[i].gap)
		}
	}
	return without <= all/missingShare
}
