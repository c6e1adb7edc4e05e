package e2e_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// tenth is a room with ticks of 100 ms and steps of 50 ms.
var tenth = netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(10), FixedRate: netloop.Hz(20)})

// scaleAt changes the scale in the ticks with the given numbers.
func scaleAt(r *netloop.Room, scales map[uint64][2]int) {
	r.On(netloop.PreUpdate, "test.scale", func(t *netloop.Tick) {
		if s, ok := scales[t.Number()]; ok {
			r.SetTimeScale(t, s[0], s[1])
		}
	})
}

func TestOnlyScaledTimeFollowsTheTimeScale(t *testing.T) {
	var got []string
	w := open(t, func(r *netloop.Room) {
		scaleAt(r, map[uint64][2]int{1: {1, 2}, 2: {0, 1}, 3: {6, 2}})
		r.On(netloop.FixedUpdate, "test.step", func(t *netloop.Tick) {
			got = append(got, fmt.Sprint("step ", t.FixedStep(), " ", t.Delta(), " ", t.ScaledDelta(), " at ", t.ScaledTime()))
		})
		r.On(netloop.Update, "test.tick", func(t *netloop.Tick) {
			num, den := t.TimeScale()
			got = append(got, fmt.Sprintf("tick %d %v %v, %d/%d %v %v", t.Number(), t.GameTime(), t.Delta(), num, den, t.ScaledTime(), t.ScaledDelta()))
		})
	}, tenth)
	w.Step(4)
	want := []string{
		"step 1 50ms 50ms at 100ms", "step 2 50ms 50ms at 100ms", "tick 1 100ms 100ms, 1/1 100ms 100ms",
		"step 3 50ms 25ms at 150ms", "step 4 50ms 25ms at 150ms", "tick 2 200ms 100ms, 1/2 150ms 50ms",
		"step 5 50ms 0s at 150ms", "step 6 50ms 0s at 150ms", "tick 3 300ms 100ms, 0/1 150ms 0s",
		"step 7 50ms 150ms at 450ms", "step 8 50ms 150ms at 450ms", "tick 4 400ms 100ms, 3/1 450ms 300ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFixedStepIsTheNumberOfTheStepSinceTheStart(t *testing.T) {
	var got []string
	w := open(t, func(r *netloop.Room) {
		note := func(t *netloop.Tick) {
			got = append(got, fmt.Sprint(t.Stage().String()[:5], " ", t.FixedStep()))
		}
		r.Add("test.note", func(s netloop.Stage) func(*netloop.Tick) { return note }, netloop.Stages(netloop.EarlyUpdate, netloop.FixedUpdate, netloop.Update))
	}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), FixedRate: netloop.Hz(30)}))
	w.Step(3) // 1, 2 and 1 steps
	want := []string{"Early 0", "Fixed 1", "Updat 1", "Early 1", "Fixed 2", "Fixed 3", "Updat 3", "Early 3", "Fixed 4", "Updat 4"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTimersOnBothClocks(t *testing.T) {
	var got []string
	w := open(t, func(r *netloop.Room) {
		scaleAt(r, map[uint64][2]int{2: {0, 1}, 5: {1, 1}})
		r.OnStart(func(tick *netloop.Tick) {
			note := func(what string) func(*netloop.Tick) {
				return func(t *netloop.Tick) { got = append(got, fmt.Sprint(t.Number(), " ", what)) }
			}
			// 100 ms are over by then, and 3 ticks are paused.
			tick.AfterFuncScaled(300*time.Millisecond, note("scaled 300"))
			tick.AfterFuncScaled(200*time.Millisecond, note("scaled 200"))
			tick.AfterFuncScaled(-5, func(t *netloop.Tick) {
				note("scaled at once")(t)
				t.AfterFuncScaled(0, note("in the pause"))
			})
			tick.AfterFunc(500*time.Millisecond, note("game 500"))
			tick.AfterFunc(600*time.Millisecond, note("game 600"))
			if stop := tick.AfterFuncScaled(250*time.Millisecond, note("stopped")); !stop.Stop() || stop.Stop() {
				t.Error("Stop does not say whether it was in time")
			}
			for _, after := range []func(time.Duration, func(*netloop.Tick)) netloop.Timer{tick.AfterFunc, tick.AfterFuncScaled} {
				after(math.MaxInt64, note("never"))
			}
		})
	}, tenth)
	w.Step(8)
	want := []string{"2 scaled at once", "6 game 500", "6 in the pause", "6 scaled 200", "7 game 600", "7 scaled 300"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPanicOfATimerStopsNoOtherTimer(t *testing.T) {
	var got []string
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			tick.AfterFunc(0, func(*netloop.Tick) { panic("once") })
			tick.AfterFuncScaled(0, func(t *netloop.Tick) { got = append(got, fmt.Sprint(t.Number())) })
		})
	}, netlooptest.AllowPanics())
	w.Step(4)
	if !slices.Equal(got, []string{"3"}) {
		t.Errorf("ran in ticks %v, want 3", got)
	}
}

