package loop

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStepOf50EmptySystemsAllocatesNothing(t *testing.T) {
	h := newHarness(t)
	empty := func(*Now) {}
	for i := range 50 {
		h.add(Spec[*Now]{Name: fmt.Sprint(i), Ask: at(empty, Stages()[i%NumStages], FixedUpdate), Once: i%2 == 0})
	}
	h.step()
	in := Timeline{Rate: Hz(60), Fixed: Hz(180)}.Input(2)
	allocs := testing.AllocsPerRun(1000, func() {
		if _, err := h.Step(in); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations per tick, want 0", allocs)
	}
}

func TestAPanicSkipsOnlyItsSystem(t *testing.T) {
	h := newHarness(t)
	var nilMap map[string]int
	h.add(Spec[*Now]{Name: "a"})
	h.add(Spec[*Now]{Name: "b", Ask: at(func(*Now) { nilMap["x"] = 1 }, Update)})
	h.add(Spec[*Now]{Name: "c", Ask: at(func(*Now) { panic("twice") }, PreUpdate, Update)})
	h.add(Spec[*Now]{Name: "d"})
	for tick := range 2 {
		rec, err := h.stepRecord()
		if err != nil {
			t.Fatal(err)
		}
		h.wantRan("a", "d")
		var who []string
		for i, p := range rec.Panics {
			who = append(who, fmt.Sprint(p.Stage, " ", p.System, " ", p.Value))
			if p.First != (tick == 0 && i < 2) {
				t.Errorf("tick %d: panic %d is the first of its episode: %v", tick, i, p.First)
			}
			if p.First && !strings.Contains(string(p.Stack), "step_test.go") {
				t.Errorf("the stack of %s lacks the panicking function: %s", p.System, p.Stack)
			}
		}
		want := []string{"PreUpdate c twice", "Update b assignment to entry in nil map", "Update c twice"}
		if !slices.Equal(who, want) {
			t.Fatalf("panics %q, want %q", who, want)
		}
	}
}

func TestThePanicOfACriticalSystemClosesTheLoop(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "flush", Critical: true, Ask: at(func(*Now) { panic(io.ErrUnexpectedEOF) }, Update)})
	h.add(Spec[*Now]{Name: "a", Ask: at(h.note, Update, PostLateUpdate)})
	_, err := h.stepRecord()
	var pe *PanicError
	if !errors.As(err, &pe) || pe.Panic.System != "flush" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("error %v, want a PanicError of flush that wraps the value", err)
	}
	h.wantRan()
	if h.now.Stage != 0 || h.now.System != "" {
		t.Fatalf("the call is still valid: %+v", *h.now)
	}
	if _, again := h.stepRecord(); !errors.Is(again, err) || len(h.ran) != 0 {
		t.Fatalf("the closed loop ran %v with error %v", h.ran, again)
	}
}

func TestAPanicOfAskIsIsolated(t *testing.T) {
	h := newHarness(t)
	bad := func(s Stage) func(*Now) {
		if s == PreUpdate {
			panic("no answer")
		}
		return at(h.note, Update)(s)
	}
	h.add(Spec[*Now]{Name: "bad", Ask: bad})
	if err := h.Check(); err == nil {
		t.Fatal("Check hides the panic of an Ask")
	}
	h.add(Spec[*Now]{Name: "late", Ask: bad})
	rec, err := h.stepRecord()
	if err != nil || len(rec.Panics) != 1 || rec.Panics[0].System != "late" || rec.Panics[0].Stage != PreUpdate {
		t.Fatalf("error %v, panics %v", err, rec.Panics)
	}
	h.wantRan("bad", "late")
}

// A room does not continue without a critical system, and the first failure is the error.
func TestThePanicOfACriticalSystemsAskClosesTheLoop(t *testing.T) {
	h := newHarness(t)
	for _, name := range []string{"first", "second"} {
		h.add(Spec[*Now]{Name: name, Critical: true, Ask: func(Stage) func(*Now) { panic(name) }, Stages: []Stage{Update}})
	}
	h.add(Spec[*Now]{Name: "a"})
	_, err := h.stepRecord()
	var pe *PanicError
	if !errors.As(err, &pe) || pe.Panic.System != "first" || pe.Panic.Stage != Update || !pe.Panic.First || pe.Panic.Stack == nil || !errors.Is(h.Check(), err) {
		t.Fatalf("error %v, and then %v", err, h.Check())
	}
	h.wantRan()
}

func TestPanicsBeyondTheLimitAreCounted(t *testing.T) {
	h := newHarness(t)
	for i := range MaxPanics + 7 {
		h.add(Spec[*Now]{Name: fmt.Sprint(i), Ask: at(func(*Now) { panic("again") }, FixedUpdate)})
	}
	rec, err := h.Step(at60.Input(1))
	if err != nil || len(rec.Panics) != MaxPanics || rec.MorePanics != 7 {
		t.Fatalf("error %v, %d panics and %d more", err, len(rec.Panics), rec.MorePanics)
	}
	for i := range MaxPanics + 6 {
		h.names[fmt.Sprint(i)].Remove()
	}
	if rec, err = h.Step(at60.Input(2)); err != nil || len(rec.Panics) != 1 || rec.MorePanics != 0 {
		t.Fatalf("the next tick reports %d panics and %d more, error %v", len(rec.Panics), rec.MorePanics, err)
	}
}

