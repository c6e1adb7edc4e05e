package loop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

// run steps on a timeline, with so many ticks dropped before each.
func (h *harness) run(t Timeline, dropped ...uint64) *Record {
	h.tb.Helper()
	h.Follow(t)
	h.ran = nil
	var rec *Record
	for _, d := range dropped {
		h.tick++
		in := t.Input(h.tick)
		in.Dropped = d
		var err error
		if rec, err = h.Step(in); err != nil {
			h.tb.Fatal(err)
		}
	}
	return rec
}

// deltas is a system that records the times of its runs and their deltas.
func (h *harness) deltas(n *Now) {
	h.ran = append(h.ran, fmt.Sprintf("%d:%v", n.Tick, n.Delta))
}

func every(name string, d time.Duration, ask func(Stage) func(*Now)) Spec[*Now] {
	return Spec[*Now]{Name: name, Periodic: true, Period: d, Ask: ask}
}

// hz50 has ticks of exactly 20 ms, and fixed steps of 10 ms.
var hz50 = Timeline{Rate: Hz(50), Fixed: Hz(100)}

func TestEveryRunsOnceWhenDueWithTheTimeSinceItsLastRun(t *testing.T) {
	h := newHarness(t)
	h.add(every("a", 50*ms, at(h.deltas, Update)))
	h.run(hz50, make([]uint64, 9)...)
	// At once, then in the first ticks after 50, 100 and 150 ms.
	h.wantRan("1:20ms", "4:60ms", "6:40ms", "9:60ms")
}

func TestEveryCountsDroppedTicks(t *testing.T) {
	h := newHarness(t)
	h.add(every("a", 50*ms, at(h.deltas, Update)))
	h.add(every("zero", 0, at(h.deltas, PreUpdate)))
	h.run(hz50, 0, 0, 7, 0)
	h.wantRan("1:20ms", "1:20ms", "2:20ms", "3:160ms", "3:180ms", "4:20ms", "4:20ms")
	// One call for the stall, and the phase is unchanged: 70, 120 … 220, 270 ms.
	h.run(hz50, 0, 0, 0)
	h.wantRan("5:20ms", "6:20ms", "7:20ms", "7:60ms")
}

func TestCatchUpRunsUpToNTimesAndCountsMissedPeriods(t *testing.T) {
	h := newHarness(t)
	a := every("a", 8*ms, at(h.deltas, Update))
	a.CatchUp = 5
	h.add(a)
	h.run(hz50, 0)
	h.wantRan() // The first period must pass first.
	h.run(hz50, 0, 0)
	h.wantRan("2:8ms", "2:8ms", "3:8ms", "3:8ms", "3:8ms")
	rec := h.run(hz50, 4) // 100 ms: 12.5 periods.
	h.wantRan("4:8ms", "4:8ms", "4:8ms", "4:8ms", "4:8ms")
	if c := rec.Systems[0]; c.Runs != 5 || c.Missed != 7 {
		t.Fatalf("%d runs and %d missed, want 5 and 7", c.Runs, c.Missed)
	}
	h.run(hz50, 0)
	h.wantRan("5:8ms", "5:8ms", "5:8ms") // The remaining half period counts.
}

// A turn that is missed is one, in however many stages the system would have run.
func TestAMissedTurnCountsOnce(t *testing.T) {
	h := newHarness(t)
	a := every("a", 10*ms, at(h.deltas, PreUpdate, Update, PostLateUpdate))
	a.CatchUp = 1
	h.add(a)
	missed := 0
	// Two periods have passed, of which one is caught up.
	for _, s := range h.run(hz50, 0, 0).Systems {
		missed += s.Missed
	}
	if h.wantRan("2:10ms", "2:10ms", "2:10ms"); missed != 1 {
		t.Fatalf("%d turns were missed, want 1", missed)
	}
}

