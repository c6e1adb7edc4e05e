package loop

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// pace runs all ticks due at now and returns their inputs and the time of the next tick, in no
// time.
func pace(p *Pacer, now time.Duration) (ran []Input, wait time.Duration) {
	for {
		in, due, w := p.Next(now)
		if !due {
			return ran, w
		}
		ran = append(ran, in)
	}
}

func TestTheFirstTickIsDueImmediately(t *testing.T) {
	p := Pacer{Timeline: at60}
	p.Start(5*time.Second, FirstTick)
	ran, wait := pace(&p, 5*time.Second)
	if len(ran) != 1 || ran[0].Tick != 1 || ran[0].Deadline != 5*time.Second || ran[0].Epoch != (Epoch{1, 5 * time.Second}) {
		t.Fatalf("ran %+v", ran)
	}
	if wait != 5*time.Second+16_666_667 {
		t.Fatalf("the next one at %v", wait)
	}
}

func TestALongGapDoesNotBurst(t *testing.T) {
	p := Pacer{Timeline: at60}
	p.Start(0, FirstTick)
	pace(&p, 0)
	ran, _ := pace(&p, 10*time.Second) // 600 ticks are due
	if len(ran) != DefaultBurst {
		t.Fatalf("%d ticks ran back to back, want %d", len(ran), DefaultBurst)
	}
	first := ran[0]
	if first.Tick != 2 || first.Dropped != 595 || !first.EpochMoved || p.Dropped() != 595 {
		t.Fatalf("after the gap: %+v", first)
	}
	for i, in := range ran[1:] {
		if in.Tick != uint64(3+i) || in.Dropped != 0 || in.EpochMoved || in.Epoch != first.Epoch {
			t.Fatalf("tick %d of the burst: %+v", i+1, in)
		}
	}
}

func TestAGapThatFitsDropsNothing(t *testing.T) {
	p := Pacer{Timeline: at60}
	p.Start(0, FirstTick)
	pace(&p, 0)
	ran, _ := pace(&p, at60.GameTime(5)+1)
	if len(ran) != 5 || p.Dropped() != 0 || p.Epoch() != (Epoch{Tick: 1}) {
		t.Fatalf("%d ticks ran, %d were dropped, epoch %v", len(ran), p.Dropped(), p.Epoch())
	}
}

func TestTheBurstIsConfigurable(t *testing.T) {
	p := Pacer{Timeline: at60, Burst: 2}
	p.Start(0, FirstTick)
	if ran, _ := pace(&p, time.Second); len(ran) != 2 || p.Dropped() != 59 {
		t.Fatalf("%d ticks ran, %d were dropped", len(ran), p.Dropped())
	}
}

func TestTheEpochMovesByWholeTicks(t *testing.T) {
	p := Pacer{Timeline: Timeline{Rate: Rate{30_000, 1001}, Fixed: Hz(60)}}
	p.Start(1234, FirstTick)
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.Duration(1234)
	for range 10_000 {
		now += time.Duration(rnd.Int64N(int64(time.Second)))
		pace(&p, now)
		// Tick n is due at the original deadline of tick n + dropped, within the nanosecond of
		// the two roundings.
		e := p.Epoch()
		want := p.Timeline.Deadline(Epoch{1, 1234}, e.Tick+p.Dropped())
		if d := e.At - want; d < -1 || d > 1 {
			t.Fatalf("epoch %v is off by %v after %d dropped ticks", e, d, p.Dropped())
		}
	}
}

func TestAClockBeforeStartWaits(t *testing.T) {
	p := Pacer{Timeline: at60}
	p.Start(time.Second, FirstTick)
	if _, due, wait := p.Next(0); due || wait != time.Second {
		t.Fatalf("due %v, wait until %v", due, wait)
	}
}

// stallClock is a virtual clock; each step may take long.
type stallClock struct {
	clock.Virtual
	waited func(now time.Duration)
}

func (c *stallClock) WaitUntil(ctx context.Context, at time.Duration) error {
	c.waited(c.Now())
	return c.Virtual.WaitUntil(ctx, at)
}

