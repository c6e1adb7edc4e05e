package netloop

import (
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Rate is a number of ticks a second, as a fraction: {60, 1} is 60 Hz and
// {30000, 1001} is 29.97 Hz. A room's is from 1 to 1 000 Hz, and both parts are at most 2³⁰.
type Rate struct{ Num, Den uint64 }

// Hz returns the rate of n a second.
func Hz(n uint64) Rate { return Rate{n, 1} }

// Period returns the time from one tick to the next, rounded to nanoseconds.
func (r Rate) Period() time.Duration { return loop.Rate(r).Period() }

// String formats the rate, as in "60 Hz".
func (r Rate) String() string { return loop.Rate(r).String() }

// maxRate bounds rates: above it a tick's period is near the accuracy of timers.
const maxRate = 1000

// check reports a rate that no room can run at.
func (r Rate) check(key string) error {
	if r.Num == 0 || r.Den == 0 || r.Num < r.Den || r.Num > maxRate*r.Den || r.Num > loop.MaxRatePart || r.Den > loop.MaxRatePart {
		return ConfigError(key, fmt.Sprintf("%d/%d Hz", r.Num, r.Den), "use 1 to %d Hz", maxRate)
	}
	return nil
}