func TestCatchUpContinuesAfterAPanic(t *testing.T) {
	h := newHarness(t)
	a := every("a", 5*ms, at(func(n *Now) {
		h.deltas(n)
		if len(h.ran) == 2 {
			panic("once")
		}
	}, Update))
	a.CatchUp = 5
	h.add(a)
	h.add(Spec[*Now]{Name: "b"})
	rec := h.run(hz50, 0, 0)
	h.wantRan("b", "2:5ms", "2:5ms", "2:5ms", "2:5ms", "b")
	if rec.Systems[0].Missed != 0 || rec.Systems[0].Runs != 4 {
		t.Fatalf("%+v", rec.Systems[0])
	}
}

// In FixedUpdate a period counts steps, whatever the number of steps per tick.
func TestEveryInFixedUpdateCountsSteps(t *testing.T) {
	h := newHarness(t)
	var steps []string
	note := func(n *Now) { steps = append(steps, fmt.Sprintf("%d:%v", n.FixedStep, n.Delta)) }
	h.add(every("a", 30*ms, at(note, FixedUpdate)))
	late := every("b", 4*ms, at(func(n *Now) { note(n); h.note(n) }, FixedUpdate))
	late.CatchUp = 2
	b := h.add(late)
	h.run(hz50, 0, 0)
	if want := []string{"1:10ms", "1:4ms", "1:4ms", "2:4ms", "2:4ms", "3:4ms", "3:4ms", "4:30ms", "4:4ms", "4:4ms"}; !slices.Equal(steps, want) {
		t.Fatalf("steps %v, want %v", steps, want)
	}
	b.Remove()
	steps = nil
	// Five dropped ticks are ten steps that never run: they count as time.
	h.run(hz50, 5, 0)
	if want := []string{"5:110ms", "6:10ms"}; !slices.Equal(steps, want) {
		t.Fatalf("steps %v, want %v", steps, want)
	}
	steps = nil
	h.run(hz50, 1, 1) // One dropped tick counts too, as two steps.
	if want := []string{"9:50ms", "10:10ms", "11:30ms"}; !slices.Equal(steps, want) {
		t.Fatalf("steps %v, want %v", steps, want)
	}
	// No step, no call.
	steps = nil
	h2 := newHarness(t)
	h2.add(every("a", 0, at(note, FixedUpdate)))
	h2.run(Timeline{Rate: Hz(100), Fixed: Hz(50)}, 0, 0, 0, 0)
	if want := []string{"1:20ms", "2:20ms"}; !slices.Equal(steps, want) {
		t.Fatalf("steps %v, want %v", steps, want)
	}
}

func TestPeriodicSystemsKeepTheirPlaceInTheOrder(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "last", Priority: Last})
	for i := range 4 {
		h.add(every(fmt.Sprint("p", i), time.Duration(i)*20*ms, at(h.note, Update)))
		h.add(Spec[*Now]{Name: fmt.Sprint("n", i)})
	}
	first := every("first", 40*ms, at(h.note, Update))
	first.Before = []string{"p1"}
	h.add(first)
	h.run(hz50, 0)
	h.wantRan("p0", "n0", "first", "p1", "n1", "p2", "n2", "p3", "n3", "last")
	h.run(hz50, 0)
	h.wantRan("p0", "n0", "p1", "n1", "n2", "n3", "last")
	h.run(hz50, 0)
	h.wantRan("p0", "n0", "first", "p1", "n1", "p2", "n2", "n3", "last")
}

