package clock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// systems runs a test with the clock of this system, and with that of systems without a timerfd.
func systems(t *testing.T, test func(t *testing.T, s *System)) {
	for name, w := range map[string]waiter{"of this system": newWaiter(), "portable": timers{}} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(w)
			test(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheSystemClockNeverWaitsTooShort(t *testing.T) { systems(t, neverTooShort) }

func neverTooShort(t *testing.T, s *System) {
	for range 20 {
		at := s.Now() + 2*time.Millisecond
		if err := s.WaitUntil(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if now := s.Now(); now < at {
			t.Fatalf("woke at %v, %v too early", now, at-now)
		}
	}
}

func TestATimePastIsNoWait(t *testing.T) { systems(t, pastIsNoWait) }

func pastIsNoWait(t *testing.T, s *System) {
	if err := s.WaitUntil(t.Context(), s.Now()-time.Hour); err != nil {
		t.Fatal(err)
	}
}

// watched reports reads of its Done channel.
type watched struct {
	context.Context
	looked chan struct{}
}

func (w watched) Done() <-chan struct{} {
	select {
	case w.looked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

func TestAWaitEndsWithItsContext(t *testing.T) { systems(t, endsWithItsContext) }

func endsWithItsContext(t *testing.T, s *System) {
	for range 20 {
		inner, cancel := context.WithCancel(t.Context())
		ctx := watched{Context: inner, looked: make(chan struct{}, 10)}
		done := make(chan error)
		go func() { done <- s.WaitUntil(ctx, s.Now()+time.Hour) }()
		<-ctx.looked // it begins to wait
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		if err := s.WaitUntil(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("an ended context waits with error %v", err)
		}
	}
	// A cancellation does not reach the next wait, which may use the same timer.
	at := s.Now() + 3*time.Millisecond
	if err := s.WaitUntil(t.Context(), at); err != nil || s.Now() < at {
		t.Fatalf("error %v at %v, want none at %v", err, s.Now(), at)
	}
}

func TestManyMayWaitAtOnceAndAfterClose(t *testing.T) { systems(t, manyAtOnce) }

func manyAtOnce(t *testing.T, s *System) {
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for k := range 5 {
				at := s.Now() + time.Duration(i%7)*time.Millisecond
				if err := s.WaitUntil(t.Context(), at); err != nil || s.Now() < at {
					t.Errorf("error %v at %v, want none at %v", err, s.Now(), at)
				}
				if i == 50 && k == 2 {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at := s.Now() + time.Millisecond
	if err := s.WaitUntil(t.Context(), at); err != nil || s.Now() < at {
		t.Fatalf("error %v", err)
	}
}

func TestTheSystemClockShowsTheTimeOfDay(t *testing.T) {
	s := NewSystem()
	from := time.Now()
	w := s.Wall()
	if w.Before(from.Round(0)) || w.Sub(from) > time.Minute {
		t.Fatalf("wall %v at %v", w, from)
	}
	if b, err := w.MarshalBinary(); err != nil || w != w.Round(0) {
		t.Fatalf("wall %v has more to it than its encoding %x, error %v", w, b, err)
	}
}

func TestTheVirtualClockMovesOnlyWhenMoved(t *testing.T) {
	v := NewVirtual()
	if v.Now() != 0 || v.Wall() != time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC) {
		t.Fatalf("begins at %v, %v", v.Now(), v.Wall())
	}
	v.Advance(time.Second)
	v.Advance(0)
	v.Set(3 * time.Second)
	v.Set(2 * time.Second) // the past
	if err := v.WaitUntil(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if v.Now() != 5*time.Second || v.Wall().Sub(virtualWall) != 5*time.Second {
		t.Fatalf("now %v, wall %v", v.Now(), v.Wall())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.WaitUntil(ctx, time.Hour); !errors.Is(err, context.Canceled) || v.Now() != 5*time.Second {
		t.Fatalf("error %v, now %v", err, v.Now())
	}
}

func TestTheVirtualClockDoesNotGoBack(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("Advance(-1) was accepted")
		}
	}()
	NewVirtual().Advance(-1)
}

// BenchmarkLateness shows how late a wait of one tick at 60 Hz ends; the number
// of runs is the number of ticks.
func BenchmarkLateness(b *testing.B) {
	s := NewSystem()
	defer s.Close()
	b.ReportAllocs()
	var late, worst time.Duration
	at := s.Now()
	for range b.N {
		at += time.Second / 60
		if err := s.WaitUntil(b.Context(), at); err != nil {
			b.Fatal(err)
		}
		l := s.Now() - at
		late, worst = late+l, max(worst, l)
	}
	b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late/op")
	b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
}
