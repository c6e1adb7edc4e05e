package room_test

import (
	"maps"
	"testing"
	"time"

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
	if v := b.room.Questions.View(); v.Scale != "" || !b.scraped("netloop_time_scale 1") {
		t.Errorf("%q at first, or another gauge", v.Scale)
	}
	b.step()
	if v := b.room.Questions.View(); v.Scale != "1/2" || !b.scraped("netloop_time_scale 0.5") {
		t.Errorf("%q at a half, or another gauge", v.Scale)
	}
}

// A deadline uses its own clock: of two equal deadlines the one in scaled time is later by the
// pause of scaled time. A deadline in the past calls in the next tick.
func TestDeadlinesCall(t *testing.T) {
	called := map[string]uint64{}
	note := func(name string) func(*netloop.Tick) {
		return func(tick *netloop.Tick) { called[name] = tick.Number() }
	}
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test", func(tick *netloop.Tick) {
			switch tick.Number() {
			case 10:
				tick.At(tick.In(100*time.Millisecond), note("game"))
				tick.At(tick.InScaled(100*time.Millisecond), note("scaled"))
				tick.At(netloop.Deadline{}, note("passed"))
				tick.At(tick.InScaled(-time.Hour), note("passed, scaled"))
				if stopped := tick.At(tick.In(0), note("stopped")); !stopped.Stop() || stopped.Stop() {
					t.Error("Stop does not say whether it was in time")
				}
				r.SetTimeScale(tick, 0, 1)
			case 20:
				r.SetTimeScale(tick, 1, 1)
			}
		})
	})
	for range 40 {
		b.step()
	}
	want := map[string]uint64{"game": 16, "passed": 11, "scaled": 26, "passed, scaled": 21}
	if !maps.Equal(called, want) {
		t.Errorf("called at %v, want %v", called, want)
	}
}
