package loop

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// seeds returns the number of cases for a property: few by default, NETLOOP_SEEDS in the long
// run.
func seeds(tb testing.TB, few int) int {
	tb.Helper()
	text := os.Getenv("NETLOOP_SEEDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("NETLOOP_SEEDS=%q: want a positive number", text)
	}
	return n
}

// at60 runs one fixed step per tick.
var at60 = Timeline{Rate: Hz(60), Fixed: Hz(60)}

// harness is a loop with systems that record their runs.
type harness struct {
	*Loop[*Now]
	tb   testing.TB
	now  *Now
	tick uint64
	time time.Duration // advances by 1 µs per clock read
	ran  []string
}

func newHarness(tb testing.TB) *harness {
	h := &harness{tb: tb, now: new(Now)}
	h.Loop = New(h.now, h.now, func() time.Duration {
		h.time += time.Microsecond
		return h.time
	})
	return h
}

// at returns the Ask of a system that runs fn in the stages.
func at(fn func(*Now), stages ...Stage) func(Stage) func(*Now) {
	return func(s Stage) func(*Now) {
		if slices.Contains(stages, s) {
			return fn
		}
		return nil
	}
}

// note is a system that records its name.
func (h *harness) note(n *Now) { h.ran = append(h.ran, n.System) }

// add registers a system; without an Ask it records its runs in Update.
func (h *harness) add(s Spec[*Now]) *System[*Now] {
	h.tb.Helper()
	sys, err := h.try(s)
	if err != nil {
		h.tb.Fatal(err)
	}
	return sys
}

func (h *harness) try(s Spec[*Now]) (*System[*Now], error) {
	if s.Ask == nil && !s.IsGroup {
		s.Ask = at(h.note, Update)
	}
	return h.Add(s)
}

// step runs the next tick at 60 Hz and returns the systems that ran.
func (h *harness) step() []string {
	h.tb.Helper()
	if _, err := h.stepRecord(); err != nil {
		h.tb.Fatal(err)
	}
	return h.ran
}

func (h *harness) stepRecord() (*Record, error) {
	h.tick++
	h.ran = nil
	return h.Step(at60.Input(h.tick))
}

func (h *harness) wantRan(want ...string) {
	h.tb.Helper()
	if !slices.Equal(h.ran, want) {
		h.tb.Fatalf("tick %d ran %v, want %v", h.tick, h.ran, want)
	}
}
