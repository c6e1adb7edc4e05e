package loop

import (
	"context"
	"time"
)

// Clock is the time source of Run. Package internal/clock has implementations.
type Clock interface {
	// Now returns the monotonic time.
	Now() time.Duration
	// Wall returns the time of day.
	Wall() time.Time
	// WaitUntil returns at the monotonic time at, or earlier with the error of ctx.
	WaitUntil(ctx context.Context, at time.Duration) error
}

// Schedule decides when each tick runs: see Pacer.
type Schedule interface {
	// Next reports whether a tick is due at now. If so, the caller runs it with the input in. If
	// not, wait is the monotonic time at which to call Next again.
	Next(now time.Duration) (in Input, due bool, wait time.Duration)
}

// Run calls step for every tick that is due by p, and waits in between. It returns nil when ctx has
// ended, which it checks only between ticks, or the first error of step or of the clock.
func Run(ctx context.Context, c Clock, p Schedule, step func(Input) error) error {
	for ctx.Err() == nil {
		in, due, wait := p.Next(c.Now())
		if !due {
			if err := c.WaitUntil(ctx, wait); err != nil && ctx.Err() == nil {
				return err
			}
			continue
		}
		in.Wall = c.Wall()
		if err := step(in); err != nil {
			return err
		}
	}
	return nil
}
