package clock

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A block of exchanges gives the offset of its least delays, at the mean of its times, with an
// uncertainty that is a part of the mean delay's distance above the least; for any distance of the
// clocks from 0.
func TestAPointIsOfTheLeastDelays(t *testing.T) {
	const ms = time.Millisecond
	for _, from := range []time.Duration{0, maxSyncTime - time.Minute, time.Minute - maxSyncTime} {
		var block [driftBlock]exchange
		for i := range block {
			n := time.Duration(i) * ms
			block[i] = exchange{at: from + 100*n, there: 30*ms + n - 2*from, back: 17*ms - 2*n + 2*from}
		}
		// The means are 3.5 and 7 ms above the least: 30 ms, and 3 ms.
		want := driftPoint{at: from + 350*ms, offset: 27*ms/2 - 2*from, noise: 20*time.Microsecond + 1050*time.Microsecond}
		if got := pointOf(&block); got != want {
			t.Errorf("from %v: %+v, want %+v", from, got, want)
		}
	}
}

// The rate is the slope of the line through the points of the last minute, drawn to 0 by their
// uncertainty (ridge regression), and at most that of a real clock.
func TestTheRateIsTheSlopeThroughThePoints(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		const points, most = 24, 500e-6
		rate := (rng.Float64()*2 - 1) * 700e-6
		var d drift
		var all []driftPoint
		now, offset := time.Duration(rng.Int64N(int64(time.Hour))), time.Duration(rng.Int64N(int64(time.Hour)))
		for range driftBlock * points * 2 {
			now += 200*time.Millisecond + time.Duration(rng.Int64N(int64(300*time.Millisecond)))
			ahead := offset + time.Duration(rate*float64(now))
			there, back := time.Duration(rng.Int64N(int64(20*time.Millisecond))), time.Duration(rng.Int64N(int64(20*time.Millisecond)))
			if d.add(exchange{at: now, there: ahead + there, back: back - ahead}); d.inside > 0 {
				continue
			}
			all = append(all, pointOf(&d.block))
			if want := slope(all[max(0, len(all)-points):], most); math.Abs(d.rate-want) > 1e-9 {
				t.Fatalf("seed %d: after %d points the rate is %v, want %v", seed, len(all), d.rate, want)
			}
		}
		// After a minute it is known to some millionths.
		if want := min(max(rate, -most), most); math.Abs(d.rate-want) > 50e-6 {
			t.Errorf("seed %d: the rate is %v of %v", seed, d.rate, rate)
		}
		if got := d.over(time.Hour); (got - time.Duration(d.rate*float64(time.Hour))).Abs() > 1 {
			t.Errorf("seed %d: in an hour it gains %v at %v", seed, got, d.rate)
		}
	}
}

// slope computes the same from sums of products about the first point, not about the means.
func slope(points []driftPoint, most float64) float64 {
	var n, x, y, xx, xy, noise float64
	for _, p := range points {
		at, offset := (p.at - points[0].at).Seconds(), (p.offset - points[0].offset).Seconds()
		n, x, y, xx, xy = n+1, x+at, y+offset, xx+at*at, xy+at*offset
		noise += p.noise.Seconds()
	}
	ridge := noise / n / usualDrift
	return min(max((xy-x*y/n)/(xx-x*x/n+ridge*ridge), -most), most)
}
