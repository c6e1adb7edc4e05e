package netloop

import (
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// The bounds of a time scale: see [Room.SetTimeScale].
const (
	MaxTimeScale    = loop.MaxScale    // times as fast as game time
	MaxTimeScaleDen = loop.MaxScaleDen // the largest denominator
)

// SetTimeScale lets scaled time run num/den times as fast as game time, from the next tick on: 0, 1
// is a pause, 1, 2 slow motion and 1, 1 the default. Within a tick all systems see one scale; of
// several calls in a tick the last counts. Ticks, their numbers, fixed steps and GameTime are not
// affected, nor is any code that does not use scaled time: see [Tick.ScaledTime],
// [Tick.ScaledDelta], [Scaled], [Tick.AfterFuncScaled] and [Tick.InScaled].
//
// The scale is sent to clients, and they see the same scaled time. It panics unless num/den is from
// 0 to [MaxTimeScale] and den from 1 to [MaxTimeScaleDen].
func (r *Room) SetTimeScale(t *Tick, num, den int) {
	t.server("Room.SetTimeScale")
	if num < 0 || den < 0 || loop.CheckScale(uint64(num), uint64(den)) != nil {
		panic(fmt.Sprintf("netloop: Room.SetTimeScale(%d, %d): use 0 to %d, with a denominator from 1 to %d", num, den, MaxTimeScale, MaxTimeScaleDen))
	}
	r.systems.loop.Rescale(uint64(num), uint64(den))
}

// TimeScale returns the scale of the tick, in lowest terms. On a client it is the server's last
// known scale.
func (t *Tick) TimeScale() (num, den int) {
	t.check("Tick.TimeScale")
	return int(t.now.ScaleNum), int(t.now.ScaleDen)
}

// ScaledTime returns the scaled time at this tick: game time, stretched by the time scales that
// [Room.SetTimeScale] has set so far. It is exact: rounding does not add up at any scale. While it
// was 1/1 all along it is GameTime.
//
// On a client it is computed from the GameTime there and the scales that the server has sent. A
// lower scale arrives with the delay of a message; scaled time then steps back by its lead, and
// ScaledDelta is never negative.
func (t *Tick) ScaledTime() time.Duration { t.check("Tick.ScaledTime"); return t.now.ScaledTime }

// ScaledDelta returns Delta in scaled time. Fractions of a nanosecond are carried over: the
// ScaledDeltas of ticks add up to ScaledTime, and those of fixed steps to the scaled sum of their
// Deltas. For a system of [Every] it is the scaled time since its last call. When a system catches
// up, each call has its period as the delta of the period's own clock, and the first has the whole
// delta of the other clock.
func (t *Tick) ScaledDelta() time.Duration { t.check("Tick.ScaledDelta"); return t.now.ScaledDelta }

// Scaled lets [Every] or [MinGap] measure scaled time: see [Room.SetTimeScale]. A paused room makes
// no such call; a change of the scale keeps the phase, so that the remainder of a period takes
// accordingly longer or shorter. At a scale of 16 several periods may pass in a tick: one call
// replaces all of them, or with [CatchUp] each has one.
func Scaled() EveryOption { return EveryOption{func(s *loop.Spec[*Tick]) { s.Scaled = true }} }
