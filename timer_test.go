package netloop

import (
	"slices"
	"testing"
	"time"
)

func TestStoppedTimersHoldNothing(t *testing.T) {
	var fired []int
	b := newBare(t, func(r *Room) {
		r.OnStart(func(tick *Tick) {
			var stop []Timer
			for i := range 100 {
				timer := tick.After(time.Duration(i%7)*50*time.Millisecond, func(*Tick) { fired = append(fired, i) })
				if i%10 != 3 {
					stop = append(stop, timer)
				}
			}
			for _, timer := range stop {
				if !timer.Stop() || timer.Stop() {
					t.Error("Stop does not say whether it was in time")
				}
			}
		})
	})
	b.step()
	if n := len(b.s.room.timers.heaps[gameClock]); n != 10 {
		t.Errorf("%d timers are held, 10 are pending", n)
	}
	for range 60 {
		b.step()
	}
	if len(fired) != 10 || !slices.IsSortedFunc(fired, func(a, b int) int {
		return 100*(a%7) + a - 100*(b%7) - b
	}) {
		t.Errorf("fired %v, not in the order of time and registration", fired)
	}
}

func TestTheScaleIsShown(t *testing.T) {
	b := newBare(t, func(r *Room) {
		r.On(Update, "slow", func(tick *Tick) {
			if tick.Number() == 2 {
				r.SetTimeScale(tick, 1, 2)
			}
		})
	})
	b.step()
	if v := b.s.room.snapshotLoop(1); v.Scale != "" || !b.scraped("netloop_time_scale 1") {
		t.Errorf("%q at first, or another gauge", v.Scale)
	}
	b.step()
	if v := b.s.room.snapshotLoop(2); v.Scale != "1/2" || !b.scraped("netloop_time_scale 0.5") {
		t.Errorf("%q at a half, or another gauge", v.Scale)
	}
}
