package client

import (
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
)

// lead lets the steps of a client that makes inputs run ahead of the server's present, so that each
// input arrives before the server runs its step.
//
// The server reports how early the newest input arrived, which gives its arrival by the server's
// time; the client stores when it was made by its own clock. The difference contains the latency
// and the clock difference, but not the lead, so no correction has to wait for its own effect; and
// the estimate of the server's clock is not used.
//
// Steps are ahead of the client's clock by the difference of 95 of 100 inputs of the last second,
// plus: a frame, because a step waits for the next one; the interval between input packets, which
// is the extra delay of an input after a lost packet; and the jitter.
type lead struct {
	on    bool
	first uint64        // the first step that leads: inputs of earlier ones would arrive too late
	last  time.Duration // the last frame, by the client's clock
	keep  time.Duration // the lead before the first measurement
	owed  time.Duration // for how long the steps are still held

	credit time.Duration // time passed since the last correction
	far    time.Duration // for how long the lead has been far off
	begun  bool          // it was measured once on this connection
	jumps  uint64
	backs  uint64 // how often the steps were set back
	back   uint64 // the step to which they were set back last
	late   int    // consecutive inputs that arrived too late for their steps

	frame    time.Duration // average length of a frame
	steps    []madeStep    // by step, as many as a window has
	left     uint64        // the step of the newest input sent
	flushed  time.Duration // then
	interval time.Duration // average interval between such flushes
	told     uint64        // the newest step that the server has reported
	epochs   uint64        // number of epochs received
	needs    needs
}

// madeStep records when the input of a step was made.
type madeStep struct {
	step, epochs uint64
	at           time.Duration // by the client's clock
	first        time.Duration // when the oldest input sent with it was made; 0 before
}

const (
	// leadSlew is the part of the passing time by which the lead is corrected at most: 1/100, which
	// is invisible.
	leadSlew = 100
	// starvedSlew is the same while inputs starve, which the player feels: the last leadStarved
	// inputs, or more, arrived too late. Jitter alone seldom delays so many in a row.
	starvedSlew = 20
	leadStarved = 4
	// leadStill is the longest time for which steps are held after the server's time has moved
	// back. If it moved back further, the steps are set back, so that the player's controls respond
	// without a longer wait.
	leadStill = 100 * time.Millisecond
	// leadFar is by how much the lead may be too long, and leadPatience for how long; or for how
	// long it may be too short for half of the inputs. After that it jumps. A second of bad jitter
	// is shorter than this, and a lead that jumped for it would have to jump back.
	leadFar      = 250 * time.Millisecond
	leadPatience = 1500 * time.Millisecond
	// leadStart is the margin before the first measurement, in intervals of inputs, and leadBegun
	// the number of measured inputs that replaces it.
	leadStart = 3
	leadBegun = 16
	// mostEarly limits the values accepted from a server.
	mostEarly = 10 * time.Second
)

// begin starts the lead at a frame and returns the game time of the steps; step is the length of
// each.
func (l *lead) begin(now, game, rtt, interval, step time.Duration) time.Duration {
	*l = lead{
		on: true, last: now, interval: interval, keep: rtt/2 + leadStart*interval, jumps: l.jumps, backs: l.backs, back: l.back,
		steps: make([]madeStep, input.Window(step)),
	}
	return game + l.keep
}

func (l *lead) slot(step uint64) *madeStep { return &l.steps[step%uint64(len(l.steps))] }

// restart measures anew, because the path to the server may be another.
func (l *lead) restart() { l.needs, l.begun, l.far, l.late = needs{}, false, 0, 0 }

// follow returns the game time of the steps in the frame at now; at is that of the frame before,
// game the server's present. It never decreases.
func (l *lead) follow(now, at, game, step time.Duration) time.Duration {
	passed := max(now-l.last, 0)
	l.last += passed
	still := min(passed, l.owed)
	l.owed -= still
	at += passed - still
	if l.owed > 0 {
		return at
	}
	l.frame += (min(passed, mostInterval) - l.frame) / 8
	if l.needs.known(now) {
		l.keep = now + l.needs.wanted() + l.frame + max(step, l.interval) - game
	}
	off := game + l.keep - at
	if l.jumpsBy(off, at-now, passed) {
		l.owed = max(-off, 0)
		return at + max(off, 0)
	}
	slew := leadSlew
	if off > 0 && l.late >= leadStarved && l.begun {
		slew = starvedSlew
	}
	l.credit += passed
	most := l.credit / time.Duration(slew)
	l.credit %= time.Duration(slew)
	return at + min(max(off, -most), most)
}

// jumpsBy reports whether the lead, wrong by off and ahead of the client's clock by ahead, jumps.
// The first measurement of a connection is used at once and is no jump.
func (l *lead) jumpsBy(off, ahead, passed time.Duration) bool {
	known := l.needs.known(l.last)
	if known && !l.begun && l.needs.len() >= leadBegun {
		l.begun = true
		return true
	}
	if off > -leadFar && (known && ahead >= l.needs.half || !known && off < leadFar) {
		l.far = 0
		return false
	}
	if l.far += passed; l.far < leadPatience {
		return false
	}
	l.far = 0
	l.jumps++
	return true
}

// made records that the input of a step was made.
func (l *lead) made(now time.Duration, step uint64) {
	*l.slot(step) = madeStep{step: step, epochs: l.epochs, at: now}
}

// flush records that the inputs up to a step were sent.
func (l *lead) flush(now time.Duration, newest uint64) {
	if !l.on || newest <= l.left || l.slot(newest).step != newest {
		return
	}
	s := l.slot(newest)
	s.first = s.at
	if oldest := l.slot(l.left + 1); oldest.step == l.left+1 {
		s.first = oldest.at
		l.interval += (min(now-l.flushed, mostInterval) - l.interval) / 8
	}
	l.left, l.flushed = newest, now
}

// mostInterval limits frames and intervals: those of a client at 10 Hz.
const mostInterval = 100 * time.Millisecond

// take records how early the input of a step arrived at the server, when no newer one had arrived.
// Inputs made before an epoch moved are skipped: they were made for other times.
func (l *lead) take(now time.Duration, line loop.Timeline, step uint64, early time.Duration) {
	if !l.on || step <= l.told || early.Abs() > mostEarly {
		return
	}
	s := l.slot(step)
	if s.step != step || s.first == 0 || s.epochs != l.epochs {
		return
	}
	l.told = step
	if l.late++; early >= 0 {
		l.late = 0
	}
	l.needs.add(now, line.GameTime(line.StepTick(step))-early-s.first)
}

// moved handles an epoch by which the server's time has moved back. The steps are held for a short
// time; for a longer one it reports that they must be set back.
func (l *lead) moved(by time.Duration) (back bool) {
	l.epochs++
	l.needs.shift(-by)
	if by <= leadStill {
		l.owed += max(by, 0)
		return false
	}
	l.owed = 0
	l.backs++
	return true
}

// setBack records the step to which the steps were set back. Inputs of later ones are made again.
func (l *lead) setBack(step uint64) {
	l.back, l.left, l.told = step, min(l.left, step), min(l.told, step)
}

// stats returns how far steps at a time are ahead of the server's present, and how early at least
// 95 of 100 inputs arrive.
func (l *lead) stats(at, game time.Duration) (ahead, margin time.Duration) {
	if !l.on {
		return 0, 0
	}
	if l.needs.known(l.last) {
		margin = at - l.last - l.frame - l.needs.most
	}
	return at - game, margin
}
