package loadtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a distribution with its tail.
type Latency struct {
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p999"` // 99.9 %
	Max  *float64 `json:"max"`
}

// Spread is a distribution.
type Spread struct {
	P50  *float64 `json:"p50"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p999"` // 99.9 %
	Max  *float64 `json:"max"`
}

// ClientRate is a distribution over clients.
type ClientRate struct {
	Min *float64 `json:"min"`
	P50 *float64 `json:"p50"`
}

func latency(h *hdrhistogram.Histogram) Latency {
	return Latency{percentile(h, 50), percentile(h, 90), percentile(h, 99), percentile(h, 99.9), percentile(h, 100)}
}

func spread(h *hdrhistogram.Histogram) Spread {
	return Spread{percentile(h, 50), percentile(h, 99), percentile(h, 99.9), percentile(h, 100)}
}

// counted is a distribution of /ticks.
type counted interface {
	Count() uint64
	Percentile(p float64) time.Duration
	Max() time.Duration
}

func spreadOf(h counted) Spread {
	if h.Count() == 0 {
		return Spread{}
	}
	return Spread{millis(h.Percentile(50)), millis(h.Percentile(99)), millis(h.Percentile(99.9)), millis(h.Max())}
}

// clientRate is the distribution over clients of the snapshots that each received within a time.
// The median of an even number is the lower of the two in the middle.
func clientRate(received []uint64, length time.Duration) ClientRate {
	if len(received) == 0 || length <= 0 {
		return ClientRate{}
	}
	slices.Sort(received)
	rate := func(n uint64) *float64 { return hundredths(float64(n) / length.Seconds()) }
	return ClientRate{Min: rate(received[0]), P50: rate(received[(len(received)-1)/2])}
}

// hundredths rounds to two decimals.
func hundredths(x float64) *float64 { return new(math.Round(x*100) / 100) }

// saturated reports whether the generator was too slow in the measured window: see [Result].
func saturated(r *recorder, tick time.Duration) bool {
	late := time.Duration(r.lateness.ValueAtPercentile(99)) * time.Microsecond
	return late > tick || float64(r.sent) < 0.99*float64(r.intended)
}

// Histogram is the exact content of an HDR histogram, in microseconds unless its name says
// otherwise. It has the form of the histograms of /ticks.
type Histogram struct {
	Highest int64 `json:"highest"`
	Digits  int   `json:"digits"`
	// Counts are the buckets in use: the lowest value of each, and its count.
	Counts [][2]int64 `json:"counts"`
}

func exact(h *hdrhistogram.Histogram) Histogram {
	e := Histogram{Highest: highestMicros, Digits: digits, Counts: [][2]int64{}}
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			e.Counts = append(e.Counts, [2]int64{bar.From, bar.Count})
		}
	}
	return e
}

// hdr returns the histogram. Its error is that of a file that another program has written.
func (e Histogram) hdr() (*hdrhistogram.Histogram, error) {
	if e.Highest != highestMicros || e.Digits != digits {
		return nil, fmt.Errorf("a histogram up to %d with %d digits: use %d and %d", e.Highest, e.Digits, highestMicros, digits)
	}
	h := newHistogram()
	for _, c := range e.Counts {
		if err := h.RecordValues(c[0], c[1]); err != nil {
			return nil, err
		}
	}
	return h, nil
}