func TestNowHasTheFactsOfEachStage(t *testing.T) {
	h := newHarness(t)
	in := Timeline{Rate: Hz(30), Fixed: Hz(75)}.Input(11) // steps 26 and 27, and half a step
	in.Wall = time.Unix(1, 2)
	var seen []string
	see := func(n *Now) {
		seen = append(seen, fmt.Sprintf("%d %v %s %v %v %d %g %d", n.Tick, n.Stage, n.System, n.GameTime, n.Delta, n.FixedStep, n.Fraction, n.Wall.UnixNano()))
	}
	h.add(Spec[*Now]{Name: "a", Ask: at(see, PreUpdate, FixedUpdate, EarlyUpdate)})
	h.add(Spec[*Now]{Name: "b", Ask: at(see, FixedUpdate), Once: true})
	if _, err := h.Step(in); err != nil {
		t.Fatal(err)
	}
	const rest = " 0.5 1000000002"
	want := []string{
		"11 EarlyUpdate a 366.666666ms 33.333333ms 25" + rest,
		"11 FixedUpdate b 366.666666ms 13.333333ms 26" + rest,
		"11 FixedUpdate a 366.666666ms 13.333333ms 26" + rest,
		"11 FixedUpdate a 366.666666ms 13.333333ms 27" + rest,
		"11 PreUpdate a 366.666666ms 33.333333ms 27" + rest,
	}
	if !slices.Equal(seen, want) {
		t.Fatalf("calls saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if h.now.Stage != 0 || h.now.System != "" {
		t.Fatalf("outside of a call: %+v", *h.now)
	}
}

func TestOnceRunsOnlyBeforeAFixedStep(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "step", Place: Head, Ask: at(h.note, FixedUpdate)})
	h.add(Spec[*Now]{Name: "once", Once: true, Place: Tail, Ask: at(h.note, FixedUpdate, Update)})
	for steps, want := range [][]string{{"once"}, {"once", "step", "once"}, {"once", "step", "step", "once"}} {
		in := at60.Input(1)
		in.FixedSteps = steps
		h.ran = nil
		if _, err := h.Step(in); err != nil {
			t.Fatal(err)
		}
		h.wantRan(want...)
	}
}

func TestTheTimesOfARecordAddUp(t *testing.T) {
	h := newHarness(t)
	spend := func(d time.Duration) func(*Now) { return func(*Now) { h.time += d } }
	h.add(Spec[*Now]{Name: "a", Ask: at(spend(3*time.Millisecond), FixedUpdate, Update)})
	h.add(Spec[*Now]{Name: "b", Ask: at(spend(2*time.Millisecond), Update)})
	h.step()
	in := Timeline{Rate: Hz(60), Fixed: Hz(120)}.Input(9)
	in.Start, in.Deadline, in.Dropped = 70, 50, 3
	rec, err := h.Step(in)
	if err != nil {
		t.Fatal(err)
	}
	const us, ms = time.Microsecond, time.Millisecond // a clock read takes 1 µs
	want := Record{
		Tick: 9, Start: 70, Deadline: 50, Dropped: 3, FixedSteps: 2, Duration: 11*ms + 4*us,
		Stages: [NumStages]time.Duration{2: 6*ms + 2*us, 4: 5*ms + 2*us},
		Systems: []SystemCost{
			{"a", FixedUpdate, 6*ms + 2*us, 2, 0}, {"a", Update, 3*ms + us, 1, 0}, {"b", Update, 2*ms + us, 1, 0},
		},
	}
	if got := fmt.Sprintf("%+v", *rec); got != fmt.Sprintf("%+v", want) {
		t.Fatalf("record\n%s\nwant\n%+v", got, want)
	}
}

// The time of a condition that returns false counts for the stage only.
func TestTheTimeOfAConditionIsNotCharged(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "refused", RunIf: func(*Now) bool { h.time += time.Second; return false }})
	h.add(Spec[*Now]{Name: "next"})
	rec, err := h.stepRecord()
	if err != nil {
		t.Fatal(err)
	}
	h.wantRan("next")
	if refused, next := rec.Systems[0].Cost, rec.Systems[1].Cost; refused != 0 || next != time.Microsecond {
		t.Errorf("the skipped system took %v and the next one %v, want 0 and a clock read, 1µs", refused, next)
	}
	if rec.Stages[Update.index()] < time.Second {
		t.Errorf("the stage took %v, want at least 1s of the condition", rec.Stages[Update.index()])
	}
}

func TestStepFromWithinASystemIsRefused(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "a", Ask: at(func(*Now) { _, _ = h.Step(Input{}) }, Update)})
	rec, err := h.stepRecord()
	if err != nil || len(rec.Panics) != 1 {
		t.Fatalf("error %v, panics %v", err, rec.Panics)
	}
}

func TestCheckWithinATickHasNoEffect(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) {
		h.note(n)
		_, _ = h.try(Spec[*Now]{Name: "b"})
		if err := h.Check(); err != nil {
			t.Error(err)
		}
	}, PreUpdate)})
	h.step()
	h.wantRan("a")
	h.step()
	h.wantRan("a", "b")
}
