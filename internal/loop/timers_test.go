package loop

import (
	"slices"
	"testing"
	"time"
)

// 90 of 100 timers at seven times are stopped: they hold no memory, and the others run in the
// order of time and registration, once each.
func TestStoppedTimersHoldNoMemory(t *testing.T) {
	var fired []int
	var ts Timers[int]
	var stop []*Timer[int]
	for i := range 100 {
		timer := ts.Add(GameClock, time.Duration(i%7+1)*time.Second, func(c int) { fired = append(fired, i+c) })
		if i%10 != 3 {
			stop = append(stop, timer)
		}
	}
	for _, timer := range stop {
		if !timer.Stop() || timer.Stop() {
			t.Error("Stop does not say whether it was in time")
		}
	}
	if n := len(ts.heaps[GameClock]); n != 10 {
		t.Errorf("%d timers are held, 10 are pending", n)
	}
	var want []int
	for second := range 9 {
		ts.Run(1000, &Now{GameTime: time.Duration(second) * time.Second})
		for i := 3; i < 100; i += 10 {
			if i%7+1 == second {
				want = append(want, i+1000)
			}
		}
		if !slices.Equal(fired, want) {
			t.Errorf("after %d s %v were called, want %v", second, fired, want)
		}
	}
	if len(fired) != 10 {
		t.Errorf("%d of 10 were called", len(fired))
	}
}

// Calls by scaled time wait for it, and run after those of game time in a tick. A call delayed by
// a running call runs later, and after a panic the remaining calls run in the next tick.
func TestTimersOfBothClocks(t *testing.T) {
	var fired []string
	var ts Timers[string]
	note := func(name string) func(string) { return func(c string) { fired = append(fired, name+c) } }
	ts.Add(ScaledClock, time.Second, note("scaled"))
	ts.Add(GameClock, 2*time.Second, func(string) {
		fired = append(fired, "upset")
		ts.Add(GameClock, 3*time.Second, note("later"))
		panic("as ever")
	})
	done := ts.Add(GameClock, 2*time.Second, note("game"))
	run := func(game, scaled time.Duration) {
		defer func() { _ = recover() }()
		ts.Run("!", &Now{GameTime: game, ScaledTime: scaled})
	}
	run(time.Second, 0)
	run(2*time.Second, time.Second-1)
	run(2*time.Second, time.Second)
	run(3*time.Second, time.Second)
	if want := []string{"upset", "game!", "scaled!", "later!"}; !slices.Equal(fired, want) {
		t.Errorf("called %v, want %v", fired, want)
	}
	if done.Stop() {
		t.Error("a call that ran was stopped")
	}
}

// When a clock is set, its pending calls keep their delays and order, and those of the other
// clock are unchanged.
func TestTimersFollowASetClock(t *testing.T) {
	var fired []string
	var ts Timers[string]
	note := func(name string) func(string) { return func(string) { fired = append(fired, name) } }
	ts.Add(GameClock, 103*time.Second, note("third"))
	ts.Add(GameClock, 101*time.Second, note("first"))
	ts.Add(GameClock, 101*time.Second, note("second"))
	ts.Add(ScaledClock, 2*time.Second, note("scaled"))
	ts.Shift(GameClock, -100*time.Second)
	for at := time.Duration(0); at <= 3*time.Second; at += time.Second {
		ts.Run("", &Now{GameTime: at, ScaledTime: at})
		fired = append(fired, "|")
	}
	if want := []string{"|", "first", "second", "|", "scaled", "|", "third", "|"}; !slices.Equal(fired, want) {
		t.Errorf("called %q, want %q", fired, want)
	}
}
