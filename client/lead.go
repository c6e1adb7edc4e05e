package client

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
)

// lead makes the steps of a client that makes inputs run ahead of the server's current time, so
// that each input arrives before the server runs its step.
//
// The server reports how early the newest input arrived, which gives its arrival by the server's
// time; the client stores when it was made by its own clock. The difference contains the latency
// and the clock difference, but not the lead, so a correction does not have to wait for the effect
// of earlier corrections. The estimate of the server's clock is not used.
//
// Steps are ahead of the client's clock by the difference that suffices for 95 of 100 inputs of
// the last second, plus three durations: a frame, because a step waits for the next frame; the
// interval between input packets, which is the extra delay of an input after a lost packet; and
// the jitter.
type lead struct {
	on     bool
	first  uint64        // the first step that leads: inputs of earlier ones would arrive too late
	last   time.Duration // time of the last frame, by the client's clock
	target time.Duration // target of the lead; before the first measurement an estimate
	limit  time.Duration // limit of the target
	hold   time.Duration // time for which the steps are held
	// maxWait limits the time between the creation and the last sending of a measured input. A
	// longer time is not caused by the path: the program hung, or a sleeping room dropped earlier
	// packets.
	maxWait time.Duration

	credit   time.Duration // passed time that corrections have not used yet
	offFor   time.Duration // time for which the lead has been far off
	measured bool          // the lead was measured once on this connection
	jumps    uint64
	setBacks uint64 // number of times that the steps were set back
	backTo   uint64 // step to which they were last set back
	late     int    // consecutive inputs that arrived too late for their steps

	frame        time.Duration // average length of a frame
	steps        []madeStep    // a ring by step, as long as the server's window of inputs
	sent         uint64        // the step of the newest input sent
	flushed      time.Duration // time at which that input was sent
	interval     time.Duration // average interval between such flushes
	lastReported uint64        // the newest step that the server has reported
	epochs       uint64        // number of epochs received
	samples      leadSamples
}

// madeStep records the time at which the input of a step was made.
type madeStep struct {
	step, epochs uint64
	at           time.Duration // by the client's clock
	// first is the time at which the oldest input of the same packet was made; 0 if the input was
	// not sent, or is not measured.
	first time.Duration
}

const (
	// leadSlew limits corrections of the lead to this part of the elapsed time: 1/100, which is
	// invisible.
	leadSlew = 100
	// starvedSlew is the same limit while at least the last starvedInputs inputs arrived too late,
	// which the player feels. Jitter alone seldom delays so many inputs in a row.
	starvedSlew   = 20
	starvedInputs = 4
	// maxHold is the longest time for which steps are held after the server's time has moved back.
	// If it moved back further, the steps are set back, so that the player's controls respond
	// without a longer wait.
	maxHold = 100 * time.Millisecond
	// The lead jumps to the right value after it was too long by maxOff for the time maxOffFor, or
	// too short for half of the inputs during that time. A short period of bad jitter does not last
	// as long: a lead that jumped for it would have to jump back.
	maxOff    = 250 * time.Millisecond
	maxOffFor = 1500 * time.Millisecond
	// startMargin is the margin, in intervals of inputs, until minMeasured inputs are measured.
	startMargin = 3
	minMeasured = 16
	// maxEarly is the longest time by which an input may be early or late in a report; other
	// reports are ignored.
	maxEarly = 10 * time.Second
)

// begin starts the lead at a frame and returns the game time of the steps.
func (l *lead) begin(now, game, rtt time.Duration, line loop.Timeline) time.Duration {
	step := line.Fixed.Period()
	interval, window := max(flushPeriod(line), step), input.Window(step)
	*l = lead{
		on: true, last: now, interval: interval, jumps: l.jumps, setBacks: l.setBacks, backTo: l.backTo,
		steps: make([]madeStep, window), limit: time.Duration(window)*step - line.Rate.Period(),
		samples: leadSamples{span: leadSampleTicks * line.Rate.Period()}, maxWait: step + maxInterval,
	}
	l.estimate(rtt, line)
	return game + l.target
}

// estimate sets the target that is used before the first measurement.
func (l *lead) estimate(rtt time.Duration, line loop.Timeline) {
	l.aim(rtt/2 + startMargin*max(flushPeriod(line), line.Fixed.Period()))
}

