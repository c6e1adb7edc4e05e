package loop

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// exact computes scaled time in fractions: the sum of sections, each with its speed.
type exact struct {
	sum      *big.Rat
	from     time.Duration
	num, den uint64
}

func newExact() *exact { return &exact{sum: new(big.Rat), num: 1, den: 1} }

func (e *exact) at(t time.Duration) *big.Rat {
	stretch := new(big.Rat).SetFrac(new(big.Int).SetUint64(e.num), new(big.Int).SetUint64(e.den))
	stretch.Mul(stretch, new(big.Rat).SetInt64(int64(t-e.from)))
	return stretch.Add(stretch, e.sum)
}

func (e *exact) turn(t time.Duration, num, den uint64) {
	e.sum = e.at(t)
	e.from, e.num, e.den = t, num, den
}

// floor returns the largest whole number of nanoseconds up to it.
func (e *exact) floor(t time.Duration) time.Duration {
	r := e.at(t)
	return time.Duration(new(big.Int).Div(r.Num(), r.Denom()).Int64())
}

// speed returns a random scale; some are 0, 1 and the maximum.
func speed(rnd *rand.Rand) (num, den uint64) {
	switch rnd.IntN(6) {
	case 0:
		return 0, 1
	case 1:
		return 1, 1
	case 2:
		return MaxScale, 1
	}
	den = 1 + rnd.Uint64N(30)
	return rnd.Uint64N(MaxScale*den + 1), den
}

// The denominators are up to 30, so the true times are multiples of 1/lcm(1 … 30), 4.3e-13 ns:
// after a million changes the result is still their floor.
func TestScaledTimeIsTheFloorOfTheExactTime(t *testing.T) {
	for seed := range seeds(t, 20) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 1))
		want, s, now := newExact(), Unscaled, time.Duration(0)
		for range 1000 {
			for range 3 {
				now += time.Duration(rnd.Int64N(1 << rnd.IntN(40)))
				if got := s.At(now); got != want.floor(now) {
					t.Fatalf("seed %d: at %v %d ns, want %v", seed, now, got, want.at(now).FloatString(6))
				}
			}
			num, den := speed(rnd)
			want.turn(now, num, den)
			s = s.turned(now, num, den)
		}
	}
}

func TestAThousandChangesOfTheScaleLoseNoTime(t *testing.T) {
	s, now := Unscaled, time.Duration(0)
	for range 1000 { // A nanosecond at a third, 2 at one: 3 000 ns make 2 000 and 1 000 thirds.
		s = s.turned(now, 1, 3)
		now++
		s = s.turned(now, 1, 1)
		now += 2
	}
	if got := s.At(now + 2); got != 2000+333+2 {
		t.Errorf("%d ns, want 2335", got)
	}
	s = s.turned(now, 1, 3)
	// 2333⅓, 2333⅔, 2334 …
	for i, want := range []time.Duration{2333, 2333, 2334, 2334, 2334, 2335} {
		if got := s.At(now + time.Duration(i)); got != want {
			t.Errorf("%d ns after %d, want %d", got, i, want)
		}
	}
}

