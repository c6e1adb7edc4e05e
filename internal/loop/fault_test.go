package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// faulty adds a system that panics in the ticks for which bad returns true.
func (h *harness) faulty(name string, bad func(tick uint64) bool) *System[*Now] {
	return h.add(Spec[*Now]{Name: name, Ask: at(func(n *Now) {
		h.note(n)
		if bad(n.Tick) {
			panic(fmt.Sprint("tick ", n.Tick))
		}
	}, Update)})
}

func TestConsecutivePanicsCauseAQuarantineWithBackOff(t *testing.T) {
	h := newHarness(t)
	h.faulty("bad", func(tick uint64) bool { return tick <= 600 })
	h.add(Spec[*Now]{Name: "good"})
	var ran, quarantines, released []uint64
	first := 0
	for tick := uint64(1); tick <= 2000; tick++ {
		rec, err := h.stepRecord()
		if err != nil || !slices.Contains(h.ran, "good") {
			t.Fatalf("tick %d: ran %v, error %v", tick, h.ran, err)
		}
		if h.ran[0] == "bad" && tick <= 700 {
			ran = append(ran, tick)
		}
		for _, p := range rec.Panics {
			if p.First {
				first++
			}
			if p.First != (p.Stack != nil) {
				t.Error("the first panic of an episode has a stack, and no other")
			}
			if p.Quarantine > 0 {
				quarantines = append(quarantines, p.Quarantine)
			}
		}
		for range rec.Released {
			released = append(released, tick)
		}
		if n := h.Quarantined(); n != len(quarantines)-len(released) {
			t.Fatalf("tick %d: %d quarantined", tick, n)
		}
	}
	// Three panics, 64 ticks of quarantine, three, 128, three, 256, three, 512.
	if want := []uint64{1, 2, 3, 68, 69, 70, 199, 200, 201, 458, 459, 460}; !slices.Equal(ran, want) {
		t.Errorf("ran at %v, want %v", ran, want)
	}
	if want := []uint64{64, 128, 256, 512}; !slices.Equal(quarantines, want) {
		t.Errorf("quarantines %v, want %v", quarantines, want)
	}
	if want := []uint64{68, 199, 458, 973}; !slices.Equal(released, want) {
		t.Errorf("released at %v, want %v", released, want)
	}
	if first != 1 {
		t.Errorf("%d panics begin an episode, want 1", first)
	}
}

func TestAnEpisodeEndsAfterCalmTicks(t *testing.T) {
	h := newHarness(t)
	h.faulty("bad", func(tick uint64) bool { return tick <= 3 || tick == 700 || tick > 1400 })
	var news, quarantines []uint64
	for range 1403 {
		rec, err := h.stepRecord()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rec.Panics {
			if p.First {
				news = append(news, rec.Tick)
			}
			if p.Quarantine > 0 {
				quarantines = append(quarantines, p.Quarantine)
			}
		}
	}
	// It was released at 68: 700 is more than 600 ticks later, and 1401 than 700.
	if want := []uint64{1, 700, 1401}; !slices.Equal(news, want) || !slices.Equal(quarantines, []uint64{64, 64}) {
		t.Fatalf("episodes began at %v, want %v; quarantines %v", news, want, quarantines)
	}
}

// A system that keeps panicking runs ever more rarely, up to the longest quarantine. The
// quarantines, though longer than calmTicks, do not end the episode.
func TestQuarantinesGrowUpToTheMaximum(t *testing.T) {
	h := newHarness(t)
	h.faulty("bad", func(uint64) bool { return true })
	var quarantines []uint64
	for range 3 * maxQuarantine {
		rec, err := h.stepRecord()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rec.Panics {
			if p.Quarantine > 0 {
				quarantines = append(quarantines, p.Quarantine)
			}
			if p.First && rec.Tick > 1 {
				t.Fatalf("the panic of tick %d begins an episode", rec.Tick)
			}
		}
	}
	if want := []uint64{64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096}; !slices.Equal(quarantines, want) {
		t.Fatalf("quarantines %v, want %v", quarantines, want)
	}
}

