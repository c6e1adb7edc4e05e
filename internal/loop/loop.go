package loop

import "time"

// Loop runs systems in stages. One goroutine owns it.
type Loop[C any] struct {
	c     C
	now   *Now
	clock func() time.Duration
}

// New returns a loop that hands c to its systems.
func New[C any](c C, now *Now, clock func() time.Duration) *Loop[C] {
	return &Loop[C]{c: c, now: now, clock: clock}
}

// Add registers a system.
func (l *Loop[C]) Add(s Spec[C]) (*System[C], error) { panic("loop: not yet") }

// Check resolves the order now.
func (l *Loop[C]) Check() error { panic("loop: not yet") }

// Step runs one tick.
func (l *Loop[C]) Step(in Input) (*Record, error) { panic("loop: not yet") }
