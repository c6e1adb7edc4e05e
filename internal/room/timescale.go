package room

import (
	"sync/atomic"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// TimeScale is the scale of scaled time as last told to clients.
type TimeScale struct {
	*core
	told atomic.Pointer[loop.Scale]
}

// isDefault reports whether scaled time runs like game time.
func (t *TimeScale) isDefault() bool { return *t.told.Load() == loop.Unscaled }

// changed reports, once, that the scale was changed, and updates it for all but the clients. The
// flush calls it: a later change in the tick is told in the next.
func (t *TimeScale) changed() bool {
	now := t.loop.Scale()
	if now == *t.told.Load() {
		return false
	}
	t.told.Store(new(now))
	t.sent.timeScale(t.message())
	return true
}

// message returns the scale as told to clients. A line begins at the game time of a tick.
func (t *TimeScale) message() transport.TimeScale {
	s := t.told.Load()
	return transport.TimeScale{Num: s.Num, Den: s.Den, Tick: t.Timeline().TickAt(s.From), At: s.To, Fraction: s.Frac}
}

// Speed returns how many times as fast as game time scaled time runs. Any goroutine may call it.
func (t *TimeScale) Speed() float64 {
	s := t.told.Load()
	return float64(s.Num) / float64(s.Den)
}
