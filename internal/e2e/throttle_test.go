package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestThrottledFieldsReachTheClient: intervals are game time at any tick rate, and held back
// values arrive without another edit.
func TestThrottledFieldsReachTheClient(t *testing.T) {
	type gauge struct {
		Fast int32
		Slow int32   `net:"interval=500ms"`
		Heat float32 `net:"threshold=2"`
	}
	sc := netloop.NewSchema("gauges", 1, 0)
	gauges := netloop.NewClass[gauge](sc, "gauge")
	w := netlooptest.New(t, game{schema: sc}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20)}))
	c := w.Join("", nil, perfect)
	var o *netloop.Object[gauge]
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	w.Tick(func(tick *netloop.Tick) { o = gauges.Spawn(tick, gauge{}) })
	w.Step(1)
	var fast, slow, heat int
	client.Watch(c, gauges, client.Watcher[gauge]{Change: func(_ *netloop.Tick, o *netloop.Object[gauge], old gauge) {
		now := o.State()
		for n, changed := range map[*int]bool{&fast: now.Fast != old.Fast, &slow: now.Slow != old.Slow, &heat: now.Heat != old.Heat} {
			if changed {
				*n++
			}
		}
	}})
	for range 40 { // 2 s
		w.Tick(func(tick *netloop.Tick) {
			g := o.Edit(tick)
			g.Fast, g.Slow, g.Heat = g.Fast+1, g.Slow+1, g.Heat+0.25
		})
		w.Step(1)
	}
	if fast != 40 || slow != 4 || heat != 5 {
		t.Errorf("in 40 ticks the client got %d, %d and %d changes, want 40, 4 and 5", fast, slow, heat)
	}
	w.Until(12, func() bool {
		var got gauge
		w.Look(c, func(tick *netloop.Tick) {
			for g := range gauges.All(tick) {
				got = g.State()
			}
		})
		return got == gauge{40, 40, 10}
	})
	agreed := false
	c.Verify(func(err error) { agreed = err == nil })
	w.Until(120, func() bool { return agreed })
}

func TestHeldValuesAreAMetric(t *testing.T) {
	type gauge struct {
		Slow int32   `net:"interval=1s"`
		Heat float32 `net:"threshold=1000000"`
	}
	sc := netloop.NewSchema("gauges", 1, 0)
	gauges := netloop.NewClass[gauge](sc, "gauge")
	s, _ := serve(t, game{sc, func(r *netloop.Room) {
		var o *netloop.Object[gauge]
		r.OnStart(func(t *netloop.Tick) { o = gauges.Spawn(t, gauge{}) })
		r.On(netloop.Update, "test.gauge", func(t *netloop.Tick) { g := o.Edit(t); g.Slow++; g.Heat++ })
	}}, 60)
	waitFor(t, func() bool {
		_, body := page(t, s, "/metrics")
		return strings.Contains(body, `netloop_held_values_total{reason="interval"} `) && !strings.Contains(body, `{reason="interval"} 0`) &&
			strings.Contains(body, `netloop_held_values_total{reason="threshold"} `) && !strings.Contains(body, `{reason="threshold"} 0`)
	})
}

func TestABadIntervalPanicsWithTheField(t *testing.T) {
	defer func() {
		said, _ := recover().(string)
		if !strings.Contains(said, `class "bad"`) || !strings.Contains(said, "state.A: interval="+(2*time.Minute).String()) {
			t.Errorf("panic %q", said)
		}
	}()
	type state struct {
		A int32 `net:"interval=2m0s"`
	}
	netloop.NewClass[state](netloop.NewSchema("bad", 1, 0), "bad")
}
