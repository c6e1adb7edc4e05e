package clock

import (
	"context"
	"time"
)

// System is the clock of the machine. Safe for use by many goroutines.
type System struct{ base time.Time }

// NewSystem returns a clock whose Now is 0.
func NewSystem() *System { return &System{base: time.Now()} }

// Now is the monotonic time since the clock was made.
func (s *System) Now() time.Duration { return time.Since(s.base) }

// Wall is the time of day.
func (s *System) Wall() time.Time { return time.Now() }

// WaitUntil returns at the monotonic time at, or earlier with the error of ctx.
func (s *System) WaitUntil(ctx context.Context, at time.Duration) error { panic("clock: not yet") }
