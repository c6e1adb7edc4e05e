package loop

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// gap is a system with a minimum time between its calls.
func gap(name string, d time.Duration, ask func(Stage) func(*Now)) Spec[*Now] {
	s := every(name, d, ask)
	s.Gap = true
	return s
}

func TestAGapHasNoPhase(t *testing.T) {
	h := newHarness(t)
	h.add(gap("a", 50*ms, at(h.deltas, Update)))
	h.run(hz50, make([]uint64, 9)...)
	h.wantRan("1:20ms", "4:60ms", "7:60ms") // Every would catch up the 10 ms in tick 6.
	rec := h.run(hz50, 30)
	h.wantRan("10:660ms")
	if h.run(hz50, 0, 0, 0); len(h.ran) != 1 || rec.Systems[0].Missed > 0 {
		t.Errorf("ran %v after a stall, missed %d", h.ran, rec.Systems[0].Missed)
	}
}

func TestAGapStartsWithACallNotWithASkippedTurn(t *testing.T) {
	h := newHarness(t)
	s := gap("a", 50*ms, at(h.deltas, Update, PreUpdate))
	s.RunIf = func(n *Now) bool { return n.Tick >= 3 && n.Tick != 6 }
	h.add(s)
	h.add(gap("panics", 50*ms, at(func(n *Now) { h.deltas(n); panic("each time") }, PreLateUpdate)))
	h.run(hz50, make([]uint64, 10)...)
	h.wantRan("1:20ms", "3:20ms", "3:20ms", "4:60ms", "7:80ms", "7:80ms", "7:60ms", "10:60ms", "10:60ms")
}

func TestAGapInScaledTimeAndInSteps(t *testing.T) {
	h := newHarness(t)
	h.Rescale(1, 2)
	s := gap("a", 20*ms, at(h.times, FixedUpdate))
	s.Scaled = true
	h.add(s)
	h.run(hz50, make([]uint64, 5)...)
	h.wantRan("1:10ms/5ms", "3:40ms/20ms", "5:40ms/20ms")
	s.Name, s.CatchUp = "b", 1
	if _, err := h.Add(s); err == nil || !strings.Contains(err.Error(), "nothing to catch up") {
		t.Errorf("a gap that catches up: %v", err)
	}
}

// With a period of 0 the system is always due.
func TestAGapOfZeroIsEveryTick(t *testing.T) {
	h := newHarness(t)
	h.add(gap("a", 0, at(h.deltas, Update)))
	h.run(hz50, 0, 0)
	h.wantRan("1:20ms", "2:20ms")
}

// set changes a description.
func (h *harness) set(s *System[*Now], change func(*Spec[*Now])) {
	h.tb.Helper()
	spec := s.Spec()
	change(&spec)
	if err := s.Change(spec); err != nil {
		h.tb.Fatal(err)
	}
}

func disable(s *Spec[*Now]) { s.Disabled = true }
func enable(s *Spec[*Now])  { s.Disabled = false }

func TestTheTimersOfADisabledGroupStop(t *testing.T) {
	h := newHarness(t)
	g := h.add(Spec[*Now]{Name: "g", IsGroup: true})
	member := func(s Spec[*Now]) *System[*Now] { s.Group = "g"; return h.add(s) }
	a := member(every("a", 60*ms, at(h.times, Update)))
	c := every("c", 50*ms, at(h.times, FixedUpdate))
	c.CatchUp = 5
	member(c)
	member(every("zero", 0, at(h.times, PostLateUpdate)))
	member(Spec[*Now]{Name: "plain", Ask: at(h.times, PreUpdate)})
	h.Rescale(1, 2)
	h.run(hz50, 0)
	h.wantRan("1:20ms/10ms", "1:20ms/10ms", "1:20ms/10ms")
	h.set(g, disable)
	h.run(hz50, 0, 0, 0)
	h.set(a, func(s *Spec[*Now]) { s.Disabled = true; s.Period = 40 * ms }) // A change.
	h.run(hz50, 0, 30, 0)
	h.wantRan()
	h.set(g, enable)
	h.set(a, enable)
	// As in tick 2: at 40 ms c has had 4 steps and waits for 5 more; a waits for 60 ms.
	rec := h.run(hz50, 0)
	h.wantRan("8:20ms/10ms", "8:20ms/10ms")
	h.run(hz50, 0)
	h.wantRan("9:50ms/25ms", "9:20ms/10ms", "9:40ms/20ms", "9:20ms/10ms")
	for _, s := range rec.Systems {
		if s.Missed > 0 {
			t.Errorf("%s missed %d", s.Name, s.Missed)
		}
	}
}

