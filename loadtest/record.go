package loadtest

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/netloop/netloop"
)

// Histograms count microseconds, as those of /ticks do.
const (
	highestMicros = 60_000_000 // longer durations count as a minute
	digits        = 3          // percentiles within 0.1 %
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, highestMicros, digits) }

// record counts one duration. Negative ones, which clock estimates can produce, count as 0. It does
// not allocate.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	// Within the range it can only fail once 2^63 values were recorded.
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 0), highestMicros))
}

// millis converts a duration to the milliseconds of the results, rounded to the microsecond.
func millis(d time.Duration) *float64 {
	return new(math.Round(float64(d)/float64(time.Microsecond)) / 1000)
}

// percentile returns the duration that p per cent of the records do not exceed, and nil when there
// is no record.
func percentile(h *hdrhistogram.Histogram, p float64) *float64 {
	if h.TotalCount() == 0 {
		return nil
	}
	return millis(time.Duration(h.ValueAtPercentile(p)) * time.Microsecond)
}

// window is the measured time on the run's clock: from included, to excluded. It is empty until it
// is opened.
type window struct{ from, to atomic.Int64 }

func (w *window) open(from, to time.Duration) {
	w.to.Store(int64(to))
	w.from.Store(int64(from))
}

// end closes the window early; a closed window is unchanged.
func (w *window) end(at time.Duration) { w.to.Store(min(w.to.Load(), int64(at))) }

func (w *window) holds(at time.Duration) bool {
	return int64(at) >= w.from.Load() && int64(at) < w.to.Load()
}

func (w *window) length() time.Duration {
	return max(0, time.Duration(w.to.Load()-w.from.Load()))
}

// recorder holds the records of one worker in the measured window. The worker's goroutine owns it
// until the worker has ended.
type recorder struct {
	rtt      *hdrhistogram.Histogram // of calls, by their scheduled time
	interval *hdrhistogram.Histogram // between the arrivals of whole snapshots
	age      *hdrhistogram.Histogram // of the newest state, at each frame
	lateness *hdrhistogram.Histogram // of the generator's own frames

	intended, sent, answered uint64 // calls
	schedule                 uint64 // a digest of the intended calls: see Run.Schedule
	snapshots, bytes         uint64
	callErrors               tally
	counts                   tally // of the game's events, by name
	feel                     *feelRecorder
}

func newRecorder() *recorder {
	return &recorder{
		rtt: newHistogram(), interval: newHistogram(), age: newHistogram(), lateness: newHistogram(),
		callErrors: tally{}, counts: tally{}, feel: newFeelRecorder(),
	}
}

// digest adds a scheduled call of a client to the digest of all: the sum does not depend on their
// order.
func (r *recorder) digest(client, schedule int, offset time.Duration) {
	x := uint64(offset) ^ uint64(client)<<44 ^ uint64(schedule)<<58
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // The finaliser of splitmix64.
	x = (x ^ x>>27) * 0x94d049bb133111eb
	r.schedule += x ^ x>>31
}

// merge adds the records of another recorder.
func (r *recorder) merge(o *recorder) {
	r.rtt.Merge(o.rtt)
	r.interval.Merge(o.interval)
	r.age.Merge(o.age)
	r.lateness.Merge(o.lateness)
	r.intended += o.intended
	r.schedule += o.schedule
	r.sent += o.sent
	r.answered += o.answered
	r.snapshots += o.snapshots
	r.bytes += o.bytes
	r.callErrors.merge(o.callErrors)
	r.counts.merge(o.counts)
	r.feel.merge(o.feel)
}

// live holds the records of a worker since the last point of the series.
type live struct {
	rtt, interval, age, lateness *hdrhistogram.Histogram
	snapshots, errors            uint64
	reasons                      tally // of failed calls and lost connections

	// By client, when the worker hands the record over: see [worker.survey].
	received []uint64
	trips    []time.Duration
}

func newLive() *live {
	return &live{rtt: newHistogram(), interval: newHistogram(), age: newHistogram(), lateness: newHistogram(), reasons: tally{}}
}

func (l *live) merge(o *live) {
	l.rtt.Merge(o.rtt)
	l.interval.Merge(o.interval)
	l.age.Merge(o.age)
	l.lateness.Merge(o.lateness)
	l.snapshots += o.snapshots
	l.errors += o.errors
	l.reasons.merge(o.reasons)
	l.received = append(l.received, o.received...)
	l.trips = append(l.trips, o.trips...)
}

func (l *live) reset() {
	l.rtt.Reset()
	l.interval.Reset()
	l.age.Reset()
	l.lateness.Reset()
	l.snapshots, l.errors = 0, 0
	clear(l.reasons)
	l.received, l.trips = l.received[:0], l.trips[:0]
}

// tally counts reasons by their text.
type tally map[string]uint64

// maxReasons is the most texts in a tally, because texts come from the network. Further ones are
// counted together.
const maxReasons = 32

func (t tally) add(text string) {
	if _, ok := t[text]; !ok && len(t) >= maxReasons {
		text = "other reasons"
	}
	t[text]++
}

func (t tally) merge(o tally) {
	for text, n := range o {
		t[text] += n
	}
}

// reason returns the text under which an error is counted: only the refusal, or only the code and
// the text of the end of a connection, if the error contains one of them.
func reason(err error) string {
	if refused, ok := errors.AsType[*netloop.Refusal](err); ok {
		return "refused: " + refused.Error()
	}
	closed, ok := errors.AsType[*netloop.Closed](err)
	switch {
	case !ok:
		return err.Error()
	case closed.Text == "" || closed.Text == closed.Code.String():
		return closed.Code.String()
	}
	return closed.Code.String() + ": " + closed.Text
}
