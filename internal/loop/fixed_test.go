package loop

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// After SetSteps each step shows the tick that runs it, and that tick's time on both clocks; Once
// systems before the steps show that of the first, and all other stages the frame's own.
func TestStepsOfAnotherTimeline(t *testing.T) {
	h := newHarness(t)
	var got []string
	note := func(n *Now) {
		got = append(got, fmt.Sprint(n.System, " ", n.FixedStep, ": ", n.Tick, " ", n.GameTime, " ", n.ScaledTime))
	}
	stages := []Stage{EarlyUpdate, FixedUpdate, Update}
	h.add(Spec[*Now]{Name: "all", Ask: at(note, stages...)})
	h.add(Spec[*Now]{Name: "once", Once: true, Ask: at(note, FixedUpdate)})
	h.SetScale(Scale{Num: 1, Den: 2, From: 100 * time.Millisecond, To: 100 * time.Millisecond})
	frame := func(steps int) {
		t.Helper()
		got = nil
		in := Input{Tick: 9, GameTime: 950 * time.Millisecond, FixedSteps: steps, FirstFixedStep: 20, FixedDelta: 50 * time.Millisecond}
		if _, err := h.Step(in); err != nil {
			t.Fatal(err)
		}
	}
	h.SetSteps(Timeline{Rate: Hz(10), Fixed: Hz(20)})
	frame(2)
	if want := []string{
		"all 19: 9 950ms 525ms", "once 20: 10 1s 550ms", "all 20: 10 1s 550ms", "all 21: 11 1.1s 600ms", "all 21: 9 950ms 525ms",
	}; !slices.Equal(got, want) {
		t.Errorf("with a timeline of steps %q, want %q", got, want)
	}
	h.SetSteps(Timeline{})
	frame(1)
	if want := []string{
		"all 19: 9 950ms 525ms", "once 20: 9 950ms 525ms", "all 20: 9 950ms 525ms", "all 20: 9 950ms 525ms",
	}; !slices.Equal(got, want) {
		t.Errorf("without one %q, want %q", got, want)
	}
}