// Panics more than calmTicks apart are not consecutive, although no call between them succeeded.
func TestPanicsFarApartAreNotConsecutive(t *testing.T) {
	h := newHarness(t)
	h.Follow(at60)
	h.add(every("bad", at60.GameTime(calmTicks+2), at(func(n *Now) { h.note(n); panic("always") }, Update)))
	calls := 0
	for range quarantineAfter * (calmTicks + 2) {
		if calls += len(h.step()); h.Quarantined() != 0 {
			t.Fatalf("quarantined after %d calls", calls)
		}
	}
	if calls != quarantineAfter {
		t.Fatalf("%d calls panicked, want %d", calls, quarantineAfter)
	}
}

func TestASuccessfulCallResetsTheCountOfPanics(t *testing.T) {
	h := newHarness(t)
	h.faulty("bad", func(tick uint64) bool { return tick%3 != 0 })
	for range 30 {
		h.step()
		h.wantRan("bad")
	}
	if h.Quarantined() != 0 {
		t.Fatal("quarantined although every third call succeeds")
	}
}

func TestMissedCatchUpCallsOfAQuarantineAreCounted(t *testing.T) {
	h := newHarness(t)
	s := every("bad", 10*ms, at(func(*Now) { panic("no") }, Update))
	s.CatchUp = 2
	h.add(s)
	rec := h.run(hz50, 0, 0, 0) // 2 calls, then 1: the third panic.
	if c := rec.Systems[0]; c.Runs != 1 || c.Missed != 1 || h.Quarantined() != 1 {
		t.Fatalf("%+v, %d quarantined", c, h.Quarantined())
	}
	if c := h.run(hz50, 0).Systems[0]; c.Runs != 0 || c.Missed != 2 {
		t.Fatalf("in quarantine: %+v", c)
	}
}

func TestARemovedSystemLeavesQuarantine(t *testing.T) {
	h := newHarness(t)
	bad := h.faulty("bad", func(uint64) bool { return true })
	for range 3 {
		h.step()
	}
	if h.Quarantined() != 1 {
		t.Fatal("not quarantined")
	}
	bad.Remove()
	h.faulty("bad", func(uint64) bool { return false })
	h.step()
	h.wantRan("bad")
	if h.Quarantined() != 0 {
		t.Fatal("still quarantined")
	}
}

func TestBuiltInsAreNeverQuarantined(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "timers", BuiltIn: "nothing would wake", Ask: at(func(n *Now) { h.note(n); panic("a timer") }, Update)})
	for range 10 {
		rec, err := h.stepRecord()
		if err != nil || len(rec.Panics) != 1 || !rec.Panics[0].First {
			t.Fatalf("error %v, panics %v", err, rec.Panics)
		}
		h.wantRan("timers")
	}
}

// exits runs fn on a goroutine of its own and reports whether it returned.
func exits(fn func()) (returned bool) {
	done := make(chan bool)
	go func() {
		ok := false
		defer func() { done <- ok }()
		fn()
		ok = true
	}()
	return <-done
}

func TestGoexitInASystemClosesTheLoopByName(t *testing.T) {
	ask := func(fn func(*Now)) func(Stage) func(*Now) { return at(fn, PreUpdate) }
	exit := func(*Now) { runtime.Goexit() }
	for name, spec := range map[string]Spec[*Now]{
		"call":      {Ask: ask(exit)},
		"period":    {Ask: ask(exit), Periodic: true, Period: 20 * ms},
		"condition": {Ask: ask(func(*Now) {}), RunIf: func(*Now) bool { runtime.Goexit(); return true }},
		"ask":       {Ask: func(s Stage) func(*Now) { runtime.Goexit(); return nil }, Stages: []Stage{PreUpdate}},
		"onremove": {Ask: ask(func(*Now) {}), OnRemove: func() { runtime.Goexit() }, Context: func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			spec.Name = "leaver"
			h.add(spec)
			h.add(Spec[*Now]{Name: "next", Ask: at(h.note, PreUpdate)})
			if exits(func() { h.step(); h.step() }) {
				t.Fatal("Step returned")
			}
			var exit *ExitError
			if err := h.Err(); !errors.As(err, &exit) || exit.System != "leaver" || exit.Stage != PreUpdate && name != "onremove" {
				t.Fatalf("error %v does not contain the system and the stage", err)
			}
			if h.now.Stage != 0 || h.now.System != "" || slices.Contains(h.ran, "next") {
				t.Fatalf("the tick continued: %+v, ran %v", *h.now, h.ran)
			}
			if _, err := h.stepRecord(); !errors.As(err, &exit) {
				t.Fatalf("the next Step says %v", err)
			}
		})
	}
}

