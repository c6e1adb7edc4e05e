package overload

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const period = time.Second / 60

// feed gives a ladder n windows of the same tick, and returns the level after each.
func feed(l *Ladder, n int, s Sample) []Level {
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
func busy(share float64) Sample { return Sample{Duration: time.Duration(share * float64(period))} }

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

// Between the thresholds nothing happens, and what was calm before does not count.
func TestNeitherHotNorCalmHolds(t *testing.T) {
	l := New(period)
	feed(l, 1, busy(1))
	for range 5 {
		feed(l, holdWindows-1, busy(0.1))
		for _, got := range feed(l, 1, busy(0.8)) {
			if got != Halved {
				t.Fatalf("%v, want %v", got, Halved)
			}
		}
	}
}

// One stall, however long, is a long tick and five late ones.
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

// A load that only the higher level can carry is tried again more and more rarely.
func TestALoadThatComesBackIsTriedRarely(t *testing.T) {
	l := New(period)
	var changes []int
	last := Normal
	for w := range 4 * maxHoldWindows {
		share := 1.0
		if l.Level() > Normal {
			share = 0.6
		}
		feed(l, 1, busy(share))
		if l.Level() != last {
			last = l.Level()
			changes = append(changes, w)
		}
	}
	if len(changes) > 20 { // Of 2 560 that a hold that does not grow would make 460.

		t.Errorf("%d changes: %v", len(changes), changes)
	}
	if n := len(changes); n < 4 || changes[n-2]-changes[n-3] <= holdWindows {
		t.Errorf("changes at windows %v: the time between them does not grow", changes)
	}
}

// After a long calm the ladder is as it was at first.
func TestCalmForgetsTheHold(t *testing.T) {
	l := New(period)
	for range 5 {
		feed(l, 1, busy(1))
		feed(l, maxHoldWindows, busy(0.1))
	}
	feed(l, maxHoldWindows, busy(0.1))
	feed(l, 1, busy(1))
	if got := feed(l, holdWindows, busy(0.1)); got[holdWindows-1] != Normal {
		t.Errorf("%v after %d calm windows, want %v", got[holdWindows-1], holdWindows, Normal)
	}
}

// A load that is always the same moves the ladder in one direction only, whatever it is.
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

// Whatever one client of three or more says, the median lies within what the others say.
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

func TestObserveAllocatesNothing(t *testing.T) {
	l, lags := New(period), make([]time.Duration, 200)
	if n := testing.AllocsPerRun(1000, func() {
		l.Observe(Sample{Duration: period, FlushLag: Median(lags)})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
