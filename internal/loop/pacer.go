package loop

import (
	"context"
	"errors"
	"time"
)

// DefaultBurst is how many ticks may be due at once. After a stall that many
// run back to back; five at 60 Hz repair 83 ms, which hides a garbage
// collection or a slow page, while a burst of many seconds would keep the room
// behind real time for longer than the stall itself.
const DefaultBurst = 5

// FirstTick is the number of the first tick.
const FirstTick = 1

// Pacer decides which tick runs when. It reads no clock: it is a function of
// the times that it is given. One goroutine uses it.
type Pacer struct {
	Timeline Timeline
	// Burst is how many ticks may be due at once; 0 is DefaultBurst.
	Burst int

	started  bool
	start    time.Duration // when the first slot was due
	executed uint64        // ticks handed out
	dropped  uint64        // slots given up
	next     uint64        // number of the next tick
	epoch    Epoch
}

// Start makes the tick due at once.
func (p *Pacer) Start(now time.Duration, tick uint64) { panic("loop: not yet") }

// Next reports whether a tick is due at now.
func (p *Pacer) Next(now time.Duration) (in Input, due bool, wait time.Duration) {
	panic("loop: not yet")
}

// Epoch is the one in force.
func (p *Pacer) Epoch() Epoch { return p.epoch }

// Executed is the number of ticks handed out since Start.
func (p *Pacer) Executed() uint64 { return p.executed }

// Dropped is the number of ticks given up since Start.
func (p *Pacer) Dropped() uint64 { return p.dropped }

// Clock is what Run needs of time.
type Clock interface {
	// Now is monotonic.
	Now() time.Duration
	// Wall is the time of day.
	Wall() time.Time
	// WaitUntil returns at the monotonic time at, or earlier with the error of ctx.
	WaitUntil(ctx context.Context, at time.Duration) error
}

// Run paces step until ctx ends.
func Run(ctx context.Context, c Clock, p *Pacer, step func(Input) error) error {
	return errors.New("loop: not yet")
}