func TestAnEndedContextRemovesAtInitialization(t *testing.T) {
	h := newHarness(t)
	ctx, cancel := context.WithCancel(context.Background())
	told := 0
	a := h.add(Spec[*Now]{Name: "a", Context: ctx, OnRemove: func() { told++ }})
	h.add(Spec[*Now]{Name: "stop", Ask: at(func(n *Now) {
		if n.Tick == 2 {
			cancel() // In a tick, which runs to its end.
		}
	}, EarlyUpdate)})
	h.step()
	h.wantRan("a")
	h.step()
	h.wantRan("a")
	h.step()
	h.wantRan()
	if !a.Removed() || told != 1 {
		t.Fatalf("removed %v, told %d times", a.Removed(), told)
	}
	// Between ticks, before the first run, and with a context that has ended.
	ctx, cancel = context.WithCancel(context.Background())
	h.add(Spec[*Now]{Name: "a", Context: ctx})
	cancel()
	h.step()
	h.wantRan()
	h.add(Spec[*Now]{Name: "a"}) // The name is free again.
	h.step()
	h.wantRan("a")
}

func TestAContextThatHasEndedAllowsNoCall(t *testing.T) {
	h := newHarness(t)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	a := h.add(Spec[*Now]{Name: "a"})
	h.step()
	spec := a.Spec()
	spec.Context = ended
	if err := a.Change(spec); err != nil {
		t.Fatal(err)
	}
	rec, err := h.stepRecord()
	h.wantRan()
	if err != nil || !a.Removed() || !slices.Equal(rec.Cancelled, []string{"a"}) {
		t.Fatalf("removed %v, cancelled %v, error %v", a.Removed(), rec.Cancelled, err)
	}
}

func TestRunIfRunsRightBeforeTheCall(t *testing.T) {
	h := newHarness(t)
	open := false
	h.add(Spec[*Now]{Name: "opens", Ask: at(func(n *Now) { open = n.Tick == 2 }, Update)})
	h.add(Spec[*Now]{Name: "a", RunIf: func(n *Now) bool {
		if n.System != "a" || n.Stage == 0 {
			t.Errorf("asked as %q at %v", n.System, n.Stage)
		}
		return open
	}, Ask: at(h.note, PreUpdate, Update)})
	slow := every("slow", 32*time.Millisecond, at(h.deltas, Update))
	slow.RunIf = func(*Now) bool { return open }
	h.add(slow)
	h.step()
	h.wantRan()
	h.step()
	h.wantRan("a")
	h.step()
	h.wantRan("a") // In PreUpdate: the condition was still true.
}

func TestAPanicOfAConditionIsFalseAndQuarantines(t *testing.T) {
	h := newHarness(t)
	asked := 0
	h.add(Spec[*Now]{Name: "a", RunIf: func(*Now) bool { asked++; panic("no answer") }})
	for range 10 {
		h.step()
		h.wantRan()
	}
	if asked != quarantineAfter || h.Quarantined() != 1 {
		t.Fatalf("asked %d times, %d quarantined", asked, h.Quarantined())
	}
}

func TestConditionsAndPeriodsAllocateNothing(t *testing.T) {
	h := newHarness(t)
	empty := func(*Now) {}
	yes := func(*Now) bool { return true }
	h.add(Spec[*Now]{Name: "g", IsGroup: true, RunIf: yes})
	for i := range 50 {
		s := every(fmt.Sprint(i), time.Duration(i)*10*ms, at(empty, Stages()[i%NumStages], FixedUpdate))
		s.Group, s.RunIf = "g", yes
		h.add(s)
	}
	h.Follow(hz50)
	h.step()
	allocs := testing.AllocsPerRun(1000, func() {
		h.tick++
		if _, err := h.Step(hz50.Input(h.tick)); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations per tick, want 0", allocs)
	}
}

// The record drops the stacks and values of a tick's panics with the next tick.
func TestTheRecordHoldsNoPanicsOfEarlierTicks(t *testing.T) {
	h := newHarness(t)
	h.faulty("bad", func(tick uint64) bool { return tick == 1 })
	if rec, err := h.stepRecord(); err != nil || len(rec.Panics) != 1 {
		t.Fatal(err)
	}
	rec, err := h.stepRecord()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rec.Panics[:cap(rec.Panics)] {
		if p.Stack != nil || p.Value != nil {
			t.Errorf("it holds %v", p.Value)
		}
	}
}