// clockMoved restarts the measurement, because the client's clock was set or stopped: earlier
// samples and inputs have times of another clock.
func (l *lead) clockMoved(rtt time.Duration, line loop.Timeline) {
	l.restart()
	l.estimate(rtt, line)
}

// aim sets the target, limited to the range from 0 to limit. With a lead outside of this range the
// server could not measure the inputs, so the client would never correct the lead: below 0 the
// client does not send inputs, because the server has already run their steps, and above limit the
// server drops inputs, because they are beyond its window, which begins at the last tick.
func (l *lead) aim(target time.Duration) { l.target = max(min(target, l.limit), 0) }

func (l *lead) slot(step uint64) *madeStep { return &l.steps[step%uint64(len(l.steps))] }

// restart restarts the measurement, because the path to the server may have changed. Inputs that
// were made before are not measured, because they waited for the connection.
func (l *lead) restart() {
	l.samples, l.measured, l.offFor, l.late = leadSamples{span: l.samples.span}, false, 0, 0
	clear(l.steps)
}

// advance returns the game time of the steps in the frame at now. at is the game time of the steps
// in the previous frame, and game the server's current game time. The result never decreases.
func (l *lead) advance(now, at, game, step time.Duration) time.Duration {
	passed := max(now-l.last, 0)
	l.last += passed
	still := min(passed, l.hold)
	l.hold -= still
	at += passed - still
	if l.hold > 0 {
		return at
	}
	l.frame += (min(passed, maxInterval) - l.frame) / 8
	if l.samples.known(now) {
		// After a late epoch, or after the computer was suspended, there are samples from before
		// and after, and the sum may be below 0.
		l.aim(max(now+l.samples.required()-game, 0) + l.frame + max(step, l.interval))
	}
	off := game + l.target - at
	if l.jumpsBy(off, at-now, passed) {
		l.hold = max(-off, 0)
		return at + max(off, 0)
	}
	slew := leadSlew
	if off > 0 && l.late >= starvedInputs && l.measured {
		slew = starvedSlew
	}
	l.credit += passed
	most := l.credit / time.Duration(slew)
	l.credit %= time.Duration(slew)
	return at + min(max(off, -most), most)
}

// jumpsBy reports whether the lead jumps; off is its error, and ahead its distance to the client's
// clock. The first measurement of a connection is used at once, and does not count as a jump.
func (l *lead) jumpsBy(off, ahead, passed time.Duration) bool {
	known := l.samples.known(l.last)
	if known && !l.measured && l.samples.len() >= minMeasured {
		l.measured = true
		return true
	}
	if off > -maxOff && (known && ahead >= l.samples.p50 || !known && off < maxOff) {
		l.offFor = 0
		return false
	}
	if l.offFor += passed; l.offFor < maxOffFor {
		return false
	}
	l.offFor = 0
	l.jumps++
	return true
}

// made records that the input of a step was made.
func (l *lead) made(now time.Duration, step uint64) {
	*l.slot(step) = madeStep{step: step, epochs: l.epochs, at: now}
}

// flush records that the inputs up to a step were sent, for the first time or again.
func (l *lead) flush(now time.Duration, newest uint64) {
	if !l.on || newest < l.sent || l.slot(newest).step != newest {
		return
	}
	if newest > l.sent {
		l.send(now, newest)
	}
	if s := l.slot(newest); now-s.first > l.maxWait {
		s.first = 0
	}
}

// send records that the inputs up to a step were sent for the first time.
func (l *lead) send(now time.Duration, newest uint64) {
	s := l.slot(newest)
	s.first = s.at
	if oldest := l.slot(l.sent + 1); oldest.step == l.sent+1 {
		s.first = oldest.at
		l.interval += (min(now-l.flushed, maxInterval) - l.interval) / 8
	}
	l.sent, l.flushed = newest, now
}

// maxInterval limits the lengths of frames and of flush intervals in averages, to those of a client
// at 10 Hz.
const maxInterval = 100 * time.Millisecond

// reported records the time by which the input of a step arrived early at the server, as the newest
// input then. Inputs that were made before an epoch moved are skipped, because they were made for
// other times.
func (l *lead) reported(now time.Duration, line loop.Timeline, step uint64, early time.Duration) {
	if !l.on || step <= l.lastReported || early.Abs() > maxEarly {
		return
	}
	s := l.slot(step)
	if s.step != step || s.first == 0 || s.epochs != l.epochs {
		return
	}
	l.lastReported = step
	if l.late++; early >= 0 {
		l.late = 0
	}
	l.samples.add(now, line.GameTime(line.StepTick(step))-early-s.first)
}

