package metrics

import (
	"cmp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// observeLocked counts a tick of any room. Callers hold m.mu. The account's budget is the budget
// of the first tick, which runs in the server's default room.
func (m *Metrics) observeLocked(rec *loop.Record, lateness, budget time.Duration) {
	m.account.Ticks++
	if rec.Duration > budget {
		m.account.Overruns++
	}
	m.account.DroppedTicks += rec.Dropped
	m.account.Budget = cmp.Or(m.account.Budget, budget)
	m.account.Tick.Record(rec.Duration)
	m.account.Lateness.Record(lateness)
	m.rate.add(rec.Start)
	m.windows.add(rec.Start, rec.Duration, lateness, rec.Duration > budget, rec.Dropped)
}

// ObserveFlushLag counts the time from a flush until the transport has accepted the last datagram
// of one client. Waiting for the client's congestion window is choke, not flush lag. Any goroutine
// may call it.
func (m *Metrics) ObserveFlushLag(d time.Duration) { m.flushLag.Observe(d.Seconds()) }

// ObserveSocketLag counts the time from the first packet of a batch until the kernel has accepted
// the whole batch. ObserveSocketWait counts the time for which a packet waited to be read. Any
// goroutine may call them.
func (m *Metrics) ObserveSocketLag(d time.Duration) { m.socketLag.Observe(d.Seconds()) }

// ObserveSocketWait is described at ObserveSocketLag.
func (m *Metrics) ObserveSocketWait(d time.Duration) { m.socketWait.Observe(d.Seconds()) }

// observeStages makes the series of all stages. The stages are few and fixed.
func (m *Metrics) observeStages(f *Family) {
	for i, s := range loop.Stages() {
		m.stages[i] = f.times.WithLabelValues(s.String())
	}
}

// system returns the series of a system, which all rooms share, or nil if there are too many
// systems.
func (m *Metrics) system(key systemStage) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.systems[key]
	if ok {
		return o
	}
	if len(m.systems) >= maxSystems {
		m.refused.Add(1)
		return nil
	}
	if len(m.systems) < maxNamedSystems {
		o = m.systemDuration.times.WithLabelValues(valid(key.system), key.stage.String())
	} else {
		o = m.systemDuration.times.WithLabelValues(otherNames, otherNames)
	}
	m.systems[key] = o
	return o
}

// valid returns a name with invalid UTF-8 replaced, because an invalid label would fail the whole
// scrape.
func valid(name string) string { return strings.ToValidUTF8(name, "?") }

// Ticks returns the exact account so far, for /ticks. Any goroutine may call it.
func (m *Metrics) Ticks() ticks.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.account
	s.Tick, s.Lateness = s.Tick.Clone(), s.Lateness.Clone()
	s.Uptime = max(m.rate.end(m.now(), s.Budget)-m.started, 0)
	return s
}

// Pace returns the time since the start, up to the newest tick, and the recent tick rate of all
// rooms together. Any goroutine may call it.
func (m *Metrics) Pace() (uptime time.Duration, hertz float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, budget := m.now(), m.account.Budget
	return max(m.rate.end(now, budget)-m.started, 0), m.rate.hertz(now, budget)
}

// rateSpan is the time over which the tick rate is measured. rateTicks is the number of stored
// ticks: above 200 Hz they cover less than rateSpan.
const (
	rateSpan  = 5 * time.Second
	rateTicks = 1024 // a power of two
)

// rateWindow measures the tick rate from the starts of the last ticks. It reads no clock.
type rateWindow struct {
	starts [rateTicks]time.Duration // ring, by count & (rateTicks-1)
	count  uint64
}

func (w *rateWindow) add(start time.Duration) {
	w.starts[w.count&(rateTicks-1)] = start
	w.count++
}

// end returns the end of a measurement: the start of the newest tick, so that the measurement has
// whole periods; or now, if no tick has begun for two periods, so that a stall lowers the rate.
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
