package metrics

import (
	"math"
	"time"
)

// The slots of windows cover windowSpan in steps of slotSpan.
const (
	slotSpan   = 5 * time.Second
	windowSpan = 5 * time.Minute
	numSlots   = int64(windowSpan/slotSpan) + 1 // and the running slot
)

// windows counts the ticks of the last five minutes, for percentiles of the recent past. It reads
// no clock and starts no goroutine.
type windows struct {
	slots [numSlots]slot
}

// slot holds the ticks that started in one step of time.
type slot struct {
	number          int64 // start divided by slotSpan; a ring holds the newest slots
	ticks, overruns uint64
	dropped         uint64
	took, late      fine
	longest, latest time.Duration
}

// octaves is the number of powers of two microseconds up to a minute. Histograms have several
// buckets for each.
const octaves = 26

// fine counts durations in buckets that are 4.4 % apart: sixteen buckets for each octave.
type fine [16 * octaves]uint32

// observe counts a duration in the buckets of a histogram.
func observe(buckets []uint32, d time.Duration) {
	us := float64(max(d/time.Microsecond, 1))
	buckets[min(int(math.Ceil(float64(len(buckets)/octaves)*math.Log2(us))), len(buckets)-1)]++
}

// quantile returns the duration that a share (0 to 1) of the counted durations does not exceed,
// rounded up to the upper edge of its bucket. It is 0 without durations.
func quantile(buckets []uint32, share float64) time.Duration {
	total, seen := uint64(0), uint64(0)
	for _, n := range buckets {
		total += uint64(n)
	}
	rank := uint64(math.Ceil(share * float64(total)))
	for i, n := range buckets {
		if seen += uint64(n); n > 0 && seen >= rank {
			return time.Duration(math.Exp2(float64(i)/float64(len(buckets)/octaves)) * float64(time.Microsecond))
		}
	}
	return 0
}

// Window is an account of the ticks of all rooms in the recent past. The percentiles are rounded up
// by at most 4.4 %.
type Window struct {
	Span     time.Duration `json:"span_ns"`  // at most, with the running slot of 5 s
	Ticks    uint64        `json:"ticks"`    // ticks that ran
	Overruns uint64        `json:"overruns"` // ticks longer than the period
	Dropped  uint64        `json:"dropped"`  // ticks that were due and never ran
	Tick     Quantiles     `json:"tick"`     // durations of ticks
	Lateness Quantiles     `json:"lateness"` // from the deadline of a tick to its start
}

// Quantiles are percentiles of durations.
type Quantiles struct {
	P50 time.Duration `json:"p50_ns"` // median
	P95 time.Duration `json:"p95_ns"` // 95th percentile
	P99 time.Duration `json:"p99_ns"` // 99th percentile
	Max time.Duration `json:"max_ns"` // exact
}

// add counts a tick.
func (w *windows) add(start, took, late time.Duration, overrun bool, dropped uint64) {
	number := int64(start / slotSpan)
	s := &w.slots[number%numSlots]
	if s.number != number {
		*s = slot{number: number}
	}
	s.ticks++
	if overrun {
		s.overruns++
	}
	s.dropped += dropped
	observe(s.took[:], took)
	observe(s.late[:], late)
	s.longest, s.latest = max(s.longest, took), max(s.latest, late)
}

// over returns the account of the time span before now.
func (w *windows) over(now, span time.Duration) Window {
	out := Window{Span: span}
	var took, late fine
	first, last := int64((now-span)/slotSpan)+1, int64(now/slotSpan)
	if now < span {
		first = 0
	}
	for i := range w.slots {
		s := &w.slots[i]
		if s.ticks == 0 || s.number < first || s.number > last {
			continue
		}
		out.Ticks += s.ticks
		out.Overruns += s.overruns
		out.Dropped += s.dropped
		for b := range took {
			took[b] += s.took[b]
			late[b] += s.late[b]
		}
		out.Tick.Max, out.Lateness.Max = max(out.Tick.Max, s.longest), max(out.Lateness.Max, s.latest)
	}
	out.Tick.fill(took[:])
	out.Lateness.fill(late[:])
	return out
}

func (q *Quantiles) fill(f []uint32) {
	q.P50, q.P95, q.P99 = min(quantile(f, .5), q.Max), min(quantile(f, .95), q.Max), min(quantile(f, .99), q.Max)
}

// Windows returns the accounts of the ticks of all rooms in the last 10 seconds, minute and five
// minutes. Any goroutine may call it.
func (m *Metrics) Windows() []Window {
	now := m.now()
	m.mu.Lock()
	w := m.windows // A tick waits for this copy, but not for the sums.
	m.mu.Unlock()
	var all []Window
	for _, span := range []time.Duration{10 * time.Second, time.Minute, windowSpan} {
		all = append(all, w.over(now, span))
	}
	return all
}
