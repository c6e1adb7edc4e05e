package room

import (
	"github.com/netloop/netloop/internal/transport"
)

// rescaled reports, once, that the scale was changed, and tells everybody but the
// clients. The flush asks: what comes after it in a tick is told in the next.
func (r *Room) rescaled() bool {
	now := r.loop.Scale()
	if now == *r.scale.Load() {
		return false
	}
	r.scale.Store(new(now))
	r.leaving.timeScale(r.timeScale())
	return true
}

// timeScale is what clients are told. A line begins at the game time of a tick.
func (r *Room) timeScale() transport.TimeScale {
	s := r.scale.Load()
	return transport.TimeScale{Num: s.Num, Den: s.Den, Tick: r.Timeline().TickAt(s.From), At: s.To, Fraction: s.Frac}
}

// Speed is how many times as fast as game time scaled time runs. Any goroutine may call it.
func (r *Room) Speed() float64 {
	s := r.scale.Load()
	return float64(s.Num) / float64(s.Den)
}
