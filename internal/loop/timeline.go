package loop

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MaxRatePart limits numerator and denominator of a Rate. So the product of two parts, or of one
// part and a second in nanoseconds, fits 64 bits, and with a third factor it fits the 128 bits of
// the arithmetic.
const MaxRatePart = 1 << 30

// second is one second in the unit of game time.
const second = uint64(time.Second)

// Rate is a number of ticks or steps per second, as the rational Num/Den.
type Rate struct{ Num, Den uint64 }

// Hz is the rate of n per second.
func Hz(n uint64) Rate { return Rate{Num: n, Den: 1} }

// Check returns an error unless both parts are from 1 to MaxRatePart.
func (r Rate) Check() error {
	if r.Num == 0 || r.Den == 0 || r.Num > MaxRatePart || r.Den > MaxRatePart {
		return fmt.Errorf("rate %d/%d: both parts must be from 1 to %d", r.Num, r.Den, MaxRatePart)
	}
	return nil
}

// String returns for example "60 Hz" or "30000/1001 Hz".
func (r Rate) String() string {
	if r.Den == 1 {
		return fmt.Sprintf("%d Hz", r.Num)
	}
	return fmt.Sprintf("%d/%d Hz", r.Num, r.Den)
}

// Period returns 1/r, rounded to the nearest nanosecond. It is the constant delta of a fixed step
// and the displayed budget of a tick; the times of ticks are computed by Timeline, which does not
// accumulate rounding errors.
func (r Rate) Period() time.Duration {
	return time.Duration((r.Den*second + r.Num/2) / r.Num)
}

// Timeline maps tick numbers to game time and to fixed steps. Both rates are constant during the
// life of a room, and must pass Check.
type Timeline struct{ Rate, Fixed Rate }

// Check returns an error unless both rates are valid.
func (t Timeline) Check() error {
	if err := t.Rate.Check(); err != nil {
		return fmt.Errorf("tick rate: %w", err)
	}
	if err := t.Fixed.Check(); err != nil {
		return fmt.Errorf("fixed rate: %w", err)
	}
	return nil
}

// GameTime returns the game time of a tick: floor(tick * 1e9 * Den / Num) ns. The game time of tick
// 0, which never runs, is 0.
func (t Timeline) GameTime(tick uint64) time.Duration {
	q, _ := mulDiv(tick, t.Rate.Den*second, t.Rate.Num)
	return clampDuration(q)
}

// FixedSteps returns the number of fixed steps done when the tick has run: floor(tick * fixed /
// rate).
func (t Timeline) FixedSteps(tick uint64) uint64 {
	q, _ := mulDiv(tick, t.Fixed.Num*t.Rate.Den, t.Fixed.Den*t.Rate.Num)
	return q
}

// Fraction returns the time from the last fixed step to the tick, as a part of a step in [0, 1).
func (t Timeline) Fraction(tick uint64) float64 {
	div := t.Fixed.Den * t.Rate.Num
	_, rem := mulDiv(tick, t.Fixed.Num*t.Rate.Den, div)
	// float64 rounds both numbers, so that a quotient just below 1 could become 1.
	return math.Min(float64(rem)/float64(div), math.Nextafter(1, 0))
}

// TickAt returns the greatest tick with a GameTime not later than gameTime; or 0 if gameTime is
// negative.
func (t Timeline) TickAt(gameTime time.Duration) uint64 {
	if gameTime < 0 {
		return 0
	}
	// floor(n*d/num) <= g  <=>  n*d < (g+1)*num  <=>  n <= ((g+1)*num - 1) / d
	hi, lo := bits.Mul64(uint64(gameTime)+1, t.Rate.Num)
	lo, borrow := bits.Sub64(lo, 1, 0)
	return div128(hi-borrow, lo, t.Rate.Den*second)
}

// TickFrom returns the first tick with a GameTime not earlier than gameTime.
func (t Timeline) TickFrom(gameTime time.Duration) uint64 {
	if gameTime <= 0 {
		return 0
	}
	return t.TickAt(gameTime-1) + 1
}

// StepTick returns the tick that runs a fixed step: the first tick at whose time the step is due.
func (t Timeline) StepTick(step uint64) uint64 {
	tick, rem := mulDiv(step, t.Fixed.Den*t.Rate.Num, t.Fixed.Num*t.Rate.Den)
	if rem > 0 {
		tick++
	}
	return tick
}

