package loadtest

import (
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop/client"
)

// The records of frames and workers are added up, each by the change of its client's counters
// since its last frame, and reported per minute of play, per frame and per datagram.
func TestFeelRecordsAreAddedUp(t *testing.T) {
	stats := func(n uint64) *client.Stats {
		return &client.Stats{
			ViewDelay: 50 * time.Millisecond, Drawn: 8 * n, Starved: 2 * n, Inputs: 100 * n, InputBytes: 700 * n, InputPackets: 50 * n,
			InputsMissed: 4 * n, Prediction: client.PredictionStats{Mispredicted: 6 * n, MispredictedLate: 3 * n},
		}
	}
	a, b := newFeelRecorder(), newFeelRecorder()
	a.frame(stats(3), stats(2))
	b.frame(stats(7), stats(6))
	anew, before := stats(7), stats(7) // A new client that has drawn no frame.
	anew.InputsMissed = 3
	b.frame(anew, before)
	record(b.clock, 2*time.Millisecond)
	w := &worker{run: new(run), rec: &recorder{feel: b}}
	w.run.window.open(time.Second, 2*time.Second)
	m := Meter{worker: w}
	for _, at := range []time.Duration{time.Second - 1, time.Second, 2 * time.Second} {
		m.reacted(at, 3)
		m.corrected(at, 0.25)
		m.hit(at, true)
		m.hit(at, false)
	}
	a.merge(b)
	f := a.result(3, 30*time.Second) // one minute and a half of play
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"mispredicted": {f.Mispredicted, 8}, "late": {f.MispredictedLate, 4}, "starved": {f.Starved, 0.25}, "input bytes": {f.InputBytes, 14},
		"reaction": {f.Reaction.P50, 3}, "correction": {f.Correction.P99, 0.25}, "delay": {f.Delay.Max, 50}, "clock": {f.ClockError.P50, 2},
	} {
		if !is(c.got, c.want) {
			t.Errorf("%s: %s, want %v", name, figure(c.got), c.want)
		}
	}
	if f.Inputs != 200 || f.InputsMissed != 8 || f.Hits != 2 || f.Confirmed != 1 {
		t.Errorf("%d inputs, %d missed, %d hits, %d confirmed", f.Inputs, f.InputsMissed, f.Hits, f.Confirmed)
	}
	for name, n := range map[string]int64{
		"reaction": a.reaction.TotalCount(), "correction": a.correction.TotalCount(), "delay": a.delay.TotalCount() - 1,
	} {
		if n != 1 {
			t.Errorf("%s: %d samples", name, n)
		}
	}
}

// A bot's reports have the bounds of all samples, ratios are rounded to a hundred-thousandth, and
// ratios without samples are unknown.
func TestFeelRecordsOutOfRange(t *testing.T) {
	f := newFeelRecorder()
	if got := f.result(1, time.Minute); got.Reaction != (Spread{}) || got.Correction != (Spread{}) {
		t.Errorf("of nothing %+v", got)
	}
	w := &worker{run: new(run), rec: &recorder{feel: f}}
	w.run.window.open(0, time.Second)
	m := Meter{worker: w}
	m.reacted(0, math.MaxInt)
	m.corrected(0, 1e12)
	got := f.result(1, time.Minute)
	if !is(got.Reaction.Max, highestMicros) || !is(got.Correction.Max, highestMicros/1000.) {
		t.Errorf("reaction %s, correction %s", figure(got.Reaction.Max), figure(got.Correction.Max))
	}
	if got.Starved != nil || got.InputBytes != nil || got.Delay != (Spread{}) {
		t.Errorf("of no frame %+v", got)
	}
	for want, a := range map[float64]float64{0.33333: 1. / 3, 0.66667: 2. / 3} {
		if x := ratio(a, 1); *x != want {
			t.Errorf("%v is reported as %v", a, *x)
		}
	}
	for i := range 1000 {
		m.reacted(0, i+1)
	}
	if got := f.result(1, time.Minute).Reaction; !is(got.P50, 501) || !is(got.P99, 991) || !is(got.Max, highestMicros) {
		t.Errorf("of 1 to 1000 frames, and one beyond: %s, %s, %s", figure(got.P50), figure(got.P99), figure(got.Max))
	}
}
