package client

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// playout selects the moment that a client draws: a little behind the server's time, between two
// snapshots that it has whole. Only Step's goroutine uses it.
//
// The moment advances with the frames. It is steered to its target, the server's time less the
// delay, by running faster or slower, and never decreases: neither when the server's time is
// corrected or stops nor when the delay grows.
type playout struct {
	meter delayMeter
	delay time.Duration
	asked time.Duration // when the delay was last computed

	snapshots []whole       // the one before the moment, one more, and all after it
	changed   time.Duration // game time of the newest snapshot with a change
	period    time.Duration // of snapshots
	tick      time.Duration
	started   bool
	run       time.Duration // game time to be drawn
	at        time.Duration // game time drawn: at the end of the snapshots it waits for more
	ahead     time.Duration // how far beyond the newest snapshot it may extrapolate
	moment    netvar.Moment
	frames    frameClock

	drawn, starved, extrapolated, jumps uint64
}

const (
	// The moment runs slower or faster than time by at most one part in this many. Slower is
	// urgent, because frames lack the next snapshot; a twentieth is invisible in moving objects,
	// and makes up for a snapshot in a third of a second. Faster is not urgent.
	mostSlower = 20
	mostFaster = 50
	// slewOver is about the time to correct an error, so that a small one hardly changes the speed.
	slewOver = time.Second
	// viewJump is how far behind its target the moment may be before it jumps.
	viewJump = 250 * time.Millisecond
	// maxDelay limits the delay, as does half of the ticks for which versions are stored.
	maxDelay = 500 * time.Millisecond
	// reconsider is the interval between computations of the delay.
	reconsider = 100 * time.Millisecond
	// stillAfter is how long no object has changed until a missing next snapshot does not count: a
	// sleeping room, which a room may become after a second without changes, sends none.
	stillAfter = 750 * time.Millisecond
	// maxWhole limits the snapshots that wait to be drawn: at most those of maxDelay count.
	maxWhole = netvar.Horizon
)

// arrived adds a whole snapshot. Its tick must be later than that of the last one.
func (p *playout) arrived(s whole) {
	if n := len(p.snapshots); n > 0 {
		s.gap = s.game - p.snapshots[n-1].game
		p.meter.add(s)
	}
	if len(p.snapshots) == maxWhole {
		p.snapshots = append(p.snapshots[:0], p.snapshots[1:]...)
	}
	p.snapshots = append(p.snapshots, s)
	if !s.still {
		p.changed = s.game
	}
}

// moved records that the server's time was set back by so much for ticks from this one on.
func (p *playout) moved(from uint64, by time.Duration) { p.meter.shift(from, by) }

// anew starts with another connection. The drawn state remains until its first snapshot.
func (p *playout) anew() {
	p.meter, p.snapshots, p.started = delayMeter{}, p.snapshots[:0], false
}

// forget starts in another room, with another time.
func (p *playout) forget() {
	p.anew()
	p.at, p.moment = 0, netvar.Moment{}
}

// frame advances by a frame of a length at now, when the server's game time is game.
func (p *playout) frame(now, game, length time.Duration) {
	passed, late := p.frames.step(now, length)
	n := len(p.snapshots)
	if n == 0 {
		return
	}
	newest := p.snapshots[n-1].game
	if !p.started || now-p.asked >= reconsider {
		p.asked = now
		p.setDelay(now, game)
	}
	p.lead(game-late-p.delay, passed)
	p.at = max(p.at, p.snapshots[0].game, min(p.run, newest+p.ahead))
	p.settle()
	if p.run > newest && newest-p.changed < stillAfter {
		p.starved++
		if p.at > newest {
			p.extrapolated++
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
	p.delay = min(max(p.delay, 0), maxDelay, netvar.Horizon/2*p.tick)
}

// lead advances the time to draw, and steers it towards its target.
func (p *playout) lead(target, passed time.Duration) {
	if p.run > p.at { // It has waited for snapshots: setting it back is invisible.
		p.run = max(p.at, min(p.run, target-passed))
	}
	switch wrong := target - p.run - passed; {
	case !p.started:
		p.started, p.run = true, target
	case wrong > viewJump:
		p.run = target
		p.jumps++
	default:
		correction := time.Duration(int64(wrong) * int64(passed) / int64(slewOver))
		p.run += passed + min(max(correction, -passed/mostSlower), passed/mostFaster)
	}
}

// settle finds the snapshots around the moment, and drops earlier ones.
func (p *playout) settle() {
	i := len(p.snapshots) - 1
	for i > 0 && p.snapshots[i].game > p.at {
		i--
	}
	if i > 1 { // One more is kept, for extrapolation from it and the newest.
		p.snapshots = append(p.snapshots[:0], p.snapshots[i-1:]...)
		i = 1
	}
	s := &p.snapshots[i]
	switch {
	case i+1 < len(p.snapshots):
		next := &p.snapshots[i+1]
		p.moment = netvar.Moment{From: s.tick, To: next.tick, Alpha: float64(p.at-s.game) / float64(next.game-s.game)}
	default:
		p.moment = netvar.Moment{From: s.tick, To: s.tick}
	}
}

// beyond returns the moment of a class that extrapolates by at most this much past the newest
// snapshot.
func (p *playout) beyond(most time.Duration) netvar.Moment {
	n := len(p.snapshots)
	if n < 2 || p.moment.From != p.snapshots[n-1].tick || most == 0 {
		return p.moment
	}
	older, newest := &p.snapshots[n-2], &p.snapshots[n-1]
	further := min(p.at-newest.game, most)
	if further <= 0 {
		return p.moment
	}
	return netvar.Moment{From: older.tick, To: newest.tick, Alpha: 1 + float64(further)/float64(newest.game-older.game)}
}

// frameClock is the time of frames. The lengths given by the game are more even than the times at
// which frames happen to be computed, which vary by milliseconds, so it follows the lengths, and
// the clock slowly.
type frameClock struct {
	started bool
	at      time.Duration
}

// mostUneven is how far the lengths of frames may be off before the clock alone counts.
const mostUneven = 20 * time.Millisecond

// step returns how much time has passed, and how far it is behind now.
func (f *frameClock) step(now, length time.Duration) (passed, late time.Duration) {
	before := f.at
	f.at += length
	f.at += time.Duration(float64(now-f.at) * min(length.Seconds(), 1))
	if !f.started || length <= 0 || f.at-now > mostUneven || now-f.at > mostUneven {
		if !f.started {
			before = now
		}
		f.started, f.at = true, now
	}
	f.at = max(f.at, before)
	return f.at - before, now - f.at
}
