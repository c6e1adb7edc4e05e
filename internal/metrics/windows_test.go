package metrics

import (
	"testing"
	"time"
)

// A window holds the ticks of its span and no older ones, and its percentiles are near the exact
// ones and not below them.
func TestAWindowHoldsTheLastTicks(t *testing.T) {
	var w windows
	const ms = time.Millisecond
	for i := range 3600 { // ten minutes at 6 Hz: the tick gets slower each minute
		start := time.Duration(i) * time.Second / 6
		w.add(start, time.Duration(i/360+1)*ms, time.Duration(i%100)*ms/100, i%360 == 0, uint64(i%2))
	}
	now := 10*time.Minute - time.Nanosecond
	for span, want := range map[time.Duration]struct {
		ticks, overruns uint64
		least, most     time.Duration
	}{
		10 * time.Second: {60, 0, 10 * ms, 10 * ms},
		time.Minute:      {360, 1, 10 * ms, 10 * ms},
		windowSpan:       {1800, 5, 6 * ms, 10 * ms},
	} {
		got := w.over(now, span)
		if got.Ticks != want.ticks || got.Overruns != want.overruns || got.Dropped != want.ticks/2 || got.Tick.Max != want.most {
			t.Errorf("%v: %+v", span, got)
		}
		if near := func(got, want time.Duration) bool {
			return got >= want && float64(got) <= 1.045*float64(want) || got == want
		}; !near(got.Tick.P99, want.most) || got.Tick.P50 < want.least || !near(got.Lateness.P99, 980*time.Microsecond) {
			t.Errorf("%v: %+v", span, got)
		}
	}
	if got := w.over(now+time.Minute, time.Minute); got.Ticks != 0 || got.Tick != (Quantiles{}) {
		t.Errorf("a minute without ticks: %+v", got)
	}
	if got := (&windows{}).over(time.Second, time.Minute); got.Ticks != 0 {
		t.Errorf("no ticks: %+v", got)
	}
}
