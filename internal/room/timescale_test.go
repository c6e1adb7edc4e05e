package room_test

import (
	"testing"

	"github.com/netloop/netloop"
)

func TestTheScaleIsShown(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "slow", func(tick *netloop.Tick) {
			if tick.Number() == 2 {
				r.SetTimeScale(tick, 1, 2)
			}
		})
	})
	b.step()
	if v := b.room.View(); v.Scale != "" || !b.scraped("netloop_time_scale 1") {
		t.Errorf("%q at first, or another gauge", v.Scale)
	}
	b.step()
	if v := b.room.View(); v.Scale != "1/2" || !b.scraped("netloop_time_scale 0.5") {
		t.Errorf("%q at a half, or another gauge", v.Scale)
	}
}
