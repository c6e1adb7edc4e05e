package slowtick

import (
	"testing"
	"time"
)

// The cause of a slow or late tick is the largest known part of it.
func TestCauses(t *testing.T) {
	const budget, ms = 16 * time.Millisecond, time.Millisecond
	system := func(cost time.Duration) System { return System{Name: "ai", Cost: cost} }
	for name, c := range map[string]struct {
		record Record
		ended  time.Duration // end of the tick before
		want   Cause
	}{
		"on time":                {Record{Start: 100 * ms, Duration: 16 * ms, Lateness: 4*ms - 1}, 0, CauseNone},
		"one system":             {Record{Duration: 20 * ms, Blame: system(10 * ms), Systems: []System{system(10 * ms)}, GC: GC{CPU: 20 * ms}}, 0, CauseSystem},
		"the collector":          {Record{Duration: 20 * ms, Blame: system(9 * ms), Systems: []System{system(9 * ms)}, GC: GC{CPU: 10 * ms}}, 0, CauseGC},
		"many systems":           {Record{Duration: 20 * ms, Blame: system(5 * ms), Systems: []System{system(5 * ms)}, Others: Others{3, 5 * ms}}, 0, CauseStage},
		"the host during a tick": {Record{Duration: 20 * ms, Blame: system(5 * ms), Systems: []System{system(5 * ms)}}, 0, CauseHost},
		"late behind a slow one": {Record{Start: 100 * ms, Lateness: 5 * ms, Duration: ms}, 95*ms + 1, CauseBehind},
		"late after a pause":     {Record{Start: 100 * ms, Lateness: 6 * ms, Duration: ms, GC: GC{Pauses: 3 * ms}}, 94 * ms, CauseGC},
		"late by the host":       {Record{Start: 100 * ms, Lateness: 6 * ms, Duration: ms, GC: GC{Pauses: 3*ms - 1, CPU: 50 * ms}}, 94 * ms, CauseHost},
	} {
		if got := causeOf(&c.record, budget, c.ended); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// After returns the ticks that follow a tick, the oldest first, and none when there is no news.
func TestAfterReturnsTheNewTicks(t *testing.T) {
	l := New(time.Second / 60)
	for n := range uint64(LastTicks + 10) {
		l.Observe(tick(n+1, time.Millisecond), &Facts{})
	}
	all := l.After(0).Ticks
	if len(all) != LastTicks || all[0].Tick != 11 || all[len(all)-1].Tick != LastTicks+10 {
		t.Fatalf("%d ticks from %d", len(all), all[0].Tick)
	}
	if got := l.After(LastTicks + 7).Ticks; len(got) != 3 || got[0].Tick != LastTicks+8 {
		t.Errorf("%d ticks", len(got))
	}
	if got := l.After(LastTicks + 10).Ticks; len(got) != 0 {
		t.Errorf("%d ticks", len(got))
	}
}