func TestDeadlinesOnBothClocks(t *testing.T) {
	w := open(t, func(r *netloop.Room) { scaleAt(r, map[uint64][2]int{2: {1, 2}}) }, tenth)
	var game, scaled netloop.Deadline
	look := func(fn func(tick *netloop.Tick)) { w.Tick(fn) }
	w.Step(1)
	look(func(tick *netloop.Tick) {
		game, scaled = tick.In(time.Second), tick.InScaled(time.Second)
		if game.Scaled() || !scaled.Scaled() || scaled.Left(tick) != time.Second || scaled.Passed(tick) {
			t.Errorf("%+v, %+v", game, scaled)
		}
		for _, d := range []netloop.Deadline{{}, tick.In(0), tick.InScaled(0), tick.In(-time.Hour), tick.InScaled(-time.Hour), tick.InScaled(math.MinInt64)} {
			if !d.Passed(tick) || d.Left(tick) != 0 {
				t.Errorf("%+v has not passed", d)
			}
		}
		if tick.In(-time.Hour).Scaled() || !tick.InScaled(-time.Hour).Scaled() {
			t.Error("a past deadline has the wrong clock")
		}
		for _, d := range []netloop.Deadline{tick.In(math.MaxInt64), tick.InScaled(math.MaxInt64)} {
			if left := d.Left(tick); left != math.MaxInt64-100*time.Millisecond {
				t.Errorf("%v remain of forever", left)
			}
		}
	})
	w.Step(9) // 1 s: 200 ms and 8 halves of 100 ms are 600 ms of scaled time.
	look(func(tick *netloop.Tick) {
		if game.Left(tick) != 100*time.Millisecond || scaled.Left(tick) != 500*time.Millisecond {
			t.Errorf("%v and %v remain, want 100ms and 500ms", game.Left(tick), scaled.Left(tick))
		}
	})
	w.Step(10)
	look(func(tick *netloop.Tick) {
		if !game.Passed(tick) || !scaled.Passed(tick) {
			t.Error("they have not passed")
		}
	})
}

func TestInvalidScalesPanicWithTheRemedy(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	w.Tick(func(tick *netloop.Tick) {
		r := tick.Room()
		for _, s := range [][2]int{{-1, 1}, {1, 0}, {1, -1}, {-1, -1}, {17, 1}, {1, netloop.MaxTimeScaleDen + 1}, {math.MinInt, math.MinInt}} {
			func() {
				defer func() {
					if v := fmt.Sprint(recover()); !strings.Contains(v, fmt.Sprintf("(%d, %d): use 0 to 16", s[0], s[1])) {
						t.Errorf("%v: %s", s, v)
					}
				}()
				r.SetTimeScale(tick, s[0], s[1])
			}()
		}
		r.SetTimeScale(tick, netloop.MaxTimeScale*netloop.MaxTimeScaleDen, netloop.MaxTimeScaleDen)
	})
	w.Step(1)
	w.Tick(func(tick *netloop.Tick) {
		if num, den := tick.TimeScale(); num != netloop.MaxTimeScale || den != 1 {
			t.Errorf("%d/%d", num, den)
		}
	})
}

func TestAGroupIsDisabledAndEnabled(t *testing.T) {
	var ran []string
	note := func(t *netloop.Tick) { ran = append(ran, fmt.Sprint(t.Number(), " ", t.Delta())) }
	w := open(t, func(r *netloop.Room) {
		enemies := r.Group("enemies")
		r.On(netloop.Update, "spawn", note, netloop.InSystemGroup("enemies"), netloop.Every(300*time.Millisecond))
		r.On(netloop.PreUpdate, "shots", note, netloop.MinGap(250*time.Millisecond), netloop.InSystemGroup("enemies"))
		r.On(netloop.Update, "test.script", func(t *netloop.Tick) {
			switch t.Number() {
			case 2:
				enemies.Disable()
				if n, _ := r.Loop().Find("enemies"); !n.Disabled || strings.Count(r.Loop().String(), "  disabled\n") != 2 {
					ran = append(ran, "not said")
				}
			case 9:
				enemies.Enable()
			}
		})
	}, tenth)
	w.Step(12)
	// Both ran at 100 ms, and the ticks from 3 to 9 do not count.
	if want := []string{"1 100ms", "1 100ms", "11 300ms", "11 300ms"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	out := ""
	w.Tick(func(tick *netloop.Tick) { out = tick.Room().Loop().String() })
	if !strings.Contains(out, "  at least 250ms  -\n") || strings.Contains(out, "disabled") {
		t.Error(out)
	}
}