func TestChangeKeepsTheTimer(t *testing.T) {
	h := newHarness(t)
	a := h.add(every("a", 100*ms, at(h.deltas, Update, PreUpdate, FixedUpdate)))
	change := func(edit func(*Spec[*Now])) {
		spec := a.Spec()
		edit(&spec)
		if err := a.Change(spec); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s *Spec[*Now]) { s.Stages = []Stage{Update} })
	h.run(hz50, 0, 0, 0, 0)
	h.wantRan("1:20ms")
	// 60 ms have passed: a period of 80 ms is over one tick later.
	change(func(s *Spec[*Now]) { s.Period = 80 * ms; s.Priority = Late })
	h.run(hz50, 0)
	h.wantRan("5:80ms")
	// Another stage: the 40 ms until its next tick count.
	h.run(hz50, 0)
	change(func(s *Spec[*Now]) { s.Stages = []Stage{PreUpdate} })
	h.run(hz50, 0, 0, 0)
	h.wantRan("9:80ms")
	// In steps too: 8 steps of 10 ms.
	h.run(hz50, 0, 0)
	change(func(s *Spec[*Now]) { s.Stages = []Stage{FixedUpdate} })
	h.run(hz50, 0, 0)
	h.wantRan("13:80ms")
	// A period that is over already: one call at once.
	h.run(hz50, 0, 0)
	change(func(s *Spec[*Now]) { s.Stages = []Stage{Update}; s.Period, s.CatchUp = 2*ms, 5 })
	rec := h.run(hz50, 0)
	h.wantRan("16:2ms")
	if rec.Systems[0].Missed != 0 {
		t.Fatalf("%d missed", rec.Systems[0].Missed)
	}
	// Without a period it runs in every tick. A new period counts from the last run.
	change(func(s *Spec[*Now]) { s.Period, s.CatchUp = 0, 0 })
	h.run(hz50, 0, 3)
	h.wantRan("17:20ms", "18:80ms")
	change(func(s *Spec[*Now]) { s.Period = 40 * ms })
	h.run(hz50, 0, 0, 0)
	h.wantRan("20:40ms")
}

// A period that a change ends in the past tick has ended without a call: its phase restarts with
// the late call.
func TestAPeriodEndedByAChangeRestarts(t *testing.T) {
	h := newHarness(t)
	a := h.add(every("a", time.Second, at(h.deltas, Update)))
	h.run(hz50, 0, 0, 0, 0)
	h.set(a, func(s *Spec[*Now]) { s.Period = 60 * ms }) // 60 ms have passed at 80 ms.
	h.run(hz50, 0, 0, 0, 0)
	h.wantRan("5:80ms", "8:60ms")
}

func TestANewPeriodStartsAtTheLastTick(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a", Ask: at(h.deltas, Update)})
	h.run(hz50, 0, 0)
	spec := a.Spec()
	spec.Periodic, spec.Period = true, 60*ms
	if err := a.Change(spec); err != nil {
		t.Fatal(err)
	}
	h.run(hz50, 0, 0, 0, 0)
	h.wantRan("5:60ms")
}

// Without a timeline, as on a client, time is the sum of the frames.
func TestWithoutATimelineTimeIsTheSumOfDeltas(t *testing.T) {
	h := newHarness(t)
	h.add(every("a", 50*ms, at(h.deltas, Update)))
	for i, d := range []time.Duration{16 * ms, 30 * ms, 19 * ms, 1 * ms, 100 * ms} {
		if _, err := h.Step(Input{Tick: uint64(10 * i), Delta: d}); err != nil {
			t.Fatal(err)
		}
	}
	h.wantRan("0:16ms", "30:50ms", "40:100ms")
}

func TestBadPeriodsAreRefused(t *testing.T) {
	h := newHarness(t)
	ask := at(h.note, Update)
	for _, s := range []Spec[*Now]{
		every("a", -1, ask),
		{Name: "a", Ask: ask, CatchUp: 1},
		{Name: "a", Ask: ask, Periodic: true, Period: ms, CatchUp: MaxCatchUp + 1},
		{Name: "a", Ask: ask, Periodic: true, Period: ms, CatchUp: -1},
		{Name: "a", Ask: ask, Periodic: true, Once: true},
		{Name: "a", Ask: ask, Stages: []Stage{8}},
		{Name: "a", Ask: ask, IsGroup: true},
		{Name: "a", Periodic: true, IsGroup: true},
	} {
		_, err := h.Add(s)
		wantNames(t, err, "a")
	}
}

