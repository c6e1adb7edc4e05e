package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// played is a run over the packages p and q without a compiler: all sources compile, and a
// function of the package and the number of the active change replaces the tests.
type played struct {
	*trials
	chosen     []change
	out, notes bytes.Buffer
}

func play(t *testing.T, tests func(ctx context.Context, dir, number string) error) *played {
	t.Helper()
	t.Chdir(t.TempDir())
	p := &played{}
	for _, dir := range []string{"p", "q"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"f.go": sample, "f_test.go": "package p"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var err error
	if p.chosen, err = find([]string{"p", "q"}); err != nil {
		t.Fatal(err)
	}
	r := &report{out: &p.out, notes: &p.notes, chosen: len(p.chosen), began: time.Now()}
	if p.trials, err = newTrials(r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.command = func(ctx context.Context, dir string, env []string, name string, _ ...string) (string, error) {
		if name == "go" {
			return "", nil
		}
		return "said by the tests", tests(ctx, filepath.Base(dir), strings.TrimPrefix(env[0], actingChange+"="))
	}
	return p
}

// TestARunIsInterruptedAndStillReports interrupts a run with two changes under way: both are tried
// to their end and counted, and no other change is begun.
func TestARunIsInterruptedAndStillReports(t *testing.T) {
	enough, stop := context.WithCancel(t.Context())
	var begun atomic.Int32
	both := make(chan struct{})
	p := play(t, func(ctx context.Context, _, number string) error {
		if number == "0" {
			return nil
		}
		switch begun.Add(1) {
		case 1:
			<-both
			stop()
			return errors.New("noticed")
		case 2:
			close(both)
			<-enough.Done()
		case 3: // The same change, with more seeds.
		default:
			t.Error("begun after the interrupt: change", number)
		}
		return ctx.Err()
	})
	if err := p.try(t.Context(), enough, p.chosen, 2); err != nil {
		t.Error(err)
	}
	err := p.report.end(enough.Err() != nil)
	if err == nil || !strings.Contains(err.Error(), "interrupted when 2 of the 30 chosen changes") {
		t.Errorf("the run ends with %v", err)
	}
	if got := p.out.String(); !strings.Contains(got, "unnoticed: ") || !strings.Contains(got, "1 noticed, 1 not (50.0 %)") {
		t.Errorf("the report is\n%s", got)
	}
}

// TestAnInterruptedCheckOfThePackageIsNoFailure interrupts a run in which no change has been tried.
func TestAnInterruptedCheckOfThePackageIsNoFailure(t *testing.T) {
	enough, stop := context.WithCancel(t.Context())
	runs := 0
	p := play(t, func(ctx context.Context, _, _ string) error {
		runs++
		stop()
		return ctx.Err()
	})
	if err := p.try(t.Context(), enough, p.chosen, 2); err != nil || runs != 1 {
		t.Errorf("%d runs of tests end with %v", runs, err)
	}
	if err := p.report.end(true); err == nil || !strings.Contains(err.Error(), "interrupted when 0 of") {
		t.Errorf("the run ends with %v", err)
	}
}

// TestTestsThatFailUnchangedAreRunOnceMore lets the tests of p fail as often as each row says. They
// are accepted when they pass in the second run; if not, the other package is still tried.
func TestTestsThatFailUnchangedAreRunOnceMore(t *testing.T) {
	for failures, tried := range []int{30, 30, 15} {
		runs := 0
		p := play(t, func(_ context.Context, dir, number string) error {
			if number == "0" && dir == "p" {
				if runs++; runs > failures {
					return nil
				}
			}
			return errorIf(number != "0" || dir == "p")
		})
		err := p.try(t.Context(), t.Context(), p.chosen, 2)
		if p.report.tried != tried {
			t.Errorf("%d failures: %d changes were tried, want %d", failures, p.report.tried, tried)
		}
		if said := strings.Contains(p.notes.String(), "the tests of p fail without any change, and are run once more"); said != (failures > 0) {
			t.Errorf("%d failures: the notes are\n%s", failures, p.notes.String())
		}
		lost := err != nil && strings.Contains(err.Error(), "the tests of p fail") && strings.Contains(err.Error(), "said by the tests")
		if lost != (failures > 1) || (err != nil) != lost {
			t.Errorf("%d failures: the run ends with %v", failures, err)
		}
		if err := p.report.end(false); err != nil {
			t.Error(err)
		}
	}
}

// TestAPackageWithoutTestsIsTriedByItsUsers removes the tests of p: those of q try its changes. If
// no package is known to use p, the run ends before any test.
func TestAPackageWithoutTestsIsTriedByItsUsers(t *testing.T) {
	for _, of := range [][]string{{"q"}, nil} {
		var ofP atomic.Int32
		p := play(t, func(_ context.Context, dir, number string) error {
			if dir == "p" {
				ofP.Add(1)
			}
			return errorIf(number != "0")
		})
		if err := os.Remove("p/f_test.go"); err != nil {
			t.Fatal(err)
		}
		users["p"] = of
		defer delete(users, "p")
		want := len(p.chosen)
		err := p.try(t.Context(), t.Context(), p.chosen, 2)
		if of == nil {
			want = 0
			if err == nil || !strings.Contains(err.Error(), "p has no tests: name a package in bundle.go") {
				t.Errorf("without a user the run ends with %v", err)
			}
		} else if err != nil {
			t.Error(err)
		}
		if p.report.tried != want || p.report.missed > 0 || ofP.Load() > 0 {
			t.Errorf("tested by %q: %d changes tried, %d missed, %d runs of p", of, p.report.tried, p.report.missed, ofP.Load())
		}
	}
}

func errorIf(failed bool) error {
	if failed {
		return errors.New("failed")
	}
	return nil
}
