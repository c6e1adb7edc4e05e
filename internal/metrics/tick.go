package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// ObserveTick takes one tick record. budget is the tick period: a longer tick is an
// overrun. It is called on the room's goroutine after each Step, keeps nothing of rec, and
// allocates only when a system or a panicking system is seen for the first time.
func (m *Metrics) ObserveTick(rec *loop.Record, budget time.Duration) {
	lateness := max(rec.Start-rec.Deadline, 0)
	m.mu.Lock()
	m.account.Ticks++
	if rec.Duration > budget {
		m.account.Overruns++
	}
	m.account.DroppedTicks += rec.Dropped
	m.account.Budget = budget
	m.account.Tick.Record(rec.Duration)
	m.account.Lateness.Record(lateness)
	m.rate.add(rec.Start, rec.Start+rec.Duration)
	m.mu.Unlock()

	m.tickDuration.Observe(rec.Duration.Seconds())
	m.tickLateness.Observe(lateness.Seconds())
	for i, d := range rec.Stages {
		m.stages[i].Observe(d.Seconds())
	}
	for i := range rec.Systems {
		if s := &rec.Systems[i]; s.Runs > 0 {
			m.observeSystem(s)
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

// ObserveFlushLag takes the time from a flush to the last datagram of one client accepted
// by the transport. Waiting for the client's congestion window is choke, not flush lag. Any
// goroutine may call it.
func (m *Metrics) ObserveFlushLag(d time.Duration) { m.flushLag.Observe(d.Seconds()) }

// ObserveSocketLag takes the time from the first packet of a batch to the kernel having all of
// it, and ObserveSocketWait the time that a packet waited to be read. Any goroutine may call
// them.
func (m *Metrics) ObserveSocketLag(d time.Duration) { m.socketLag.Observe(d.Seconds()) }

// ObserveSocketWait is explained with ObserveSocketLag.
func (m *Metrics) ObserveSocketWait(d time.Duration) { m.socketWait.Observe(d.Seconds()) }

// observeStages makes the series of all stages, which are few and always the same.
func (m *Metrics) observeStages(f *Family) {
	for i, s := range loop.Stages() {
		m.stages[i] = f.times.WithLabelValues(s.String())
	}
}

func (m *Metrics) observeSystem(s *loop.SystemCost) {
	key := systemStage{s.Name, s.Stage}
	o, ok := m.systems[key]
	if !ok {
		if len(m.systems) >= maxSystems {
			m.refused.Add(1)
			return
		}
		o = m.newSystem(key)
	}
	o.Observe(s.Cost.Seconds())
}

func (m *Metrics) newSystem(key systemStage) prometheus.Observer {
	o, err := m.systemDuration.times.GetMetricWithLabelValues(key.system, key.stage.String())
	if err != nil { // a name that is not UTF-8
		o = m.systemDuration.times.WithLabelValues("?", key.stage.String())
	}
	m.systems[key] = o
	return o
}

// Ticks returns the exact account so far, for /ticks. Any goroutine.
func (m *Metrics) Ticks() ticks.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.account
	s.Tick, s.Lateness = s.Tick.Clone(), s.Lateness.Clone()
	s.Uptime = max(m.rate.end(m.now(), s.Budget)-m.started, 0)
	return s
}

// Progress returns how long ago the newest tick ended (before the first one: how long ago
// the metrics were made) and the tick period, for /healthz. Any goroutine.
func (m *Metrics) Progress() (since, period time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.started
	if m.rate.count > 0 {
		last = m.rate.finished
	}
	return max(m.now()-last, 0), m.account.Budget
}

// hertz is the tick rate of late.
func (m *Metrics) hertz() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rate.hertz(m.now(), m.account.Budget)
}

// rateSpan is the time over which the tick rate is measured, and rateTicks how many ticks
// are remembered for it: above 200 Hz the span is shorter.
const (
	rateSpan  = 5 * time.Second
	rateTicks = 1024 // a power of two
)

// rateWindow measures the tick rate from the starts of the last ticks. Pure.
type rateWindow struct {
	starts   [rateTicks]time.Duration // ring, by count & (rateTicks-1)
	count    uint64
	finished time.Duration // end of the newest tick
}

func (w *rateWindow) add(start, end time.Duration) {
	w.starts[w.count&(rateTicks-1)] = start
	w.count++
	w.finished = end
}

// end is where a measurement ends: the start of the newest tick, so that whole periods are
// measured; or now, once two periods have passed without a tick, so that a stall shows.
func (w *rateWindow) end(now, period time.Duration) time.Duration {
	if w.count == 0 {
		return now
	}
	if newest := w.starts[(w.count-1)&(rateTicks-1)]; now-newest < 2*period {
		return newest
	}
	return now
}

func (w *rateWindow) hertz(now, period time.Duration) float64 {
	end := w.end(now, period)
	var oldest time.Duration
	var seen int
	for n := w.count; n > 0 && w.count-n < rateTicks; n-- {
		start := w.starts[(n-1)&(rateTicks-1)]
		if end-start > rateSpan {
			break
		}
		oldest = start
		seen++
	}
	if seen < 2 || end <= oldest {
		return 0
	}
	return float64(seen-1) / (end - oldest).Seconds()
}