// epochMoved handles an epoch by which the server's time has moved back. If the time is short, the
// steps are held; if it is longer, epochMoved reports that they must be set back.
func (l *lead) epochMoved(by time.Duration) (back bool) {
	l.epochs++
	l.samples.shift(-by)
	if by <= maxHold {
		l.hold += max(by, 0)
		return false
	}
	// Reports may have arrived before the epoch, so that their samples already contain it.
	l.samples = leadSamples{span: l.samples.span}
	l.hold = 0
	l.setBacks++
	return true
}

// setBack records the step to which the steps were set back. Inputs of later steps are made again.
// A target above the estimate may stem from a report of an input that arrived before the epoch.
func (l *lead) setBack(step uint64, rtt time.Duration, line loop.Timeline) {
	l.backTo, l.sent, l.lastReported = step, min(l.sent, step), min(l.lastReported, step)
	l.lower(rtt, line)
}

// lower lowers the target to the estimate.
func (l *lead) lower(rtt time.Duration, line loop.Timeline) {
	before := l.target
	l.estimate(rtt, line)
	l.target = min(l.target, before)
}

// stale reports whether the newest sample is old: a sleeping room measures no inputs.
func (l *lead) stale(now time.Duration) bool {
	return l.samples.n > 0 && !l.samples.recent(l.samples.n-1, now)
}

// stats returns the time by which steps are ahead of the server's current time, and the time by
// which at least 95 of 100 inputs arrive early.
func (l *lead) stats(at, game time.Duration) (ahead, margin time.Duration) {
	if !l.on {
		return 0, 0
	}
	if l.samples.known(l.last) {
		margin = at - l.last - l.frame - l.samples.p95
	}
	return at - game, margin
}

// leadSamples measures the time by which steps had to be ahead of the client's clock so that their
// inputs arrived in time, over the last second, or over span if that is longer.
type leadSamples struct {
	all  [maxLeadSamples]leadSample // a ring
	n    uint64                     // number of samples
	from uint64                     // the oldest sample in use
	span time.Duration

	p5, p50, p95 time.Duration // percentiles
}

type leadSample struct{ at, ahead time.Duration }

const (
	maxLeadSamples = 128
	leadSampleSpan = time.Second
	minLeadSamples = 8 // least number of samples for a usable result
	// leadSampleTicks is the least number of ticks over which samples are collected: the server
	// measures inputs in its ticks, and reports with its snapshots.
	leadSampleTicks = 4 * minLeadSamples
)

func (s *leadSamples) len() int { return int(s.n - s.from) }

// recent reports whether sample n is young enough to be used: at most leadSampleSpan old, or span
// if that is longer.
func (s *leadSamples) recent(n uint64, now time.Duration) bool {
	return now-s.all[n%maxLeadSamples].at <= max(leadSampleSpan, s.span)
}

// known reports whether there are enough recent samples.
func (s *leadSamples) known(now time.Duration) bool {
	return s.len() >= minLeadSamples && s.recent(s.n-1, now)
}

// required returns the time by which 95 of 100 inputs must be ahead of the client's clock, plus the
// jitter, which is the difference of the percentiles p95 and p5.
func (s *leadSamples) required() time.Duration { return s.p95 + s.p95 - s.p5 }

func (s *leadSamples) add(now, ahead time.Duration) {
	s.all[s.n%maxLeadSamples] = leadSample{now, ahead}
	s.n++
	s.from = max(s.from, s.n-min(s.n, maxLeadSamples))
	for !s.recent(s.from, now) {
		s.from++
	}
	var sorted [maxLeadSamples]time.Duration
	n := s.len()
	for i := range n {
		sorted[i] = s.all[(s.from+uint64(i))%maxLeadSamples].ahead
	}
	slices.Sort(sorted[:n])
	s.p5, s.p50, s.p95 = sorted[n*5/100], sorted[n/2], sorted[n*95/100]
}

// shift adds a time to all samples.
func (s *leadSamples) shift(by time.Duration) {
	for i := range s.all {
		s.all[i].ahead += by
	}
	s.p5, s.p50, s.p95 = s.p5+by, s.p50+by, s.p95+by
}
