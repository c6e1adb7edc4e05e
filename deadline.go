package netloop

import (
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
)

// Deadline is a point in game time or in scaled time that can be replicated: both sides count down
// to it. The zero Deadline has passed.
type Deadline struct {
	// at is the game time; below 0 it is the bitwise complement of the scaled time. So the sign
	// selects the clock; on the wire the lowest bit does.
	at codec.Instant
}

// In returns the deadline d of game time after this tick.
func (t *Tick) In(d time.Duration) Deadline {
	t.check("Tick.In")
	at := ahead(t.now.GameTime, d)
	t.await(loop.GameClock, at)
	return Deadline{codec.Instant{At: at}}
}

// InScaled returns the deadline d of scaled time after this tick: it does not approach while the
// room is paused.
func (t *Tick) InScaled(d time.Duration) Deadline {
	t.check("Tick.InScaled")
	at := ahead(t.now.ScaledTime, d)
	t.await(loop.ScaledClock, at)
	return Deadline{codec.Instant{At: ^at}}
}

// await lets a room that sleeps wake when a deadline has passed.
func (t *Tick) await(clock loop.TimerClock, at time.Duration) {
	if t.room != nil && t.room.e != nil {
		t.room.e.Sleep.Await(clock, at)
	}
}

// Scaled reports whether the deadline is in scaled time.
func (d Deadline) Scaled() bool { return d.at.At < 0 }

// Left returns the time until the deadline, by its clock and at least 0.
func (d Deadline) Left(t *Tick) time.Duration {
	t.check("Deadline.Left")
	if d.Scaled() {
		return max(0, ^d.at.At-t.now.ScaledTime)
	}
	return max(0, d.at.At-t.now.GameTime)
}

// Passed reports whether no time is left.
func (d Deadline) Passed(t *Tick) bool { return d.Left(t) == 0 }
