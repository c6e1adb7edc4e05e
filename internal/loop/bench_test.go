package loop

import (
	"fmt"
	"testing"
	"time"
)

// monotonic is a real clock: dispatch is measured with what it costs to measure.
func monotonic() func() time.Duration {
	base := time.Now()
	return func() time.Duration { return time.Since(base) }
}

// filled returns a loop with n empty systems in each of the stages.
func filled(tb testing.TB, n int, stages ...Stage) *Loop[*Now] {
	tb.Helper()
	now := new(Now)
	l := New(now, now, monotonic())
	empty := func(*Now) {}
	for i := range n {
		for _, stage := range stages {
			_, err := l.Add(Spec[*Now]{Name: fmt.Sprintf("%v.%d", stage, i), Ask: func(s Stage) func(*Now) {
				if s == stage {
					return empty
				}
				return nil
			}})
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := l.Check(); err != nil {
		tb.Fatal(err)
	}
	return l
}

func benchmarkSteps(b *testing.B, l *Loop[*Now]) {
	b.ReportAllocs()
	in := at60.Input(1)
	for b.Loop() {
		if _, err := l.Step(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDispatch shows the cost per system, its duration measured and its
// panics isolated.
func BenchmarkDispatch(b *testing.B) {
	const n = 1000
	benchmarkSteps(b, filled(b, n, Update))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/system")
}

func BenchmarkTickOf7x10Systems(b *testing.B) {
	stages := Stages()
	benchmarkSteps(b, filled(b, 10, stages[:]...))
}

func BenchmarkStepOf50Systems(b *testing.B) { benchmarkSteps(b, filled(b, 50, Update)) }

func BenchmarkStepOfNothing(b *testing.B) { benchmarkSteps(b, filled(b, 0)) }

// BenchmarkClockRead is the floor: one read per system boundary.
func BenchmarkClockRead(b *testing.B) {
	clock := monotonic()
	for b.Loop() {
		clock()
	}
}

func BenchmarkRegistration(b *testing.B) {
	for b.Loop() {
		filled(b, 1000, Update)
	}
}