// StepAt returns the greatest fixed step with a StepTime not later than gameTime, which is at
// least 0, and the time since that step, as a part of a step in [0, 1).
func (t Timeline) StepAt(gameTime time.Duration) (step uint64, fraction float64) {
	step = Timeline{Rate: t.Fixed}.TickAt(gameTime)
	from, to := t.StepTime(step), t.StepTime(step+1)
	return step, math.Min(float64(gameTime-from)/float64(max(to-from, 1)), math.Nextafter(1, 0))
}

// StepTime returns the exact time of a fixed step, floor(step * 1e9 * Den / Num) ns of the fixed
// rate. A tick runs the steps with times not later than its own.
func (t Timeline) StepTime(step uint64) time.Duration { return Timeline{Rate: t.Fixed}.GameTime(step) }

// Epoch maps ticks to real time: Tick is due at the monotonic time At.
type Epoch struct {
	Tick uint64
	At   time.Duration
}

// Deadline returns the monotonic time at which the tick is due.
func (t Timeline) Deadline(e Epoch, tick uint64) time.Duration {
	return e.At + t.GameTime(tick) - t.GameTime(e.Tick)
}

// Due returns the greatest tick with a Deadline not later than the monotonic time at; or 0 if even
// the deadline of the first tick is later.
func (t Timeline) Due(e Epoch, at time.Duration) uint64 {
	return t.TickAt(at - e.At + t.GameTime(e.Tick))
}

// Now is the state of the loop that a running call may read, through the value of type C that it
// gets. A loop has one Now, and changes it before each call.
type Now struct {
	Tick uint64
	// Stage is 0 and System is "" outside of a call: the value passed to calls is then invalid.
	Stage  Stage
	System string
	// GameTime is the time of the tick, in every stage. After SetSteps a fixed step has its own
	// Tick, GameTime and ScaledTime.
	GameTime time.Duration
	// Delta is the length of the tick, or of the fixed step while in FixedUpdate.
	Delta time.Duration
	// ScaledTime and ScaledDelta are in scaled time, at the tick's time scale ScaleNum/ScaleDen.
	ScaledTime, ScaledDelta time.Duration
	ScaleNum, ScaleDen      uint64
	// Wall is the recorded wall clock of the tick.
	Wall time.Time
	// FixedStep is the step being run in FixedUpdate, and elsewhere the last
	// step done. The first is 1.
	FixedStep uint64
	// Fraction is the time from the last fixed step to the tick, or to a client's frame, as a part
	// of a step in [0, 1).
	Fraction float64
}

// Input holds every outside fact of one tick that the loop itself needs.
// Recorded inputs replay to the same ticks.
type Input struct {
	Tick            uint64
	GameTime, Delta time.Duration
	// FixedSteps steps run in this tick; FirstFixedStep is the number of the first.
	FixedSteps     int
	FirstFixedStep uint64
	FixedDelta     time.Duration
	Fraction       float64
	Wall           time.Time
	// Start and Deadline are monotonic times: the start of the tick, and the time at which it was
	// due.
	Start, Deadline time.Duration
	// Dropped is the number of ticks that were dropped just before this one.
	Dropped uint64
	// Slept is the number of ticks skipped just before this one, because they had no work. The
	// number of this tick is larger by Slept.
	Slept uint64
	// Epoch is the epoch of this tick; EpochMoved reports that ticks that were dropped just before
	// have moved it.
	Epoch      Epoch
	EpochMoved bool
	Overload   uint8
}

// Input returns the part of the input that follows from the tick number, which is at least 1.
func (t Timeline) Input(tick uint64) Input {
	before, after := t.FixedSteps(tick-1), t.FixedSteps(tick)
	return Input{
		Tick:           tick,
		GameTime:       t.GameTime(tick),
		Delta:          t.GameTime(tick) - t.GameTime(tick-1),
		FixedSteps:     int(after - before),
		FirstFixedStep: before + 1,
		FixedDelta:     t.Fixed.Period(),
		Fraction:       t.Fraction(tick),
	}
}

// mulDiv returns floor(a*b/div) and the remainder, with a 128-bit product. A quotient above 64 bits
// is clamped to the largest uint64.
func mulDiv(a, b, div uint64) (quo, rem uint64) {
	hi, lo := bits.Mul64(a, b)
	if hi >= div {
		return math.MaxUint64, 0
	}
	return bits.Div64(hi, lo, div)
}

// div128 returns floor(hi:lo / div), clamped to the largest uint64.
func div128(hi, lo, div uint64) uint64 {
	if hi >= div {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, div)
	return q
}

// clampDuration converts ns, clamped to the largest duration: after 292 years game time is
// constant.
func clampDuration(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