func TestScaledTimeIsConstantAtItsBounds(t *testing.T) {
	s := Unscaled.turned(time.Hour, MaxScale, 1)
	for _, tt := range []struct{ at, want time.Duration }{
		{-1, time.Hour}, {0, time.Hour}, {time.Hour, time.Hour}, {time.Hour + 1, time.Hour + MaxScale},
		{math.MaxInt64/16 + 1, math.MaxInt64 - 15*time.Hour + 1}, {math.MaxInt64 / 2, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
	} {
		if got := s.At(tt.at); got != tt.want {
			t.Errorf("at %d: %d, want %d", tt.at, got, tt.want)
		}
	}
	if end := s.turned(math.MaxInt64, MaxScale*MaxScaleDen, MaxScaleDen).At(math.MaxInt64); end != math.MaxInt64 {
		t.Errorf("%d", end)
	}
}

func TestScalesOutOfRangeAreRefused(t *testing.T) {
	for _, tt := range []struct {
		num, den uint64
		ok       bool
	}{
		{0, 1, true}, {1, 1, true}, {MaxScale, 1, true}, {MaxScale*7 - 1, 7, true}, {MaxScale * MaxScaleDen, MaxScaleDen, true},
		{0, 0, false}, {1, 0, false}, {MaxScale + 1, 1, false}, {MaxScale*7 + 1, 7, false}, {1, MaxScaleDen + 1, false},
		{math.MaxUint64, math.MaxUint64, false}, {math.MaxUint64, 1, false}, {1, math.MaxUint64, false},
	} {
		if err := CheckScale(tt.num, tt.den); (err == nil) != tt.ok {
			t.Errorf("%d/%d: %v", tt.num, tt.den, err)
		}
	}
}

// times is a system that records its tick and both of its deltas.
func (h *harness) times(n *Now) {
	h.ran = append(h.ran, fmt.Sprintf("%d:%v/%v", n.Tick, n.Delta, n.ScaledDelta))
}

func scaledEvery(name string, d time.Duration, ask func(Stage) func(*Now)) Spec[*Now] {
	s := every(name, d, ask)
	s.Scaled = true
	return s
}

func TestAScaleTakesEffectInTheNextTick(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "ask", Ask: at(func(n *Now) {
		if n.Tick == 2 {
			h.Rescale(5, 1) // The last call counts.
			h.Rescale(2, 4)
		}
	}, EarlyUpdate)})
	see := func(n *Now) {
		h.ran = append(h.ran, fmt.Sprintf("%d:%d/%d %v %v", n.Tick, n.ScaleNum, n.ScaleDen, n.ScaledTime, n.ScaledDelta))
	}
	h.add(Spec[*Now]{Name: "see", Ask: at(see, Initialization, PostLateUpdate)})
	h.run(hz50, 0, 0, 0)
	h.wantRan("1:1/1 20ms 20ms", "1:1/1 20ms 20ms", "2:1/1 40ms 20ms", "2:1/1 40ms 20ms", "3:1/2 50ms 10ms", "3:1/2 50ms 10ms")
	h.run(hz50, 0)
	for kind := range h.kinds { // The times continue exactly: each new section would round.
		if k := h.kinds[kind]; k.flow.From != 40*ms || k.even.From != 40*ms {
			t.Errorf("kind %d has %+v", kind, k)
		}
	}
	if s := h.Rescale(1, 2); s != h.scale {
		t.Errorf("the same scale again starts another section: %+v", s)
	}
	h.Rescale(0, 7)
	if s := h.Rescale(1, 2); s != h.scale || h.Scale() != h.scale {
		t.Errorf("a change that was undone starts another section: %+v", s)
	}
}

func TestAPauseStopsScaledPeriods(t *testing.T) {
	h := newHarness(t)
	h.add(scaledEvery("a", 50*ms, at(h.times, Update)))
	c := scaledEvery("c", 50*ms, at(h.times, FixedUpdate))
	c.CatchUp = 1000
	h.add(c)
	h.run(hz50, 0, 0)
	h.wantRan("1:20ms/20ms")
	h.Rescale(0, 1)
	ticks := 180_000 // an hour
	if testing.Short() {
		ticks = 9_000
	}
	rec := h.run(hz50, make([]uint64, ticks)...)
	h.wantRan()
	if rec.Systems[0].Missed+rec.Systems[1].Missed > 0 {
		t.Errorf("%+v", rec.Systems)
	}
	h.Rescale(1, 1)
	pause := time.Duration(ticks) * 20 * ms
	h.run(hz50, 0, 0) // As at 50 ms of steps and at 70 of ticks without a pause.
	h.wantRan(fmt.Sprintf("%d:%v/50ms", ticks+3, 50*ms+pause), fmt.Sprintf("%d:%v/60ms", ticks+4, 60*ms+pause))
}

func TestScaledPeriodsAtSixteenTimes(t *testing.T) {
	h := newHarness(t)
	h.Rescale(MaxScale, 1) // 320 ms a tick
	c := scaledEvery("c", 100*ms, at(h.times, Update))
	c.CatchUp = 2
	h.add(c)
	h.add(scaledEvery("a", 100*ms, at(h.times, PreUpdate)))
	h.run(hz50, 0)
	h.wantRan("1:20ms/320ms")
	// 640 ms, and c counts from 320: 3 periods. a has its phase from 320 ms on.
	rec := h.run(hz50, 0)
	h.wantRan("2:20ms/320ms", "2:20ms/100ms", "2:0s/100ms")
	for _, s := range rec.Systems {
		if want := map[string]int{"c": 1}[s.Name]; s.Missed != want {
			t.Errorf("%s missed %d, want %d", s.Name, s.Missed, want)
		}
	}
}

func TestScaledDeltaOfACatchUpInGameTime(t *testing.T) {
	h := newHarness(t)
	h.Rescale(1, 2)
	c := every("c", 5*ms, at(h.times, PreUpdate, Update)) // Both stages have the same deltas.
	c.CatchUp = 2
	h.add(c)
	h.run(hz50, 0, 0)
	h.wantRan("2:5ms/10ms", "2:5ms/0s", "2:5ms/10ms", "2:5ms/0s")
}

