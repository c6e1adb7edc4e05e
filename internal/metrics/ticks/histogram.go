package ticks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range and the precision of the buckets are part of the encoded form: UnmarshalJSON refuses
// other ranges and precisions.
const (
	// HighestMicros is the longest duration that a histogram records exactly: longer durations
	// count as a minute. A server with a tick of a minute hangs.
	HighestMicros = 60_000_000
	// Digits is the number of significant decimal digits: percentiles within 0.1 %.
	Digits = 3
)

// Histogram counts durations in microseconds. The zero value is empty and ready. One goroutine
// owns it, or its owner's lock guards it; never copy a histogram in use.
type Histogram struct {
	hdr *hdrhistogram.Histogram // nil until the first record: a zero Histogram allocates no buckets
}

// Record adds one duration. A negative duration counts as 0, and a duration above a minute as a
// minute. Only the first call allocates memory.
func (h *Histogram) Record(d time.Duration) {
	if h.hdr == nil {
		h.hdr = newHDR()
	}
	micros := min(max(int64(d/time.Microsecond), 0), HighestMicros)
	// A value within the range fails only after 2^63 records.
	_ = h.hdr.RecordValue(micros)
}

// Count returns the number of recorded durations.
func (h *Histogram) Count() uint64 {
	if h.hdr == nil {
		return 0
	}
	return uint64(h.hdr.TotalCount())
}

// Percentile returns the duration that p per cent of the records do not exceed, with p in (0,
// 100]. It is rounded up to the edge of its bucket, and is 0 without records.
func (h *Histogram) Percentile(p float64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.hdr.ValueAtPercentile(p)) * time.Microsecond
}

// Max returns the upper edge of the highest bucket with a record, or 0 without records.
func (h *Histogram) Max() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.hdr.Max()) * time.Microsecond
}

// Clone returns a deep copy of h.
func (h *Histogram) Clone() Histogram {
	if h.hdr == nil {
		return Histogram{}
	}
	return Histogram{hdr: h.hdr.Clone()}
}

// sub returns the counts of h minus the counts of before. It returns an error if a bucket has
// decreased: then the histograms are from different runs of a server.
func (h *Histogram) sub(before *Histogram) (Histogram, error) {
	if before.Count() == 0 {
		return h.Clone(), nil
	}
	if h.Count() < before.Count() {
		return Histogram{}, errRestarted
	}
	later, earlier := h.hdr.Export(), before.hdr.Export()
	for i := range later.Counts {
		later.Counts[i] -= earlier.Counts[i]
		if later.Counts[i] < 0 {
			return Histogram{}, errRestarted
		}
	}
	return Histogram{hdr: hdrhistogram.Import(later)}, nil
}

// wire is the JSON form of a histogram. It has only the buckets with records, each as [lowest
// microsecond of the bucket, count], in ascending order, so that a person and jq can read it.
type wire struct {
	Highest int64      `json:"highest"`
	Digits  int        `json:"digits"`
	Counts  [][2]int64 `json:"counts"`
}

// MarshalJSON writes the buckets with records.
func (h Histogram) MarshalJSON() ([]byte, error) {
	w := wire{Highest: HighestMicros, Digits: Digits, Counts: [][2]int64{}}
	if h.hdr != nil {
		for _, bar := range h.hdr.Distribution() {
			if bar.Count > 0 {
				w.Counts = append(w.Counts, [2]int64{bar.From, bar.Count})
			}
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON and checks all of it. Errors are another range or
// precision, an unordered or unaligned bucket, and a count that overflows.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.Highest != HighestMicros || w.Digits != Digits {
		return fmt.Errorf("ticks: histogram with highest %d and %d digits, want %d and %d",
			w.Highest, w.Digits, int64(HighestMicros), Digits)
	}
	hdr, last := newHDR(), int64(-1)
	for _, c := range w.Counts {
		value, count := c[0], c[1]
		switch {
		case value <= last:
			return fmt.Errorf("ticks: histogram bucket %d after %d", value, last)
		case value > HighestMicros:
			return fmt.Errorf("ticks: histogram bucket %d beyond %d µs", value, int64(HighestMicros))
		case last >= 0 && hdr.ValuesAreEquivalent(value, last):
			return fmt.Errorf("ticks: histogram bucket %d is not the start of a bucket", value)
		case count <= 0:
			return fmt.Errorf("ticks: histogram bucket %d has the count %d", value, count)
		}
		if err := hdr.RecordValues(value, count); err != nil {
			return fmt.Errorf("ticks: histogram bucket %d: %w", value, err)
		}
		last = value
	}
	h.hdr = hdr
	return nil
}

func newHDR() *hdrhistogram.Histogram { return hdrhistogram.New(1, HighestMicros, Digits) }

var errRestarted = errors.New("ticks: the counts went backwards: the two snapshots are of different server runs")
