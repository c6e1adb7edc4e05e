package loop

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAnHourAt60HzIs216000Ticks(t *testing.T) {
	if got := at60.TickAt(time.Hour); got != 216_000 {
		t.Fatalf("tick %d, want 216000", got)
	}
	if got := at60.GameTime(216_000); got != time.Hour {
		t.Fatalf("game time %v, want an hour", got)
	}
}

func TestTheFirstTickEndsAfterOnePeriod(t *testing.T) {
	if at60.GameTime(0) != 0 || at60.GameTime(1) != 16_666_666 || at60.FixedSteps(1) != 1 {
		t.Fatalf("game time %v and %v, %d steps", at60.GameTime(0), at60.GameTime(1), at60.FixedSteps(1))
	}
	in := at60.Input(1)
	want := Input{Tick: 1, GameTime: 16_666_666, Delta: 16_666_666, FixedSteps: 1, FirstFixedStep: 1, FixedDelta: 16_666_667}
	if in != want {
		t.Fatalf("input %+v, want %+v", in, want)
	}
}

// 50 Hz steps at 60 Hz: five steps in every six ticks, forever.
func TestFixedStepsKeepTheirPhase(t *testing.T) {
	tl := Timeline{Rate: Hz(60), Fixed: Hz(50)}
	for _, from := range []uint64{0, 6, 216_000, 6 << 40} {
		var got []int
		for n := from + 1; n <= from+6; n++ {
			got = append(got, tl.Input(n).FixedSteps)
		}
		if fmt.Sprint(got) != "[0 1 1 1 1 1]" {
			t.Fatalf("steps after tick %d: %v", from, got)
		}
	}
}

// Results at tick 2^40, after 580 years at 60 Hz, are exact: they equal those of unbounded
// integers.
func TestArithmeticAtTick2To40(t *testing.T) {
	const at = 1 << 40
	for _, c := range []struct {
		tl    Timeline
		game  time.Duration
		steps uint64
	}{
		{Timeline{Rate{30_000, 1001}, Hz(50)}, clampDuration(math.MaxUint64), 1_834_351_899_006},
		{Timeline{Rate{30_000, 1001}, Rate{60_000, 1001}}, clampDuration(math.MaxUint64), 2 << 40},
		{Timeline{Hz(240), Hz(50)}, 4_581_298_449_066_666_666, 229_064_922_453},
		{Timeline{Hz(1000), Rate{30_000, 1001}}, 1_099_511_627_776_000_000, 32_952_396_436},
	} {
		if got := c.tl.GameTime(at); got != c.game {
			t.Errorf("%v: game time %d, want %d", c.tl, got, c.game)
		}
		if got := c.tl.FixedSteps(at); got != c.steps {
			t.Errorf("%v: %d steps, want %d", c.tl, got, c.steps)
		}
		next := c.tl.FixedSteps(at-5) + 1
		for n := uint64(at) - 4; n < at+1000; n++ {
			in := c.tl.Input(n)
			if in.FirstFixedStep != next || in.Fraction < 0 || in.Fraction >= 1 {
				t.Fatalf("%v: tick %d begins with step %d and ends at fraction %v; the step before was %d", c.tl, n, in.FirstFixedStep, in.Fraction, next-1)
			}
			next += uint64(in.FixedSteps)
		}
		if got, want := next-1-c.tl.FixedSteps(at-5), c.tl.FixedSteps(at+999)-c.tl.FixedSteps(at-5); got != want {
			t.Fatalf("%v: %d steps in 1004 ticks, want %d", c.tl, got, want)
		}
	}
}

// rateGen generates rates from one a minute to a thousand a second and beyond.
func rateGen() *rapid.Generator[Rate] {
	return rapid.Custom(func(t *rapid.T) Rate {
		part := rapid.OneOf(rapid.Uint64Range(1, 1000), rapid.Uint64Range(1, MaxRatePart))
		return rapid.OneOf(
			rapid.SampledFrom([]Rate{{30_000, 1001}, {60_000, 1001}, {60, 1}, {50, 1}, {1, 60}, {MaxRatePart, 1}, {1, MaxRatePart}}),
			rapid.Custom(func(t *rapid.T) Rate { return Rate{Num: part.Draw(t, "num"), Den: part.Draw(t, "den")} }),
		).Draw(t, "rate")
	})
}

// tickGen generates tick numbers, also far beyond the life of a process.
func tickGen() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64Range(1, 100_000),
		rapid.Uint64Range(1<<40-10, 1<<40+10),
		rapid.Uint64Range(1, math.MaxUint64),
	)
}

