package metrics

import (
	"math"
	"testing"
	"time"
)

func TestTickRate(t *testing.T) {
	m, clock := newMetrics(t)
	rate := func() float64 { _, hertz := m.Pace(); return hertz }
	if rate() != 0 {
		t.Error("there is a rate before the first tick")
	}
	play(m, clock, 1, 6000)
	if got := rate(); math.Abs(got-60) > 0.01 {
		t.Errorf("got %v Hz, want 60", got)
	}
	clock.set(clock.now() + 2500*time.Millisecond)
	if got := rate(); got < 25 || got > 35 {
		t.Errorf("after 2.5 s without a tick: %v Hz, want about half", got)
	}
	clock.set(clock.now() + time.Minute)
	if got := rate(); got != 0 {
		t.Errorf("after a minute without a tick: %v Hz", got)
	}
}

func TestTheWindowOfTicksIsExact(t *testing.T) {
	m, clock := newMetrics(t)
	play(m, clock, 1, 100)
	before := m.Ticks()
	play(m, clock, 101, 1300)
	after := m.Ticks()
	window, err := after.Sub(&before)
	if err != nil {
		t.Fatal(err)
	}
	if window.Ticks != 1200 || math.Abs(window.RateHz()-60) > 1e-4 {
		t.Errorf("%d ticks at %v Hz", window.Ticks, window.RateHz())
	}
	if got := window.Tick.Percentile(99); got < 2*time.Millisecond || got > 2002*time.Microsecond {
		t.Errorf("p99 %v", got)
	}
	if late := window.Lateness.Percentile(99); late < 299*time.Microsecond || late > 301*time.Microsecond {
		t.Errorf("p99 of the lateness %v, want 300 µs", late)
	}
	if since, period := m.Progress(); since != 0 || period != budget {
		t.Errorf("progress %v, %v", since, period)
	}
	clock.set(clock.now() + 3*time.Second)
	if since, _ := m.Progress(); since != 3*time.Second {
		t.Errorf("progress %v after 3 s", since)
	}
}

// The uptime ends with the start of the newest tick, so that it has whole periods, and increases
// without ticks once two periods have passed.
func TestUptimeHasWholePeriodsUntilTicksStop(t *testing.T) {
	clock := &fake{t: time.Hour}
	all, err := New(nil, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	m := one{all, all.Open("")}
	clock.set(time.Hour + time.Second)
	if up := m.Ticks().Uptime; up != time.Second {
		t.Errorf("up for %v before the first tick, want 1s", up)
	}
	rec := record(1)
	rec.Start = time.Hour + 2*time.Second
	m.ObserveTick(rec, budget)
	for after, want := range map[time.Duration]time.Duration{
		2*budget - 1: 2 * time.Second,
		2 * budget:   2*time.Second + 2*budget,
	} {
		clock.set(rec.Start + after)
		if up := m.Ticks().Uptime; up != want {
			t.Errorf("up for %v, %v after the newest tick has begun, want %v", up, after, want)
		}
	}
}

func BenchmarkObserveTick(b *testing.B) {
	m, clock := newMetrics(b)
	play(m, clock, 1, 2)
	rec := record(3)
	for len(rec.Systems) < 50 {
		rec.Systems = append(rec.Systems, rec.Systems...)
	}
	rec.Systems = rec.Systems[:50]
	b.ReportAllocs()
	for b.Loop() {
		m.ObserveTick(rec, budget)
	}
}

// Of a fast room the last 1 024 ticks are measured.
func TestTheRateOfManyTicks(t *testing.T) {
	var w rateWindow
	for n := range 3000 {
		w.add(time.Duration(n) * time.Millisecond)
	}
	if hz := w.hertz(2999*time.Millisecond, time.Millisecond); math.Abs(hz-1000) > 1e-6 {
		t.Errorf("a thousand ticks a second are %v Hz", hz)
	}
}