// runHours runs at a rate until the virtual time is over, with stalls, and checks the counts
// whenever Run waits.
func runHours(t *testing.T, rate Rate, hours time.Duration, stall func() time.Duration) *Pacer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &Pacer{Timeline: Timeline{Rate: rate, Fixed: Hz(50)}}
	var next uint64 = FirstTick
	c := &stallClock{}
	c.waited = func(now time.Duration) {
		// floor(elapsed * rate) + 1, second by second, so that 64 bits suffice.
		s, ns := uint64(now/time.Second), uint64(now%time.Second)
		checkAll, rest := s*rate.Num/rate.Den, s*rate.Num%rate.Den
		want := checkAll + (rest*second+ns*rate.Num)/(rate.Den*second) + 1
		if got := p.executed + p.Dropped(); got != want {
			t.Fatalf("rate %v: %d executed and %d dropped at %v, want %v together", rate, p.executed, p.Dropped(), now, want)
		}
		if now >= hours {
			cancel()
		}
	}
	err := Run(ctx, c, p, func(in Input) error {
		switch {
		case in.Tick != next:
			t.Fatalf("rate %v: tick %d follows %d", rate, in.Tick, next-1)
		case in.Deadline > in.Start:
			t.Fatalf("rate %v: tick %d began at %v, before its deadline %v", rate, in.Tick, in.Start, in.Deadline)
		case in.EpochMoved != (in.Dropped > 0), in.Epoch != p.Epoch():
			t.Fatalf("rate %v: %+v while the epoch is %v", rate, in, p.Epoch())
		}
		next++
		c.Advance(stall())
		return nil
	})
	if err != nil {
		t.Fatalf("rate %v: %v", rate, err)
	}
	return p
}

// stalls make one tick in fifty take up to twenty periods.
func stalls(r Rate, rnd *rand.Rand) func() time.Duration {
	return func() time.Duration {
		if rnd.IntN(50) != 0 {
			return 0
		}
		return time.Duration(rnd.Int64N(20 * int64(r.Period())))
	}
}

// Every rate runs for some minutes, or a day with NETLOOP_SEEDS=1440 and more. Three rates always
// run for a day, in a short run two of them for an hour.
func TestExecutedPlusDroppedIsElapsedTimesRate(t *testing.T) {
	const day = 24 * time.Hour
	long := day
	if testing.Short() {
		long = time.Hour
	}
	some := min(time.Duration(seeds(t, 2))*time.Minute, day)
	spans := map[Rate]time.Duration{Hz(1): day, Hz(25): long, {30_000, 1001}: long}
	rates := []Rate{{30_000, 1001}, {60_000, 1001}, {1, 3}}
	for hz := uint64(1); hz <= 240; hz++ {
		rates = append(rates, Hz(hz))
	}
	for i, r := range rates {
		p := runHours(t, r, max(some, spans[r]), stalls(r, rand.New(rand.NewPCG(3, uint64(i)))))
		if r.Num/r.Den >= 20 && p.Dropped() == 0 {
			t.Fatalf("rate %v: the stalls dropped no tick", r)
		}
	}
}

func TestNothingIsDroppedWhenEveryTickFits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, r := range []Rate{Hz(1), Hz(60), {30_000, 1001}, Hz(240)} {
		p := runHours(t, r, time.Hour, func() time.Duration { return time.Duration(rnd.Int64N(int64(r.Period()))) })
		if p.Dropped() != 0 {
			t.Fatalf("rate %v: %d dropped", r, p.Dropped())
		}
	}
}

func TestRunEndsWithItsContextBetweenTicks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &Pacer{Timeline: at60}
	n := 0
	err := Run(ctx, clock.NewVirtual(), p, func(in Input) error {
		if n++; n == 3 {
			cancel()
		}
		if in.Wall.IsZero() {
			t.Error("no wall clock")
		}
		return nil
	})
	if err != nil || n != 3 || p.executed != 3 {
		t.Fatalf("error %v after %d ticks, %d executed", err, n, p.executed)
	}
}

func TestRunReturnsTheErrorOfStep(t *testing.T) {
	want := errors.New("closed")
	if err := Run(t.Context(), clock.NewVirtual(), &Pacer{Timeline: at60}, func(Input) error { return want }); !errors.Is(err, want) {
		t.Fatalf("error %v", err)
	}
}

// brokenClock cannot wait.
type brokenClock struct{ clock.Virtual }

var errBroken = errors.New("no timers left")

func (*brokenClock) WaitUntil(context.Context, time.Duration) error { return errBroken }

func TestRunReturnsTheErrorOfTheClock(t *testing.T) {
	if err := Run(t.Context(), new(brokenClock), &Pacer{Timeline: at60}, func(Input) error { return nil }); !errors.Is(err, errBroken) {
		t.Fatalf("error %v", err)
	}
}

func BenchmarkPacerPerTick(b *testing.B) {
	b.ReportAllocs()
	p := Pacer{Timeline: at60}
	p.Start(0, FirstTick)
	now := time.Duration(0)
	for b.Loop() {
		if _, due, wait := p.Next(now); !due {
			now = wait
		}
	}
}
