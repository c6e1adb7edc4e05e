package watchdog

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

const limit = 10 * time.Second

func TestAHangIsReportedOnce(t *testing.T) {
	w := New(limit)
	w.Begin(7, 100*time.Second)
	w.Stage(loop.Update)
	for _, now := range []time.Duration{100 * time.Second, 110 * time.Second} {
		if h, hung := w.Check(now); hung || w.Err() != nil {
			t.Fatalf("at %v: %+v", now, h)
		}
	}
	h, hung := w.Check(110*time.Second + 1)
	if want := (Hang{Tick: 7, Stage: loop.Update, For: limit + 1}); !hung || h != want {
		t.Fatalf("%+v, want %+v", h, want)
	}
	if _, again := w.Check(200 * time.Second); again || w.Hangs() != 1 {
		t.Errorf("reported again: %v, %d", again, w.Hangs())
	}
	var got *Hang
	if err := w.Err(); !errors.As(err, &got) || *got != h || !strings.Contains(err.Error(), "tick 7") || !strings.Contains(err.Error(), "Update") {
		t.Errorf("Err: %v", err)
	}
	// It returns after all, and the next one hangs too.
	if h := w.End(); h == nil || h.Tick != 7 || w.Err() != nil {
		t.Errorf("End says %v, Err %v", h, w.Err())
	}
	w.Begin(8, 300*time.Second)
	if h, hung := w.Check(320 * time.Second); !hung || h.Stage != 0 || w.Hangs() != 2 {
		t.Errorf("the next tick: %+v, %v", h, hung)
	}
}

func TestTicksThatReturnAreNoHang(t *testing.T) {
	w := New(limit)
	if _, hung := w.Check(time.Hour); hung {
		t.Error("hung before the first tick")
	}
	for tick := range uint64(100) {
		at := time.Duration(tick) * time.Second
		w.Begin(tick+1, at)
		if _, hung := w.Check(at + time.Second); hung {
			t.Fatalf("tick %d", tick)
		}
		if h := w.End(); h != nil {
			t.Fatalf("tick %d: %v", tick, h)
		}
	}
	if _, hung := w.Check(time.Hour); hung {
		t.Error("hung between ticks")
	}
	off := New(0)
	off.Begin(1, 0)
	if _, hung := off.Check(time.Hour); hung {
		t.Error("a watchdog that is off reports")
	}
	strict := New(1)
	strict.Begin(1, 0)
	if _, hung := strict.Check(2); !hung {
		t.Error("a watchdog with the least limit does not report")
	}
}

// The line of a hang names the function that the loop has called, without its arguments.
func TestTheCalledFunctionIsNamed(t *testing.T) {
	for frame, want := range map[string]string{
		"game.(*Room).Hang(0x1, 0x2)": "game.(*Room).Hang", "game.Hang": "game.Hang", "f(0x1)": "f", "(0x1)": "(0x1)",
	} {
		stack := "goroutine 1 [select]:\n" + frame + "\n\t/game.go:7 +0x1\nx/internal/loop.(*Loop[...]).Step(0x1)\n\t/loop.go:1"
		if got := calledFunction(stack); got != want+" /game.go:7" {
			t.Errorf("%q is called %q", frame, got)
		}
	}
}

// hang is a system that blocks until may is closed.
func hang(may <-chan struct{}) { <-may }

