package netloop

import (
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
)

// Deadline is a point in game time or in scaled time that can be replicated, so that server and
// clients can count down to it. The zero Deadline has passed.
type Deadline struct {
	// at is the game time if it is not negative, and otherwise the bitwise complement of the scaled
	// time. So the sign selects the clock; on the wire the lowest bit does.
	at codec.Instant
}

// In returns the deadline after d of game time from this tick.
func (t *Tick) In(d time.Duration) Deadline {
	t.check("Tick.In")
	at := ahead(t.now.GameTime, d)
	t.await(loop.GameClock, at)
	return Deadline{codec.Instant{At: at}}
}

// InScaled returns the deadline after d of scaled time from this tick. The time left does not
// decrease while the room is paused.
func (t *Tick) InScaled(d time.Duration) Deadline {
	t.check("Tick.InScaled")
	at := ahead(t.now.ScaledTime, d)
	t.await(loop.ScaledClock, at)
	return Deadline{codec.Instant{At: ^at}}
}

// await makes a sleeping room wake when a deadline has passed.
func (t *Tick) await(clock loop.TimerClock, at time.Duration) {
	if t.room != nil && t.room.e != nil {
		t.room.e.Sleep.Await(clock, at)
	}
}

// Scaled reports whether the deadline is in scaled time.
func (d Deadline) Scaled() bool { return d.at.At < 0 }

// Left returns the time until the deadline, in the deadline's clock and at least 0.
func (d Deadline) Left(t *Tick) time.Duration {
	t.check("Deadline.Left")
	if d.Scaled() {
		return max(0, ^d.at.At-t.now.ScaledTime)
	}
	return max(0, d.at.At-t.now.GameTime)
}

// Passed reports whether the deadline has passed.
func (d Deadline) Passed(t *Tick) bool { return d.Left(t) == 0 }
