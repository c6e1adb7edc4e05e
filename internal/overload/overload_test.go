package overload

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/testing/seeds"
)

const period = time.Second / 60

// feed gives a monitor n windows of the same tick, and returns the level after each.
func feed(l *Monitor, n int, s Sample) []Level {
	var levels []Level
	for range n * l.Window() {
		ends := l.WindowEnds()
		level := l.Observe(s)
		if ends {
			levels = append(levels, level)
		}
	}
	return levels
}

// busy is a tick that takes a share of its period.
func busy(share float64) Sample { return busyOf(period, share) }

func busyOf(p time.Duration, share float64) Sample {
	return Sample{Duration: time.Duration(share * float64(p))}
}

func TestEachSignalClimbsOneStepAWindow(t *testing.T) {
	for name, s := range map[string]Sample{
		"tick time": busy(0.95),
		"lateness":  {Duration: period / 10, Lateness: period + 1},
		"flush lag": {Duration: period / 10, FlushLag: period + 1},
	} {
		l := New(period)
		for i, got := range feed(l, 5, s) {
			if want := min(Level(i+1), Highest); got != want {
				t.Errorf("%s: %v after window %d, want %v", name, got, i+1, want)
			}
		}
	}
}

func TestDescendsAStepAtATime(t *testing.T) {
	l := New(period)
	feed(l, 3, busy(1.2))
	down := feed(l, 3*holdWindows, busy(0.2))
	for i, got := range down {
		if want := Highest - Level((i+1)/holdWindows); got != want {
			t.Fatalf("%v after %d calm windows, want %v", got, i+1, want)
		}
	}
}

// Between the thresholds a step down takes four times as long, and calm windows count in full
// beside warm ones.
func TestAWarmRoomDescendsSlowly(t *testing.T) {
	for _, tt := range []struct{ calm, warm int }{{0, 40}, {9, 4}, {1, 36}, {10, 0}} {
		l := New(period)
		feed(l, 1, busy(1))
		feed(l, tt.calm, busy(0.1))
		last := l.Level()
		for _, got := range feed(l, tt.warm, busy(0.8)) {
			if last == Normal {
				t.Errorf("after %d calm windows, fewer than %d warm ones are a step down", tt.calm, tt.warm)
			}
			last = got
		}
		if last != Normal {
			t.Errorf("%v after %d calm and %d warm windows", last, tt.calm, tt.warm)
		}
	}
}

// After the last hot window newcomers are admitted again within Recovery and a window, and the
// level is Normal within three times that: for each earlier load, at each rate, at each load below
// the thresholds, also if each step down adds some load.
func TestNewcomersAreAdmittedAgain(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 28))
		p := time.Second / time.Duration([]int{1, 2, 5, 20, 30, 60, 128}[rng.IntN(7)])
		l := New(p)
		window := time.Duration(l.Window()) * p
		for range rng.IntN(200) { // Any load.
			share := 1.5 * rng.Float64()
			for range 1 + rng.IntN(20) {
				feed(l, 1, busyOf(p, share))
			}
		}
		feed(l, 3, busyOf(p, 2))
		if l.Level() != Refusing {
			t.Fatalf("three hot windows make it %v", l.Level())
		}
		// Nine tenths is too high; a step down adds up to a third of the remaining time.
		least := 0.1 + 0.799*rng.Float64()
		most := least + (0.899-least)*rng.Float64()
		load := func() float64 { return most - (most-least)*float64(l.Level())/float64(Highest) }
		for left := Recovery + window; l.Level() == Refusing; left -= window {
			if left <= 0 {
				t.Fatalf("at %v a load of %.3f keeps newcomers out for more than %v", p, load(), Recovery+window)
			}
			feed(l, 1, busyOf(p, load()))
		}
		for left := 2 * (Recovery + window); l.Level() > Normal; left -= window {
			if left <= 0 {
				t.Fatalf("at %v a load of %.3f leaves it %v", p, load(), l.Level())
			}
			feed(l, 1, busyOf(p, load()))
		}
	})
}

