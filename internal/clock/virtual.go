package clock

import (
	"context"
	"sync"
	"time"
)

// Virtual is a clock that advances only when it is set. The zero value shows time 0. Safe for use
// by many goroutines.
type Virtual struct {
	mu  sync.Mutex
	now time.Duration
}

// virtualWall is the first time of day of every virtual clock, so that results that depend on it
// are the same in each run.
var virtualWall = time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)

// NewVirtual returns a clock at time 0.
func NewVirtual() *Virtual { return new(Virtual) }

// Now is the virtual monotonic time.
func (v *Virtual) Now() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Wall is a fixed time of day plus Now.
func (v *Virtual) Wall() time.Time { return virtualWall.Add(v.Now()) }

// Set moves the clock to the time at. An earlier time has no effect: the clock is monotonic.
func (v *Virtual) Set(at time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = max(v.now, at)
}

// Advance moves the clock forward by d, which must not be negative.
func (v *Virtual) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: a virtual clock cannot go back")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now += d
}

// WaitUntil moves the clock to the time at and returns at once; if ctx has ended, it returns its
// error and leaves the clock unchanged.
func (v *Virtual) WaitUntil(ctx context.Context, at time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.Set(at)
	return nil
}