func TestAnotherClockCountsTheTimeSinceTheLastCall(t *testing.T) {
	h := newHarness(t)
	h.Rescale(1, 2)
	s := h.add(every("a", 60*ms, at(h.times, Update)))
	h.run(hz50, 0, 0)
	h.wantRan("1:20ms/10ms")
	if err := s.Change(scaledEvery("a", 30*ms, nil)); err != nil {
		t.Fatal(err)
	}
	h.run(hz50, 0, 0, 0) // It ran at 10 ms of scaled time and is due at 40: in tick 4.
	h.wantRan("4:60ms/30ms")
}

// modelScaled runs a loop over ticks, steps, dropped ticks and changes of scale, and computes the
// expected times in fractions.
type modelScaled struct {
	h           *harness
	rnd         *rand.Rand
	line        Timeline
	clock, flow *exact
	steps       *exact // of the sum of the deltas of fixed steps
	stepAt      time.Duration
	drop        uint64
	calls       int
	missed      int
}

func newModelScaled(t *testing.T, seed int) *modelScaled {
	rnd := rand.New(rand.NewPCG(uint64(seed), 2))
	rates := []Rate{Hz(1), Hz(20), Hz(60), {30000, 1001}, Hz(144), Hz(1000)}
	m := &modelScaled{
		h: newHarness(t), rnd: rnd, line: Timeline{rates[rnd.IntN(len(rates))], rates[rnd.IntN(len(rates))]},
		clock: newExact(), flow: newExact(), steps: newExact(),
	}
	m.h.Follow(m.line)
	return m
}

// tick runs the next tick and returns the missed calls of its systems.
func (m *modelScaled) tick() {
	m.h.tick++
	in := m.line.Input(m.h.tick)
	in.FixedSteps = min(in.FixedSteps, 50)
	if m.rnd.IntN(8) == 0 {
		in.Dropped = uint64(m.rnd.IntN(40))
	}
	m.drop += in.Dropped
	rec, err := m.h.Step(in)
	if err != nil {
		m.h.tb.Fatal(err)
	}
	for _, s := range rec.Systems {
		m.missed += s.Missed
	}
}

// turn changes the scale between two ticks.
func (m *modelScaled) turn() {
	num, den := speed(m.rnd)
	m.h.Rescale(num, den)
	m.clock.turn(m.line.GameTime(m.h.tick), num, den)
	m.flow.turn(m.line.GameTime(m.h.tick+m.drop), num, den)
	m.steps.turn(m.stepAt, num, den)
}

// For any rates, stalls and scales: ScaledTime, the deltas and the calls of scaled periods equal
// those computed in fractions.
func TestScaledTimeDeltasAndPeriodsFollowFractions(t *testing.T) {
	for seed := range seeds(t, 60) {
		m := newModelScaled(t, seed)
		var deltas, stepDeltas time.Duration
		m.h.add(Spec[*Now]{Name: "see", Ask: at(func(n *Now) {
			deltas += n.ScaledDelta
			if want := m.clock.floor(n.GameTime); n.ScaledTime != want || deltas != want {
				t.Fatalf("seed %d, tick %d: scaled time %v, the deltas add up to %v, want %v", seed, n.Tick, n.ScaledTime, deltas, want)
			}
		}, Update)})
		m.h.add(Spec[*Now]{Name: "step", Ask: at(func(n *Now) {
			m.stepAt += n.Delta
			stepDeltas += n.ScaledDelta
			if want := m.steps.floor(m.stepAt); stepDeltas != want {
				t.Fatalf("seed %d, step %d: the deltas add up to %v, want %v", seed, n.FixedStep, stepDeltas, want)
			}
		}, FixedUpdate)})
		period := time.Duration(1 + m.rnd.Int64N(int64(2*time.Second)))
		c := scaledEvery("catch", period, at(func(*Now) { m.calls++ }, Update))
		c.CatchUp = 1 + m.rnd.IntN(6)
		m.h.add(c)
		var base time.Duration
		for i := range 300 {
			m.tick()
			if i == 0 {
				// CatchUp counts from the first tick.
				base = m.flow.floor(m.line.GameTime(1 + m.drop))
			}
			if passed := m.flow.floor(m.line.GameTime(m.h.tick+m.drop)) - base; m.calls+m.missed != int(passed/period) {
				t.Fatalf("seed %d, tick %d: %d calls and %d missed in %v with a period of %v", seed, m.h.tick, m.calls, m.missed, passed, period)
			}
			if m.rnd.IntN(10) == 0 {
				m.turn()
			}
		}
	}
}