// At a load between the thresholds each step down takes 20 s, without earlier steps.
func TestAfterOneSpikeAWarmRoomIsOpenSoon(t *testing.T) {
	for _, share := range []float64{0.70, 0.72, 0.8, 0.88, 0.899} {
		l := New(period)
		feed(l, 3, busy(1.2))
		windows := 0
		for ; l.Level() == Refusing && windows < 1000; windows++ {
			feed(l, 1, busy(share))
		}
		if took := time.Duration(windows*l.Window()) * period; took > 21*time.Second {
			t.Errorf("at a load of %v newcomers are refused for %v", share, took)
		}
	}
}

// One stall of any length is a long tick and five late ones.
func TestAStallIsNoOverload(t *testing.T) {
	for _, p := range []time.Duration{time.Second / 240, period, time.Second / 20, time.Second} {
		l := New(p)
		for i := range 10 * l.Window() {
			s := Sample{Duration: p / 2}
			switch at := i % l.Window(); {
			case at == 2:
				s.Duration = time.Hour
			case at > 2 && at <= 7:
				s.Lateness = time.Duration(8-at) * p
			}
			if got := l.Observe(s); got != Normal {
				t.Fatalf("at %v a stall made it %v", p, got)
			}
		}
	}
}

// A window is half a second in whole ticks, and 16 ticks at least.
// The ticks before a sleep do not count after it.
func TestARestartForgetsTheWindow(t *testing.T) {
	l := New(period)
	for range 100 {
		for range l.Window() - 1 {
			l.Observe(Sample{Duration: period, Lateness: outlier * period})
		}
		l.Restart()
	}
	feed(l, 1, Sample{})
	if f := l.Facts(); l.Level() != Normal || f.Last != (Means{}) {
		t.Errorf("level %v, %+v", l.Level(), f.Last)
	}
}

func TestAWindowIsHalfASecondOrSixteenTicks(t *testing.T) {
	for _, tt := range []struct {
		period time.Duration
		ticks  int
	}{
		{time.Millisecond, 500}, {10 * time.Millisecond, 50}, {10*time.Millisecond + 1, 50}, {10*time.Millisecond - 1, 51},
		// At 691 ns a window is just over half a second.
		{691, 723_590}, {period, 31}, {31_250_000, 16}, {time.Second, 16},
	} {
		l := New(tt.period)
		if got := l.Window(); got != tt.ticks {
			t.Errorf("%d ticks of %v, want %d", got, tt.period, tt.ticks)
		}
		for i := range 2 * tt.ticks {
			if got, want := l.WindowEnds(), (i+1)%tt.ticks == 0; got != want {
				t.Fatalf("%v: tick %d ends a window: %v, want %v", tt.period, i, got, want)
			}
			l.Observe(Sample{})
		}
	}
}

// even is a period of which fifty make a window, so that shares of a window are exact.
const even = 10 * time.Millisecond

// window returns the ticks of a window: so many of each sample, the others idle.
func window(samples map[Sample]int, lag time.Duration) []Sample {
	var ticks []Sample
	for s, n := range samples {
		ticks = append(ticks, slices.Repeat([]Sample{s}, n)...)
	}
	ticks = append(ticks, make([]Sample, 50-len(ticks))...)
	ticks[49].FlushLag = lag
	return ticks
}

