package loop

import (
	"math/bits"
	"time"
)

// DefaultBurst is the number of ticks that may be due at once. After a stall this many ticks run
// without a pause. Five ticks at 60 Hz make up for 83 ms, which hides a garbage collection or a
// slow page. A burst of many seconds would keep the room behind real time for longer than the stall
// itself.
const DefaultBurst = 5

// FirstTick is the number of the first tick.
const FirstTick = 1

// Pacer decides which tick runs when. It reads no clock: it is a function of
// the times that it is given. One goroutine uses it.
//
// Real time is divided into slots: slot m begins m/rate after Start. A tick uses the next slot. If
// more than Burst slots have begun without a tick, the surplus is dropped at once, and the epoch
// moves by this number of slots. Slots are counted from Start and periods are not added up, so the
// n-th slot is exact even after many dropped ticks.
type Pacer struct {
	Timeline Timeline
	// Burst is the number of ticks that may be due at once; 0: DefaultBurst.
	Burst int

	started  bool
	start    time.Duration // start of slot 0
	executed uint64        // number of ticks returned by Next
	dropped  uint64        // number of dropped slots
	skipped  uint64        // number of slots that were skipped together with their ticks
	slept    uint64        // part of skipped: the slots just before the next tick
	next     uint64        // number of the next tick
	epoch    Epoch
}

// Start makes the tick due at once and resets the counts.
func (p *Pacer) Start(now time.Duration, tick uint64) {
	*p = Pacer{
		Timeline: p.Timeline,
		Burst:    p.Burst,
		started:  true,
		start:    now,
		next:     tick,
		epoch:    Epoch{Tick: tick, At: now},
	}
}

// Next reports whether a tick is due at now. If so, the caller must run it: Next drops surplus
// ticks, and then counts this tick as executed. If not, wait is the monotonic time at which the
// next tick is due.
//
// A tick never begins before its exact time. So if no tick is due, Executed + Dropped + skipped
// ticks = floor(elapsed * rate) + 1.
func (p *Pacer) Next(now time.Duration) (in Input, due bool, wait time.Duration) {
	if !p.started {
		p.Start(now, FirstTick)
	}
	behind := p.behind(now)
	if behind == 0 {
		return Input{}, false, p.Due()
	}
	surplus := behind - min(behind, p.burst())
	if surplus > 0 {
		p.dropped += surplus
		p.epoch = Epoch{Tick: p.next, At: p.start + p.slot(p.used(), false)}
	}
	in = p.Timeline.Input(p.next)
	in.Start = now
	in.Deadline = p.Timeline.Deadline(p.epoch, p.next)
	in.Dropped = surplus
	in.Epoch = p.epoch
	in.EpochMoved = surplus > 0
	in.Slept, p.slept = p.slept, 0
	p.next++
	p.executed++
	return in, true, 0
}

// used returns the number of slots in the past: each has had its tick, or was dropped or skipped.
func (p *Pacer) used() uint64 { return p.executed + p.dropped + p.skipped }

// behind returns the number of slots that have begun at now without a tick.
func (p *Pacer) behind(now time.Duration) uint64 {
	begun := p.begun(now)
	return begun - min(p.used(), begun)
}

// Due returns the monotonic time at which the next tick is due.
func (p *Pacer) Due() time.Duration { return p.start + p.slot(p.used(), true) }

// Coming returns the number of the next tick.
func (p *Pacer) Coming() uint64 { return p.next }

// Upcoming returns the first tick that is due after now, if no ticks are dropped or skipped except
// those that are due by now.
func (p *Pacer) Upcoming(now time.Duration) uint64 { return p.next + p.behind(now) }

// SkipTo skips the ticks before a tick, because they would have no work. Their numbers and slots
// are counted and the epoch is unchanged, so that each later tick is due at the same time as
// without SkipTo. The input of the next tick contains the number of skipped ticks.
func (p *Pacer) SkipTo(tick uint64) {
	n := tick - min(p.next, tick)
	p.next += n
	p.skipped += n
	p.slept += n
}

// Epoch returns the current epoch. It moves only when ticks are dropped.
func (p *Pacer) Epoch() Epoch { return p.epoch }

// Dropped returns the number of dropped ticks since Start.
func (p *Pacer) Dropped() uint64 { return p.dropped }

func (p *Pacer) burst() uint64 {
	if p.Burst <= 0 {
		return DefaultBurst
	}
	return uint64(p.Burst)
}

// begun returns the number of slots that have begun at now: floor(elapsed*rate) + 1.
func (p *Pacer) begun(now time.Duration) uint64 {
	if now < p.start {
		return 0
	}
	r := p.Timeline.Rate
	m, _ := mulDiv(uint64(now-p.start), r.Num, r.Den*second)
	return m + 1
}

// slot returns the beginning of slot m, measured from Start. The exact time is usually not a whole
// nanosecond. Rounded up, it is the first instant at which the slot has begun; rounded down, it is
// equal to the result of Timeline.GameTime.
func (p *Pacer) slot(m uint64, roundUp bool) time.Duration {
	r := p.Timeline.Rate
	ns, rem := mulDiv(m, r.Den*second, r.Num)
	if roundUp && rem > 0 {
		ns, _ = bits.Add64(ns, 1, 0)
	}
	return clampDuration(ns)
}