// At a scale of 1 a scaled period equals any other one.
func TestScaledPeriodsAtScaleOneEqualGameTime(t *testing.T) {
	for seed := range seeds(t, 20) {
		m := newModelScaled(t, seed)
		period := time.Duration(1 + m.rnd.Int64N(int64(time.Second)))
		n := m.rnd.IntN(4)
		var got [2]string
		for i, scaled := range []bool{false, true} {
			s := every(fmt.Sprint(i), period, nil)
			s.Scaled, s.CatchUp = scaled, n
			s.Ask = at(func(n *Now) {
				got[i] += fmt.Sprintf(" %v %d", n.Stage, n.FixedStep)
				if s.CatchUp == 0 {
					got[i] += fmt.Sprintf(":%v/%v", n.Delta, n.ScaledDelta)
				}
			}, FixedUpdate, Update)
			m.h.add(s)
		}
		for range 100 {
			m.tick()
		}
		if got[0] != got[1] {
			t.Fatalf("seed %d:%s\nscaled:%s", seed, got[0], got[1])
		}
	}
}

func TestALoopWithoutATimelineScalesTheSumOfItsDeltas(t *testing.T) {
	h := newHarness(t)
	h.SetScale(Scale{Num: 1, Den: 3, From: time.Second, To: 5 * time.Second})
	h.add(scaledEvery("a", 10*ms, at(h.times, Update)))
	frame := func(game, delta time.Duration) {
		h.tick++
		h.ran = nil
		if _, err := h.Step(Input{Tick: h.tick, GameTime: game, Delta: delta}); err != nil {
			t.Fatal(err)
		}
	}
	frame(1003*ms, 20*ms)
	if h.wantRan("1:20ms/6.666666ms"); h.now.ScaledTime != 5001*ms {
		t.Errorf("scaled time %v, want 5.001s", h.now.ScaledTime)
	}
	frame(1006*ms, 25*ms)
	h.wantRan() // 8⅓ ms since
	frame(1007*ms, 5*ms)
	h.wantRan("3:30ms/10ms") // The thirds of a nanosecond count.
	h.SetScale(Scale{Num: 0, Den: 1, From: 0, To: 0})
	frame(1100*ms, time.Hour)
	h.wantRan()
	if h.now.ScaledTime != 0 {
		t.Errorf("scaled time %v: want the server's, also backwards", h.now.ScaledTime)
	}
}

func BenchmarkTickScaled(b *testing.B) {
	for _, den := range []uint64{1, 3} {
		b.Run(fmt.Sprintf("1 of %d", den), func(b *testing.B) {
			l := newHarness(b)
			l.Follow(at60)
			l.Rescale(1, den)
			b.ReportAllocs()
			for b.Loop() {
				l.tick++
				if _, err := l.Step(at60.Input(l.tick)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestATimerKeepsItsElapsedTimeBetweenTicksAndSteps(t *testing.T) {
	h := newHarness(t)
	s := h.add(every("a", 100*ms, at(h.deltas, Update, FixedUpdate)))
	h.set(s, func(s *Spec[*Now]) { s.Stages = []Stage{Update} })
	line := Timeline{Rate: Hz(50), Fixed: Hz(20)} // Ticks of 20 ms, steps of 50.
	h.run(line, 0, 0, 0, 0)
	h.wantRan("1:20ms")
	h.set(s, func(s *Spec[*Now]) { s.Stages = []Stage{FixedUpdate} })
	h.run(line, 0, 0, 0) // 60 ms had passed, and a step of 50 makes 110, in tick 5.
	h.wantRan("5:110ms")
	h.set(s, func(s *Spec[*Now]) { s.Stages = []Stage{Update} })
	// The phase is that of steps: 10 ms past 100 ms, which were the 140 ms of ticks 5 to 7.
	h.run(line, 0, 0, 0, 0, 0)
	h.wantRan("12:100ms")
}

func TestANewScaledPeriodStartsAtTheLastTick(t *testing.T) {
	h := newHarness(t)
	s := h.add(Spec[*Now]{Name: "a", Ask: at(h.times, Update)})
	h.run(hz50, 0, 0, 0)
	h.Rescale(1, 2)
	h.set(s, func(s *Spec[*Now]) { s.Periodic, s.Period = true, 40*ms })
	h.run(hz50, 0, 0)
	h.wantRan("5:40ms/20ms")
}

// TestUntilIsTheFirstGameTimeOfAScaledTime: not a nanosecond earlier or later, also after a
// change of speed within a nanosecond of scaled time.
func TestUntilIsTheFirstGameTimeOfAScaledTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := Scale{Num: rnd.Uint64N(16), Den: 1 + rnd.Uint64N(7), From: time.Duration(rnd.IntN(30)), To: time.Duration(rnd.IntN(30)), Frac: rnd.Uint64()}
		at := time.Duration(rnd.IntN(100))
		until := s.Until(at)
		switch {
		case until == never:
			if s.Num > 0 || at <= s.To {
				t.Fatalf("%+v never reaches %v", s, at)
			}
		case s.At(until) < at, until < s.From, until > s.From && s.At(until-1) >= at:
			t.Fatalf("%+v reaches %d first at %d, and Until returns %d", s, at, s.At(until), until)
		}
	}
}