func TestADumpNamesAHangingSystem(t *testing.T) {
	w, now := New(limit), new(loop.Now)
	l := loop.New(struct{}{}, now, func() time.Duration { return 0 })
	in, may, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	if _, err := l.Add(loop.Spec[struct{}]{Name: "test.hang", Ask: func(s loop.Stage) func(struct{}) {
		if s != loop.Update {
			return nil
		}
		return func(struct{}) { close(in); hang(may) }
	}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		w.SetGoroutine()
		_, _ = l.Step(loop.Input{Tick: 1}) // Its system hangs.
	}()
	<-in
	d := w.Dump()
	close(may)
	<-done
	if !strings.Contains(d.Function, "TestADumpNamesAHangingSystem") || !strings.Contains(d.Function, "watchdog_test.go:") {
		t.Errorf("the function that hangs is %q of\n%s", d.Function, d.Own)
	}
	if !strings.HasPrefix(d.Own, "goroutine ") || !strings.Contains(d.Own, "loop.(*Loop") {
		t.Errorf("its stack:\n%s", d.Own)
	}
	if !strings.Contains(d.Others, "testing.") || strings.Contains(d.Others, "loop.(*Loop") {
		t.Errorf("the others:\n%s", d.Others)
	}
}

func TestDumpIsBounded(t *testing.T) {
	frame := "some.function(0x1)\n\t/some/file.go:1 +0x1\n"
	stack := func(n string, frames int) string {
		return "goroutine " + n + " [select]:\n" + strings.Repeat(frame, frames)
	}
	all := stack("1", 10)
	for range 100 {
		all += "\n" + stack("2", 100)
	}
	all += "\n" + stack("10", 10_000)
	d := parseStacks(all, 10)
	if len(d.Own) != 16<<10+len("\n...") || !strings.HasPrefix(d.Own, "goroutine 10 ") {
		t.Errorf("its stack has %d bytes", len(d.Own))
	}
	if len(d.Others) > 64<<10 || !strings.HasPrefix(d.Others, "goroutine 1 ") || d.Omitted == 0 {
		t.Errorf("the others have %d bytes, %d omitted", len(d.Others), d.Omitted)
	}
	for _, nothing := range []string{"", "x", "goroutine", "goroutine x [", "\n\n\n"} {
		if d := parseStacks(nothing, 1); d.Own != "" || d.Function != "" {
			t.Errorf("%q: %+v", nothing, d)
		}
	}
}

func TestTicksCostTheWatchdogNoMemory(t *testing.T) {
	w := New(limit)
	if n := testing.AllocsPerRun(1000, func() {
		w.Begin(1, 2)
		w.Stage(loop.Update)
		_ = w.End() // No hang was reported.
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Ticks and checks at the same time, for the race detector: each reported hang is of a tick that
// ran, and is cleared in the end.
func TestTicksAndChecksAtOnce(t *testing.T) {
	w := New(time.Nanosecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := uint64(1); ctx.Err() == nil; tick++ {
			w.Begin(tick, 0)
			_ = w.End() // Reported or not: only the race detector judges.
		}
	}()
	for range 10_000 {
		if h, hung := w.Check(time.Second); hung && h.Tick == 0 {
			t.Error("a hang of no tick")
		}
	}
	cancel()
	<-done
}

// A hook that has returned leaves the next tick the limit and the name of a tick.
func TestATickAfterAHookIsATick(t *testing.T) {
	w := New(limit)
	w.BeginHook("OnDrain", time.Minute, 0)
	if h, hung := w.Check(time.Minute + limit); hung {
		t.Fatalf("within the time that the hook is allowed: %+v", h)
	}
	h, hung := w.Check(time.Minute + limit + 1)
	if want := (Hang{Hook: "OnDrain", For: time.Minute + limit + 1}); !hung || h != want || h.Error() != "OnDrain hangs: it has not returned for 1m10s" {
		t.Fatalf("after that time: %+v, %v", h, hung)
	}
	if got := w.End(); got == nil || *got != h {
		t.Fatalf("End says %v", got)
	}
	w.Begin(3, time.Hour)
	if h, hung := w.Check(time.Hour + limit + 1); !hung || h != (Hang{Tick: 3, For: limit + 1}) {
		t.Errorf("%+v, %v", h, hung)
	}
}

// Stacks that fill the space to the byte are all shown.
func TestADumpFillsItsSpaceToTheByte(t *testing.T) {
	stack := func(n int) string { return "goroutine 1 [select]:" + strings.Repeat("x", n-21) }
	const most, half = 64 << 10, 32 << 10
	for _, c := range []struct{ last, omitted int }{{most - half - 2, 0}, {most - half - 1, 1}} {
		if d := parseStacks(stack(half)+"\n\n"+stack(c.last), 7); d.Omitted != c.omitted || len(d.Others) > most {
			t.Errorf("after %d bytes and a line, %d more: %d omitted", half, c.last, d.Omitted)
		}
	}
	if own := stack(16 << 10); parseStacks(own, 1).Own != own {
		t.Error("a stack that fits is cut")
	}
}
