package clock

import (
	"context"
	"time"
)

// System is the clock of the machine. Safe for use by many goroutines.
type System struct {
	base  time.Time
	waits waiter
}

// waiter implements the waits of a System: alarms on Linux, timers elsewhere.
type waiter interface {
	// wait returns after d, or when ctx ends; sometimes it returns earlier.
	wait(ctx context.Context, d time.Duration)
	// close releases the resources of waits. Later waits still work, but less exactly.
	close() error
}

// NewSystem returns a clock with Now at 0. Close releases the resources of its waits.
func NewSystem() *System { return newSystem(newWaiter()) }

func newSystem(w waiter) *System { return &System{base: time.Now(), waits: w} }

// Now is the monotonic time since the clock was made.
func (s *System) Now() time.Duration { return time.Since(s.base) }

// Wall returns the time of day, without the monotonic reading that time.Now adds: differences are
// then the same as between recorded times.
func (s *System) Wall() time.Time { return time.Now().Round(0) }

// WaitUntil returns at the monotonic time at, never before it, or earlier with
// the error of ctx. A time already past returns at once.
//
// It is exact to about 0.1 ms on Linux and to about 1 ms elsewhere; both are medians on an idle
// machine.
func (s *System) WaitUntil(ctx context.Context, at time.Duration) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := at - s.Now()
		if left <= 0 {
			return nil
		}
		s.waits.wait(ctx, left)
	}
}

// Close releases the timers of the clock. Later waits still work, but less exactly.
func (s *System) Close() error { return s.waits.close() }

// timers waits with the timers of the runtime: on every system, to about 1 ms.
type timers struct{}

func (timers) wait(ctx context.Context, d time.Duration) { Sleep(ctx, d) }

func (timers) close() error { return nil }

// Sleep waits for d with a timer of the runtime, to about 1 ms, and reports false if ctx ends first
// or has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
