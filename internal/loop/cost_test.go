package loop

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Buckets follow one another without a gap, and each is within an eighth of its durations.
func TestBucketsAreContiguousAndExactToAnEighth(t *testing.T) {
	last := 0
	for d := time.Duration(0); d < 1<<36; d += max(1, d/64) {
		b := bucketOf(d)
		if b != last && b != last+1 {
			t.Fatalf("%d is in bucket %d, after %d", d, b, last)
		}
		if off := middle(b) - d; off > d/8 || -off > d/8 {
			t.Fatalf("the middle of the bucket is %d for %d", middle(b), d)
		}
		last = b
	}
	for d, want := range map[time.Duration]int{
		-1: 0, 3: 3, 4: 4, 7: 7, 8: 8, 9: 8, 10: 9, 15: 11, 1<<36 - 1: 139, 1 << 36: 139, math.MaxInt64: 139,
	} {
		if got := bucketOf(d); got != want {
			t.Errorf("%d is in bucket %d, want %d", d, got, want)
		}
	}
	if got := middle(139); got != 60<<30 { // 56 to 64
		t.Errorf("the middle of the last bucket is %d", got)
	}
}

func TestQuantilesOfAHistogram(t *testing.T) {
	for _, tt := range []struct {
		counted []time.Duration
		mean    time.Duration
		at      []time.Duration // at 0, ¼, ½, ¾ and 1
	}{
		{nil, 0, []time.Duration{0, 0, 0, 0, 0}},
		{[]time.Duration{3}, 3, []time.Duration{3, 3, 3, 3, 3}},
		{[]time.Duration{0, 0}, 0, []time.Duration{0, 0, 0, 0, 0}},
		{[]time.Duration{3, 1, 0, 2}, 1, []time.Duration{0, 1, 2, 3, 3}},
		{[]time.Duration{1, 7, 1, 7, 1, 7, 1, 7}, 4, []time.Duration{1, 1, 7, 7, 7}},
	} {
		h := new(Histogram)
		for _, d := range tt.counted {
			h.Add(d)
		}
		var at []time.Duration
		for _, q := range []float64{0, 0.25, 0.5, 0.75, 1} {
			at = append(at, h.Quantile(q))
		}
		if h.Count() != uint64(len(tt.counted)) || h.Mean() != tt.mean || !slices.Equal(at, tt.at) {
			t.Errorf("of %d: %d with a mean of %d and %d, want %d and %d", tt.counted, h.Count(), h.Mean(), at, tt.mean, tt.at)
		}
	}
}

func TestAFullBucketDoesNotOverflow(t *testing.T) {
	h := new(Histogram)
	h.buckets[2] = math.MaxUint32 - 1
	for range 3 {
		h.Add(2)
	}
	if got := h.Count(); got != math.MaxUint32 {
		t.Errorf("%d are counted, want %d", got, uint32(math.MaxUint32))
	}
}