// For any rates, stalls and periods: calls plus missed calls equal the periods that have passed,
// and the deltas of Every add up to the time.
func TestPeriodsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rates := rapid.SampledFrom([]Rate{Hz(1), Hz(20), Hz(60), {30000, 1001}, Hz(144), Hz(1000)})
		line := Timeline{Rate: rates.Draw(rt, "rate"), Fixed: rates.Draw(rt, "fixed")}
		h := newHarness(t)
		h.Follow(line)
		period := time.Duration(rapid.Int64Range(1, int64(3*time.Second)).Draw(rt, "period"))
		stage := rapid.SampledFrom([]Stage{FixedUpdate, Update}).Draw(rt, "stage")
		var sum, elapsed time.Duration
		calls, missed := 0, 0
		h.add(every("every", period, at(func(n *Now) { sum += n.Delta }, stage)))
		caught := every("catch", period, at(func(n *Now) { calls++ }, stage))
		caught.CatchUp = rapid.IntRange(1, 6).Draw(rt, "n")
		h.add(caught)
		var base, start, last time.Duration
		ran := false
		h.add(Spec[*Now]{Name: "probe", Ask: at(func(n *Now) {
			now := h.flows[kindOf(stage)].now
			if !ran {
				ran, start = true, now
				sum -= n.Delta // No time precedes the first call.
			}
			elapsed, last = now-start, now
		}, stage)})
		h.add(Spec[*Now]{Name: "base", Ask: at(func(*Now) {
			if h.count == 1 {
				base = h.flows[kindOf(stage)].now // CatchUp counts from here.
			}
		}, Initialization)})
		h.tick = rapid.SampledFrom([]uint64{0, 1 << 40}).Draw(rt, "from")
		for range rapid.IntRange(1, 200).Draw(rt, "ticks") {
			h.tick++
			in := line.Input(h.tick)
			in.FixedSteps = min(in.FixedSteps, 50)
			in.Dropped = rapid.SampledFrom([]uint64{0, 0, 0, 0, 1, 30}).Draw(rt, "dropped")
			before := last
			rec, err := h.Step(in)
			if err != nil {
				rt.Fatal(err)
			}
			for _, c := range rec.Systems {
				missed += c.Missed
			}
			if last < before {
				rt.Fatalf("time moved back from %v to %v", before, last)
			}
		}
		if dueCalls := int((last - base) / period); ran && calls+missed != dueCalls {
			rt.Fatalf("%d calls and %d missed in %v, want %d", calls, missed, elapsed, dueCalls)
		}
		if ran && (sum > elapsed || elapsed-sum >= period && elapsed-sum >= 2*time.Second) {
			rt.Fatalf("the deltas add up to %v in %v", sum, elapsed)
		}
	})
}

func TestADisabledSystemContinuesItsPeriod(t *testing.T) {
	h := newHarness(t)
	a := h.add(every("a", 60*ms, at(h.deltas, Update)))
	c := every("c", 50*ms, at(h.deltas, PreUpdate))
	c.CatchUp = 5
	b := h.add(c)
	set := func(disabled bool) {
		for _, s := range []*System[*Now]{a, b} {
			spec := s.Spec()
			spec.Disabled = disabled
			if err := s.Change(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.run(hz50, 0)
	h.wantRan("1:20ms")
	set(true)
	h.run(hz50, make([]uint64, 9)...)
	h.wantRan()
	set(false)
	// As if tick 11 were tick 2: 60 and 50 ms after the first.
	rec := h.run(hz50, 0, 0, 0, 0)
	h.wantRan("13:50ms", "13:60ms")
	for _, s := range rec.Systems {
		if s.Missed > 0 {
			t.Fatalf("%+v", s)
		}
	}
}