// A system is disabled at random, with changes and drops: its calls equal those of a system that is
// never disabled, in a loop that did not tick meanwhile.
func TestADisabledSystemRunsAsIfThatTimeWereMissing(t *testing.T) {
	for seed := range seeds(t, 100) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 3))
		s := every("a", time.Duration(1+rnd.Int64N(int64(200*ms))), nil)
		s.CatchUp, s.Scaled = rnd.IntN(4), rnd.IntN(2) == 0
		s.Gap = s.CatchUp == 0 && rnd.IntN(2) == 0
		stage := []Stage{Update, FixedUpdate}[rnd.IntN(2)]
		var got, want []string
		add := func(h *harness, ran *[]string) *System[*Now] {
			s.Ask = at(func(n *Now) { *ran = append(*ran, n.Delta.String()+" "+n.ScaledDelta.String()) }, stage)
			return h.add(s)
		}
		h, other := newHarness(t), newHarness(t)
		handle := add(h, &got)
		add(other, &want)
		disabled := false
		for i := range 60 {
			if i > 0 && rnd.IntN(5) == 0 {
				disabled = !disabled
				h.set(handle, func(s *Spec[*Now]) { s.Disabled = disabled })
			}
			num, den := uint64(rnd.IntN(3)), uint64(1)
			h.Rescale(num, den)
			h.run(hz50, 0)
			if !disabled {
				other.Rescale(num, den)
				other.run(hz50, 0)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d, %+v at %v: %d calls, want %d", seed, s.Period, stage, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("seed %d, every %v at %v: call %d has %s, want %s", seed, s.Period, stage, i, got[i], want[i])
			}
		}
	}
}

func TestALoopThatStartsLateHasNotSlept(t *testing.T) {
	h := newHarness(t)
	s := every("a", 50*ms, at(h.deltas, Update))
	s.Disabled, s.CatchUp = true, 9
	a := h.add(s)
	h.tick = 1000
	h.run(hz50, 0, 0)
	h.set(a, enable)
	h.run(hz50, 0, 0, 0, 0, 0)
	h.wantRan("1006:50ms")
}

func TestALoopThatStartsLateSkipsEarlierSteps(t *testing.T) {
	h := newHarness(t)
	s := every("a", 30*ms, at(h.deltas, FixedUpdate))
	s.CatchUp = 9
	h.add(s)
	h.tick = 1000
	rec := h.run(hz50, 0)
	h.wantRan()
	if rec.Systems[0].Missed > 0 {
		t.Errorf("%d missed", rec.Systems[0].Missed)
	}
	h.run(hz50, 0)
	h.wantRan("1002:30ms")
}

func TestAPanicDoesNotLeakItsDeltas(t *testing.T) {
	h := newHarness(t)
	h.add(scaledEvery("a", 60*ms, at(func(n *Now) { h.times(n); panic("each time") }, Update)))
	h.add(Spec[*Now]{Name: "b", Ask: at(h.times, Update)})
	h.Rescale(2, 1)
	h.run(hz50, 0, 0, 0)
	h.wantRan("1:20ms/40ms", "1:20ms/40ms", "2:20ms/40ms", "3:40ms/80ms", "3:20ms/40ms")
}
