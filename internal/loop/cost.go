package loop

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts durations in buckets, four for each doubling, so that the error of a quantile is
// at most 12.5 %; durations above 70 s share one bucket. The zero value is empty.
type Histogram struct {
	Total   time.Duration
	buckets [histogramBuckets]uint32
}

// histogramBuckets covers 0 to 2^36 ns. A histogram takes some 600 bytes, and each system has one
// for each stage.
const histogramBuckets = 140

// Add counts a duration. The count of a bucket is at most 2^32-1.
func (h *Histogram) Add(d time.Duration) {
	h.Total += d
	if b := &h.buckets[bucketOf(d)]; *b != math.MaxUint32 {
		*b++
	}
}

// bucketOf returns the bucket of a duration: the position of its first bit, and the two bits that
// follow it.
func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	if ns < 4 {
		return int(ns)
	}
	high := bits.Len64(ns) - 1
	return min(4*(high-1)+int(ns>>(high-2))&3, histogramBuckets-1)
}

// middle returns the middle of a bucket.
func middle(bucket int) time.Duration {
	if bucket < 4 {
		return time.Duration(bucket)
	}
	high := bucket/4 + 1
	width := uint64(1) << (high - 2)
	return time.Duration(uint64(4+bucket%4)*width + width/2)
}

// Count returns the number of counted durations.
func (h *Histogram) Count() (n uint64) {
	for _, b := range h.buckets {
		n += uint64(b)
	}
	return n
}

// Mean returns the average, or 0 if the histogram is empty.
func (h *Histogram) Mean() time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	return h.Total / time.Duration(n)
}

// Quantile returns the duration that a part q, from 0 to 1, of the counted durations does not
// exceed, or 0 if the histogram is empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	rank := min(uint64(q*float64(n)), max(n, 1)-1) // Ranks begin at 0: the greatest has n-1.
	for i, b := range h.buckets {
		if rank < uint64(b) {
			return middle(i)
		}
		rank -= uint64(b)
	}
	return 0
}
