package metrics

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/loop"
)

// maxKinds bounds the kinds of rooms with their own series. Rooms of further kinds count under
// otherNames.
const maxKinds = 16

// Account is the share of one room in the series of its server: each series is the sum over all
// rooms, and counters keep the counts of rooms that have ended. Its room's goroutine uses it,
// unless a method says otherwise.
type Account struct {
	m    *Metrics
	kind string

	// reporting is held by Close and by the methods that report, so that they do not overlap: a
	// room may still report after the server stopped awaiting its end.
	reporting sync.Mutex
	closed    bool
	// This room's share of each series: the total of a counter, the bits of the value of a gauge.
	// Both are guarded by reporting.
	counted, gauged map[*atomic.Uint64]uint64
	systems         map[systemStage]prometheus.Observer
	// Histograms of the room's kind; nil if it has none.
	duration, lateness prometheus.Observer

	// Guarded by the mutex of the Metrics.
	figures  Figures
	took     spread
	late     spread
	budget   time.Duration
	finished time.Duration // end of the newest tick; before the first tick, the time of Open
	asleep   bool

	margins atomic.Pointer[inputMargins]
	gauges  []atomic.Uint64 // of the game's gauges: the bits of float64s
}

// inputMargins tells how early the inputs of a room's clients arrive. some is false without recent
// inputs.
type inputMargins struct {
	least, median time.Duration
	some          bool
}

// Figures are the clients and ticks of one room, and percentiles of its ticks.
type Figures struct {
	Clients  int           // joined, at the last report
	Ticks    uint64        // ticks that ran
	Overruns uint64        // ticks longer than the period
	Dropped  uint64        // ticks that never ran
	P50, P99 time.Duration // of a tick's duration, rounded up by a fifth at most
	LateP99  time.Duration // of the lateness of ticks, likewise
}

// Open begins the account of a room. The room's kind is a label of some series; a room with kind
// "" has none of these series. Any goroutine may call it.
func (m *Metrics) Open(kind string) *Account {
	a := &Account{
		m: m, counted: map[*atomic.Uint64]uint64{}, gauged: map[*atomic.Uint64]uint64{},
		systems: map[systemStage]prometheus.Observer{}, finished: m.now(), gauges: make([]atomic.Uint64, m.gauges),
	}
	m.mu.Lock()
	if a.kind = kind; !m.kinds[kind] {
		if kind != "" && len(m.kinds) >= maxKinds {
			a.kind = otherNames
		} else if kind != "" {
			m.kinds[kind] = true
		}
	}
	m.accounts[a] = struct{}{}
	m.mu.Unlock()
	if kind != "" {
		a.duration = m.kindDuration.times.WithLabelValues(valid(a.kind))
		a.lateness = m.kindLateness.times.WithLabelValues(valid(a.kind))
	}
	m.opened.Add(1, a.kind)
	Part{m.rooms, a}.Set(1, a.kind)
	Part{m.asleep, a}.Set(0, a.kind)
	return a
}

// Close ends the account of a room that has ended with a code: the room's counts are kept, and its
// shares of gauges are subtracted. Any goroutine may call it; only the first call counts.
func (a *Account) Close(code string) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	a.m.ended.Add(1, a.kind, code)
	for series, bits := range a.gauged {
		addFloat(series, -math.Float64frombits(bits))
	}
	clear(a.gauged)
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	delete(a.m.accounts, a)
}

// Report copies the numbers of the room to its series. The numbers are plain variables of the
// room's goroutine, because a tick counts often and scrapes are rare.
func (a *Account) Report(r Room) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	if a.closed {
		return
	}
	for _, f := range a.m.families {
		if f.source.room != nil {
			f.source.room(r, Part{f, a})
		}
	}
	a.m.mu.Lock()
	a.figures.Clients = r.Clients()
	a.m.mu.Unlock()
}

// Sleep records that the room has fallen asleep, or has woken up.
func (a *Account) Sleep(asleep bool) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	if a.closed {
		return
	}
	n := uint64(0)
	if asleep {
		n = 1
	}
	Part{a.m.asleep, a}.Set(n, a.kind)
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.asleep, a.finished = asleep, a.m.now()
}

// Asleep reports whether the room sleeps. Any goroutine may call it.
func (a *Account) Asleep() bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.asleep
}

// Part is one room's share of the series of a [Family].
type Part struct {
	f *Family
	a *Account
}

// Kind returns the room's kind, as a label.
func (p Part) Kind() string { return p.a.kind }