// A value is hot from exactly the threshold on, to the nanosecond. A tick counts as four at most,
// and a negative value as 0.
func TestTheThresholdsAreExact(t *testing.T) {
	const hot, between, calm = "hot", "between", "calm"
	busy := func(n int, d time.Duration) map[Sample]int { return map[Sample]int{{Duration: d}: n} }
	late := func(n int, d time.Duration) map[Sample]int { return map[Sample]int{{Lateness: d}: n} }
	for name, tt := range map[string]struct {
		ticks map[Sample]int
		lag   time.Duration
		want  string
	}{
		"nine tenths":                {busy(50, 9*time.Millisecond), 0, hot},
		"not quite":                  {busy(50, 9*time.Millisecond-1), 0, between},
		"seven tenths":               {busy(50, 7*time.Millisecond), 0, between},
		"less":                       {busy(50, 7*time.Millisecond-1), 0, calm},
		"a tick late":                {late(50, even), 0, hot},
		"not quite a tick late":      {late(50, even-1), 0, between},
		"half a tick late":           {late(50, even/2), 0, between},
		"less than half a tick late": {late(50, even/2-1), 0, calm},
		"a tick of lag":              {nil, even, hot},
		"not quite a tick of lag":    {nil, even - 1, between},
		"half a tick of lag":         {nil, even / 2, between},
		"less than that":             {nil, even/2 - 1, calm},
		"eleven hours and a tick":    {map[Sample]int{{Duration: time.Hour}: 11, {Duration: even}: 1}, 0, hot},
		"eleven hours and less":      {map[Sample]int{{Duration: time.Hour}: 11, {Duration: even - 1}: 1}, 0, between},
		"hours late":                 {map[Sample]int{{Lateness: time.Hour}: 12, {Lateness: even}: 2}, 0, hot},
		"hours late and less":        {map[Sample]int{{Lateness: time.Hour}: 12, {Lateness: 2*even - 1}: 1}, 0, between},
		"a clock that went back":     {map[Sample]int{{Duration: even}: 44, {Duration: even - 1}: 1, {Duration: -time.Hour}: 5}, 0, between},
		"ticks before their time":    {map[Sample]int{{Lateness: 2 * even}: 24, {Lateness: 2*even - 1}: 1, {Lateness: -time.Hour}: 5}, 0, between},
	} {
		l := New(even)
		judge := func() Level {
			for _, s := range window(tt.ticks, tt.lag) {
				l.Observe(s)
			}
			return l.Level()
		}
		got := between
		for range 2 { // Each window is evaluated separately.
			if judge() > Normal {
				got = hot
			}
		}
		if got != hot {
			for range l.Window() {
				l.Observe(Sample{Duration: time.Hour})
			}
			for range 10 {
				if judge() == Normal {
					got = calm
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A step of a script lists windows, h for a hot and c for a calm one, and the expected level after
// the last.
func TestStepsDownWaitForCalmInARowAndTwiceAsLongWhenTheLoadReturns(t *testing.T) {
	type step struct {
		windows string
		want    Level
	}
	calm := func(n int) string { return strings.Repeat("c", n) }
	for name, script := range map[string][]step{
		"ten":                      {{"h", Halved}, {calm(9), Halved}, {"c", Normal}},
		"each of its own":          {{"hh", Shedding}, {calm(19), Halved}, {"c", Normal}},
		"in a row":                 {{"h", Halved}, {calm(9) + "h", Shedding}, {calm(9), Shedding}, {"c", Halved}},
		"in a row at the top":      {{"hhh", Refusing}, {calm(9) + "h" + calm(9), Refusing}, {"c", Shedding}},
		"back in the tenth":        {{"h" + calm(10), Normal}, {calm(9) + "h", Halved}, {calm(19), Halved}, {"c", Normal}},
		"back in the eleventh":     {{"h" + calm(10), Normal}, {calm(10) + "h", Halved}, {calm(9), Halved}, {"c", Normal}},
		"back from a higher level": {{"hh" + calm(10), Halved}, {"h", Shedding}, {calm(19), Shedding}, {"c", Halved}},
		"back by three steps":      {{"h" + calm(10), Normal}, {"hhh", Refusing}, {calm(19), Refusing}, {"c", Shedding}},
		"back in the twentieth":    {{"h" + calm(10) + "h" + calm(20), Normal}, {calm(19) + "h", Halved}, {calm(39), Halved}, {"c", Normal}},
		"forgotten after twenty":   {{"h" + calm(10) + "h" + calm(20), Normal}, {calm(20) + "h", Halved}, {calm(9), Halved}, {"c", Normal}},
	} {
		l := New(even)
		for i, s := range script {
			for _, w := range s.windows {
				for range l.Window() {
					l.Observe(Sample{Duration: map[rune]time.Duration{'h': even}[w]})
				}
			}
			if l.Level() != s.want {
				t.Errorf("%s: %v after step %d, %s, want %v", name, l.Level(), i, s.windows, s.want)
				break
			}
		}
	}
}

// A load that needs the higher level is retried ever more rarely.
func TestAReturningLoadIsTriedRarely(t *testing.T) {
	l := New(period)
	wants := []int{10, 20, 40, 80, 160, 320}
	for range 100 { // Longer than a doubling duration would fit into 64 bits.
		wants = append(wants, 580)
	}
	for _, want := range wants {
		feed(l, 1, busy(1))
		windows := 0
		for l.Level() > Normal && windows < 1000 {
			feed(l, 1, busy(0.6))
			windows++
		}
		if windows != want {
			t.Fatalf("it is tried again after %d windows, want %d", windows, want)
		}
	}
}

// A constant load changes the level in one direction only, for any value.
func TestAConstantLoadNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := time.Second / time.Duration(rapid.IntRange(1, 1000).Draw(t, "rate"))
		l := New(p)
		for range rapid.IntRange(0, int(Highest)).Draw(t, "from") {
			feed(l, 1, Sample{Duration: 2 * p})
		}
		part := func(name string) time.Duration {
			return time.Duration(rapid.Float64Range(0, 3).Draw(t, name) * float64(p))
		}
		s := Sample{Duration: part("duration"), Lateness: part("lateness"), FlushLag: part("lag")}
		up, down := false, false
		last := l.Level()
		for _, level := range feed(l, 8*holdWindows, s) {
			up, down = up || level > last, down || level < last
			last = level
		}
		if up && down {
			t.Fatalf("%+v of %v went up and down", s, p)
		}
	})
}

// For any value of one client of three or more, the median is within the values of the others.
func TestOneClientNeverMovesTheMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lag := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "lag")) })
		lags := rapid.SliceOfN(lag, 2, 50).Draw(t, "healthy")
		least, most := lags[0], lags[0]
		for _, d := range lags {
			least, most = min(least, d), max(most, d)
		}
		lags = append(lags, rapid.SampledFrom([]time.Duration{0, 1 << 62}).Draw(t, "odd one"))
		if m := Median(lags); m < least || m > most {
			t.Fatalf("median %v of %v", m, lags)
		}
	})
	for n := range MinClients {
		if m := Median(make([]time.Duration, n)); m != 0 {
			t.Errorf("median %v of %d clients", m, n)
		}
	}
	if m := Median([]time.Duration{time.Hour, time.Hour}); m != 0 {
		t.Errorf("two clients make a median of %v", m)
	}
}

