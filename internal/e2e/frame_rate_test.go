package e2e_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// frameRates combines frames per second, ticks and fixed steps.
var frameRates = []struct{ fps, ticks, steps int }{
	{24, 60, 60}, {60, 60, 60}, {144, 60, 60}, {240, 60, 60},
	{144, 20, 60}, {144, 60, 50}, {60, 30, 120}, {240, 20, 20},
}

// At any frame rate a client runs each fixed step once and in order, several in a frame if
// necessary, with the tick, time and length that the step has on the server. Outside of
// FixedUpdate it has the values of its frame.
func TestFixedStepsOfAClientHaveTheServersTimes(t *testing.T) {
	type step struct {
		tick                uint64
		game, scaled, delta time.Duration
	}
	for _, r := range frameRates {
		t.Run(fmt.Sprint(r), func(t *testing.T) {
			server := map[uint64]step{}
			note := func(into map[uint64]step) func(*netloop.Tick) {
				return func(tick *netloop.Tick) {
					into[tick.FixedStep()] = step{tick.Number(), tick.GameTime(), tick.ScaledTime(), tick.Delta()}
				}
			}
			w := open(t, func(room *netloop.Room) {
				room.On(netloop.FixedUpdate, "test.step", note(server))
				room.OnStart(func(tick *netloop.Tick) { room.SetTimeScale(tick, 1, 2) })
			}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(uint64(r.ticks)), FixedRate: netloop.Hz(uint64(r.steps))}))
			w.Step(r.ticks / 2)
			c := w.Join("", nil, perfect, netlooptest.FPS(r.fps), netlooptest.ClientClock(time.Hour, 100))
			w.Until(100, func() bool { return c.State().Phase == client.Playing })
			mine, last, most := map[uint64]step{}, uint64(0), 0
			inFrame := 0
			c.On(netloop.FixedUpdate, "test.step", func(tick *netloop.Tick) {
				if last != 0 && tick.FixedStep() != last+1 {
					t.Errorf("step %d follows step %d", tick.FixedStep(), last)
				}
				last = tick.FixedStep()
				inFrame++
				note(mine)(tick)
			})
			c.On(netloop.Update, "test.frame", func(tick *netloop.Tick) {
				now, game := w.GameTime(), tick.GameTime()
				if (now - game).Abs() > time.Millisecond {
					t.Errorf("a frame at %v has the game time %v", now, game)
				}
				if last != 0 && tick.FixedStep() != last {
					t.Errorf("after step %d a frame has step %d", last, tick.FixedStep())
				}
				most, inFrame = max(most, inFrame), 0
			})
			w.Step(3 * r.ticks)
			for n, got := range mine {
				if want, ran := server[n]; ran && got != want {
					t.Errorf("step %d has %+v, and on the server %+v", n, got, want)
				}
			}
			if n := len(mine); n < r.steps*29/10 || n > r.steps*31/10 {
				t.Errorf("%d steps in 3 s", n)
			}
			if want := (r.steps + r.fps - 1) / r.fps; most != want && most != want+1 || c.Stats().Jumped != 0 {
				t.Errorf("%d steps in a frame, %d left out", most, c.Stats().Jumped)
			}
		})
	}
}

// A value drawn at FixedStep + Fraction moves evenly at any frame rate: in proportion to frame
// time, except for the 1 % by which the clock slews.
func TestAClientDrawsEvenlyAtAnyFrameRate(t *testing.T) {
	for _, r := range frameRates {
		t.Run(fmt.Sprint(r), func(t *testing.T) {
			w := open(t, func(*netloop.Room) {},
				netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(uint64(r.ticks)), FixedRate: netloop.Hz(uint64(r.steps))}))
			c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Jitter: 10 * time.Millisecond},
				netlooptest.FPS(r.fps), netlooptest.ClientClock(time.Minute, -200))
			w.Until(300, func() bool { return c.Stats().Synced })
			w.Step(r.ticks / 5)
			var drawn float64
			frames := 0
			c.On(netloop.Update, "test.draw", func(tick *netloop.Tick) {
				at := float64(tick.FixedStep()) + tick.Fraction()
				if f := tick.Fraction(); f < 0 || f >= 1 {
					t.Errorf("a fraction of %v", f)
				}
				if even := float64(r.steps) * tick.Delta().Seconds(); drawn > 0 && math.Abs(at-drawn-even) > even/90 {
					t.Errorf("from %v to %v steps in a frame of %v", drawn, at, tick.Delta())
				}
				drawn = at
				frames++
			})
			w.Step(3 * r.ticks)
			if frames < 3*r.fps-1 || frames > 3*r.fps+1 {
				t.Errorf("%d frames in 3 s", frames)
			}
		})
	}
}