// Set replaces the room's share of the total of a counter, or of the value of a gauge.
func (p Part) Set(n uint64, labels ...string) {
	series := p.f.value(labels)
	if series == nil {
		return
	}
	if p.f.kind == gauge {
		addFloat(series, float64(n)-math.Float64frombits(p.a.gauged[series]))
		p.a.gauged[series] = math.Float64bits(float64(n))
	} else if had := p.a.counted[series]; n != had {
		series.Add(n - had)
		p.a.counted[series] = n
	}
}

// addFloat adds x to a value that is stored as the bits of a float64.
func addFloat(series *atomic.Uint64, x float64) {
	for {
		was := series.Load()
		if series.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+x)) {
			return
		}
	}
}

// Figures returns the main figures of the room. Any goroutine may call it.
func (a *Account) Figures() Figures {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	f := a.figures
	f.P50, f.P99, f.LateP99 = quantile(a.took[:], .5), quantile(a.took[:], .99), quantile(a.late[:], .99)
	return f
}

// Progress returns, for /healthz, the time since the room's newest tick ended, and the tick
// period. The time is 0 while the room sleeps, and counts from Open before the first tick. Any
// goroutine may call it.
func (a *Account) Progress() (since, period time.Duration) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	if a.asleep {
		return 0, a.budget
	}
	return max(a.m.now()-a.finished, 0), a.budget
}

// SetInputMargins sets how early inputs arrive: for the client with the least margin, and for the
// median client. some is false without recent inputs.
func (a *Account) SetInputMargins(least, median time.Duration, some bool) {
	a.margins.Store(&inputMargins{least, median, some})
}

// inputMargins sets the two series of input margins: the least margin of all rooms, and the median
// of the rooms' median margins. Both are 0 without recent inputs.
func (m *Metrics) inputMargins(f *Family) {
	var least, median []time.Duration
	declared := false
	m.mu.Lock()
	for a := range m.accounts {
		x := a.margins.Load()
		if declared = declared || x != nil; x != nil && x.some {
			least, median = append(least, x.least), append(median, x.median)
		}
	}
	m.mu.Unlock()
	switch {
	case !declared:
		return
	case len(median) == 0:
		least, median = []time.Duration{0}, []time.Duration{0}
	}
	slices.Sort(median)
	f.SetFloat(slices.Min(least).Seconds(), "least")
	f.SetFloat(median[len(median)/2].Seconds(), "median")
}

// ObserveTick counts one tick record. budget is the tick period: a longer tick is an overrun. The
// room calls it after each Step. It keeps no reference to rec, and allocates memory only for the
// first record of a system, and for the first panic of a system.
func (a *Account) ObserveTick(rec *loop.Record, budget time.Duration) {
	m, lateness := a.m, max(rec.Start-rec.Deadline, 0)
	m.mu.Lock()
	m.observeLocked(rec, lateness, budget)
	a.figures.Ticks++
	if rec.Duration > budget {
		a.figures.Overruns++
	}
	a.figures.Dropped += rec.Dropped
	observe(a.took[:], rec.Duration)
	observe(a.late[:], lateness)
	a.budget, a.finished = budget, rec.Start+rec.Duration
	m.mu.Unlock()

	m.tickDuration.Observe(rec.Duration.Seconds())
	m.tickLateness.Observe(lateness.Seconds())
	if a.duration != nil {
		a.duration.Observe(rec.Duration.Seconds())
		a.lateness.Observe(lateness.Seconds())
	}
	for i, d := range rec.Stages {
		m.stages[i].Observe(d.Seconds())
	}
	for i := range rec.Systems {
		if s := &rec.Systems[i]; s.Runs > 0 {
			a.observeSystem(s)
		}
		if missed := rec.Systems[i].Missed; missed > 0 {
			m.missed.Add(uint64(missed), rec.Systems[i].Name)
		}
	}
	for i := range rec.Panics {
		m.Panics.Add(1, rec.Panics[i].System)
	}
	if rec.MorePanics > 0 {
		m.Panics.Add(uint64(rec.MorePanics), "others")
	}
}

func (a *Account) observeSystem(s *loop.SystemCost) {
	key := systemStage{s.Name, s.Stage}
	o, ok := a.systems[key]
	if !ok {
		if o = a.m.system(key); o == nil {
			return
		}
		a.systems[key] = o
	}
	o.Observe(s.Cost.Seconds())
}

// spread counts durations in buckets, each about a fifth wider than the previous bucket: four
// buckets for each power of two microseconds. It is small, because every room has two of them.
type spread [4 * octaves]uint32
