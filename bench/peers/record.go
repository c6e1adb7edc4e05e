package main

import (
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// figures describe the updates that the clients of a window received. Times are in milliseconds.
type figures struct {
	Updates   int     `json:"updates"`    // each client's new ticks together
	Rate      float64 `json:"rate"`       // updates a second of the median client
	WorstRate float64 `json:"worst_rate"` // of the worst client

	IntervalP50 float64 `json:"interval_p50"` // between two updates
	IntervalP99 float64 `json:"interval_p99"`
	AgeP50      float64 `json:"age_p50"` // of the newest state that a client has, at any moment
	AgeP99      float64 `json:"age_p99"`
	DelayP50    float64 `json:"delay_p50"` // from the server's tick to the arrival
	DelayP99    float64 `json:"delay_p99"`
	Gap         float64 `json:"gap"`    // the longest time of a client without an update
	Burst       int     `json:"burst"`  // updates in 100 ms after that, of the median client
	Again       int     `json:"again"`  // received ticks that were no newer than the one before
	Oldest      float64 `json:"oldest"` // age of the oldest update at its arrival
}

// burstTime is the time after the longest gap in which updates count as a burst.
const burstTime = 100 * time.Millisecond

// ageStep is the resolution of ages: each client's age is recorded that often, so that a long gap
// counts for as long as it lasts.
const ageStep = time.Millisecond

func newHistogram() *hdr.Histogram { return hdr.New(1, int64(5*time.Minute/time.Microsecond), 3) }

func note(h *hdr.Histogram, d time.Duration) {
	x := min(max(int64(d/time.Microsecond), 1), h.HighestTrackableValue())
	_ = h.RecordValue(x) // Values in range have no error.
}

func percentile(h *hdr.Histogram, p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1000 }

// analyse returns the figures of the records of a window. The gap of a client without an update is
// the window.
func analyse(all []record, clients int, from, to time.Duration) figures {
	sent := map[uint32]int64{}
	byClient := make([][]record, clients)
	for _, r := range all {
		if r.Sent != 0 {
			sent[r.Tick] = r.Sent
		}
		if at := time.Duration(r.At); r.At != 0 && at >= from && at <= to && int(r.Client) < clients {
			byClient[r.Client] = append(byClient[r.Client], r)
		}
	}
	var f figures
	a := analysis{newHistogram(), newHistogram(), newHistogram()}
	var rates []float64
	var bursts []int
	for _, records := range byClient {
		s := a.client(records, sent, from, to)
		f.Updates += s.updates
		f.Again += s.again
		f.Gap = max(f.Gap, milliseconds(s.gap))
		f.Oldest = max(f.Oldest, milliseconds(s.oldest))
		rates = append(rates, float64(s.updates)/(to-from).Seconds())
		bursts = append(bursts, s.burst)
	}
	slices.Sort(rates)
	f.Rate, f.WorstRate = rates[len(rates)/2], rates[0]
	slices.Sort(bursts)
	f.Burst = bursts[len(bursts)/2]
	f.IntervalP50, f.IntervalP99 = percentile(a.interval, 50), percentile(a.interval, 99)
	f.AgeP50, f.AgeP99 = percentile(a.age, 50), percentile(a.age, 99)
	f.DelayP50, f.DelayP99 = percentile(a.delay, 50), percentile(a.delay, 99)
	return f
}

// sentAt returns the server's time of a tick. If no client has it, the time of an earlier tick is
// returned, so the state seems older than it is; 0 means that no time is known.
func sentAt(sent map[uint32]int64, tick uint32) time.Duration {
	const mostSkipped = 60
	for back := range uint32(mostSkipped) {
		if at, ok := sent[tick-back]; ok {
			return time.Duration(at)
		}
	}
	return 0
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// analysis has the histograms of all clients of a window.
type analysis struct{ interval, age, delay *hdr.Histogram }

// clientFigures are the figures of one client.
type clientFigures struct {
	updates, again, burst int
	gap, oldest           time.Duration
}

func (a *analysis) client(records []record, sent map[uint32]int64, from, to time.Duration) (s clientFigures) {
	var arrivals []time.Duration
	var newest record
	var stamp time.Duration // of newest; 0 is unknown
	last, afterGap := from, 0
	aged := func(until time.Duration) {
		for at := last; stamp != 0 && at < until; at += ageStep {
			note(a.age, at-stamp)
		}
	}
	for _, r := range records {
		if newest.At != 0 && r.Tick <= newest.Tick {
			s.again++
			continue
		}
		at := time.Duration(r.At)
		if newest.At != 0 {
			note(a.interval, at-last)
		}
		if at-last > s.gap {
			s.gap, afterGap = at-last, len(arrivals)
		}
		aged(at)
		newest, last, stamp = r, at, sentAt(sent, r.Tick)
		if stamp != 0 {
			note(a.delay, at-stamp)
			s.oldest = max(s.oldest, at-stamp)
		}
		arrivals = append(arrivals, at)
	}
	aged(to)
	s.updates = len(arrivals)
	for _, at := range arrivals[min(afterGap, len(arrivals)):] {
		if at-arrivals[afterGap] <= burstTime {
			s.burst++
		}
	}
	s.gap = max(s.gap, to-last)
	return s
}