func TestTheMedianIsTheLowerOfTwoMiddles(t *testing.T) {
	for _, tt := range []struct {
		lags []time.Duration
		want time.Duration
	}{
		{[]time.Duration{9, 1}, 0}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 1, 2, 3}, 2}, {[]time.Duration{1, 2, 9, 8, 3}, 3},
	} {
		if got := Median(slices.Clone(tt.lags)); got != tt.want {
			t.Errorf("median %d of %d, want %d", got, tt.lags, tt.want)
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	l, lags := New(period), make([]time.Duration, 200)
	if n := testing.AllocsPerRun(1000, func() {
		l.Observe(Sample{Duration: period, FlushLag: Median(lags)})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Each step down of a warm room takes the same number of windows: those of the hold, or those of
// Recovery once the hold has grown beyond it.
func TestEachStepDownCountsItsWindowsAnew(t *testing.T) {
	recovery := int(Recovery / (time.Duration(New(even).Window()) * even))
	for returns, want := range map[int]int{0: calmCredit * holdWindows, 10: recovery} {
		l := New(even)
		for range returns { // The load returns after each step down, which doubles the hold.
			feed(l, 1, busyOf(even, 1))
			for windows := 0; l.Level() > Normal && windows < 1000; windows++ {
				feed(l, 1, busyOf(even, 0.6))
			}
		}
		feed(l, int(Highest), busyOf(even, 1))
		for level := Highest; level > Normal; level-- {
			windows := 0
			for ; l.Level() == level && windows < 1000; windows++ {
				feed(l, 1, busyOf(even, 0.8))
			}
			if windows != want {
				t.Errorf("after %d returns %v lasts %d windows, want %d", returns, level, windows, want)
			}
		}
	}
}