// The arithmetic equals that of unbounded integers if the result fits.
func TestTimelineIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := Timeline{Rate: rateGen().Draw(t, "rate"), Fixed: rateGen().Draw(t, "fixed")}
		n := tickGen().Draw(t, "tick")
		if err := tl.Check(); err != nil {
			t.Fatal(err)
		}
		b := func(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
		mul := func(x, y uint64) *big.Int { return new(big.Int).Mul(b(x), b(y)) }

		game := new(big.Int).Mul(b(n), mul(second, tl.Rate.Den))
		game.Div(game, b(tl.Rate.Num))
		if !game.IsInt64() {
			game.SetInt64(math.MaxInt64)
		}
		if got := tl.GameTime(n); got != time.Duration(game.Int64()) {
			t.Fatalf("GameTime %d, want %v", got, game)
		}

		steps, rem := new(big.Int), new(big.Int)
		div := mul(tl.Fixed.Den, tl.Rate.Num)
		steps.DivMod(new(big.Int).Mul(b(n), mul(tl.Fixed.Num, tl.Rate.Den)), div, rem)
		if !steps.IsUint64() {
			steps.SetUint64(math.MaxUint64)
			rem.SetUint64(0)
		}
		if got := tl.FixedSteps(n); got != steps.Uint64() {
			t.Fatalf("FixedSteps %d, want %v", got, steps)
		}
		want, _ := new(big.Rat).SetFrac(rem, div).Float64()
		if got := tl.Fraction(n); math.Abs(got-want) > 1e-9 || got < 0 || got >= 1 {
			t.Fatalf("Fraction %v, want %v", got, want)
		}
	})
}

func TestTickAtIsTheInverseOfGameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := Timeline{Rate: rateGen().Draw(t, "rate"), Fixed: Hz(60)}
		g := time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "game time"))
		n := tl.TickAt(g)
		if tl.GameTime(n) > g || tl.GameTime(n+1) <= g {
			t.Fatalf("TickAt(%d) = %d, whose game time is %d, and the next one's %d", g, n, tl.GameTime(n), tl.GameTime(n+1))
		}
	})
	if got := at60.TickAt(-1); got != 0 {
		t.Fatalf("TickAt(-1) = %d", got)
	}
}

func TestDueIsTheInverseOfDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := Timeline{Rate: rateGen().Draw(t, "rate"), Fixed: Hz(60)}
		// 36 years
		game := time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "game time of the epoch"))
		e := Epoch{Tick: tl.TickAt(game), At: time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "at"))}
		at := e.At + time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "after"))
		n := tl.Due(e, at)
		if tl.Deadline(e, n) > at || tl.Deadline(e, n+1) <= at {
			t.Fatalf("Due(%d) = %d, due at %d, the next at %d", at, n, tl.Deadline(e, n), tl.Deadline(e, n+1))
		}
	})
}

func TestStepTickIsTheTickThatRunsTheStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Uint64Range(1, 1000)
		rate := func(name string) Rate { return Rate{part.Draw(t, name), part.Draw(t, name+" den")} }
		tl := Timeline{Rate: rate("rate"), Fixed: rate("fixed")}
		step := rapid.Uint64Range(1, 1<<40).Draw(t, "step")
		tick := tl.StepTick(step)
		if tl.FixedSteps(tick) < step || tl.FixedSteps(tick-1) >= step {
			t.Fatalf("step %d is of tick %d, which ends with %d, after %d", step, tick, tl.FixedSteps(tick), tl.FixedSteps(tick-1))
		}
		if at := tl.StepTime(step); at > tl.GameTime(tick) {
			t.Fatalf("step %d, at %v, is after its tick, at %v", step, at, tl.GameTime(tick))
		}
	})
}

func TestStepAtIsTheInverseOfStepTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl := Timeline{Rate: Hz(60), Fixed: rateGen().Draw(t, "fixed")}
		g := time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "game time"))
		n, fraction := tl.StepAt(g)
		from, to := tl.StepTime(n), tl.StepTime(n+1)
		if from > g || to <= g {
			t.Fatalf("StepAt(%d) = %d, whose time is %d, and the next one's %d", g, n, from, to)
		}
		if want := float64(g-from) / float64(to-from); fraction < 0 || fraction >= 1 || math.Abs(fraction-want) > 1e-12 {
			t.Fatalf("StepAt(%d) is %v of a step beyond, want %v", g, fraction, want)
		}
	})
	last := Timeline{Rate: Hz(60), Fixed: Rate{1, 1}}
	if n, fraction := last.StepAt(math.MaxInt64); n != math.MaxInt64/uint64(time.Second) || fraction < 0 || fraction >= 1 {
		t.Errorf("at the end of time step %d and %v", n, fraction)
	}
}

func TestRatesAreChecked(t *testing.T) {
	for _, r := range []Rate{{}, {60, 0}, {0, 1}, {MaxRatePart + 1, 1}, {1, MaxRatePart + 1}} {
		if r.Check() == nil || (Timeline{Rate: r, Fixed: Hz(60)}).Check() == nil || (Timeline{Rate: Hz(60), Fixed: r}).Check() == nil {
			t.Errorf("%v was accepted", r)
		}
	}
}

func TestRatesHaveReadableStrings(t *testing.T) {
	for _, c := range []struct {
		r      Rate
		text   string
		period time.Duration
	}{{Hz(60), "60 Hz", 16_666_667}, {Rate{30_000, 1001}, "30000/1001 Hz", 33_366_667}, {Hz(1000), "1000 Hz", time.Millisecond}} {
		if c.r.String() != c.text || c.r.Period() != c.period {
			t.Errorf("%v with a period of %v, want %s and %v", c.r, c.r.Period(), c.text, c.period)
		}
	}
}
