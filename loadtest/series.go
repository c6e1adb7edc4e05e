package loadtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/metrics/ticks"
)

// Series has the figures of a run over time. Every point covers the time since the one before.
type Series struct {
	Every  float64 `json:"every_s"` // about the time between two points
	Points []Point `json:"points"`
}

// Point is one moment of a [Series]. Figures without a record are null.
type Point struct {
	At      float64 `json:"at_s"` // since Run.Begin
	Phase   string  `json:"phase"`
	Clients int64   `json:"clients"` // that play
	// Snapshots is per playing client and second.
	Snapshots *float64 `json:"snapshot_rate_hz"`
	Interval  *float64 `json:"snapshot_interval_p99_ms"`
	AgeP50    *float64 `json:"snapshot_age_p50_ms"`
	AgeP99    *float64 `json:"snapshot_age_p99_ms"`
	CallP50   *float64 `json:"call_latency_p50_ms"`
	CallP99   *float64 `json:"call_latency_p99_ms"`
	Tick      *float64 `json:"server_tick_p99_ms"`
	TickRate  *float64 `json:"server_tick_rate_hz"`
	Joins     uint64   `json:"joins"`
	// Errors counts failed calls, failed joins, and broken and lost connections.
	Errors uint64 `json:"errors"`
	// The processes, every ten seconds.
	ServerMemory     *float64 `json:"server_memory_bytes"`
	ServerGoroutines *float64 `json:"server_goroutines"`
	ServerSeries     *float64 `json:"server_series"` // of its metrics
	Memory           *float64 `json:"generator_memory_bytes"`
	Goroutines       *float64 `json:"generator_goroutines"`
}

const (
	sampleEvery = time.Second
	usageEvery  = 10 * time.Second
	soakEvery   = time.Minute // a line of a soak
	// maxPoints bounds a series: an hour of seconds. Then two points become one, and each covers
	// twice the time.
	maxPoints = 3600
)

// sampler collects the series, and shows the line of progress. Its goroutine owns it until it has
// ended.
type sampler struct {
	run    *run
	clean  []*live // by worker: an empty record for the next request; nil while the worker has it
	sum    *live
	since  time.Duration // of the last sample
	used   time.Duration // when the processes were read last
	usages Point         // of that reading
	joins  int64         // until the last sample, as are errors
	errors int64
	ticks  *ticks.Snapshot
	last   *ticks.Snapshot // the ticks of the last second; nil if unknown
	// For the terminal view: the records of the measured window, the errors of the run, and the
	// last reading of the own process.
	window  *live
	reasons tally
	own     usage
	ownAt   time.Duration
	shown   time.Duration // when the last line of progress was printed
	series  Series
	held    *Point // waits for its pair, once each point covers more than a second
	pairs   int    // seconds of a point
	count   int    // seconds in held
}

// startSampler collects a point each second from a goroutine of its own, until the returned
// function is called after the end of the workers: it returns the series.
func (r *run) startSampler(ctx context.Context) (stop func() Series) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		done sync.WaitGroup
		s    = newSampler(ctx, r)
	)
	done.Go(func() {
		line := progress{run: r}
		for at := r.now() + sampleEvery; r.clock.WaitUntil(ctx, at) == nil; at = max(at+sampleEvery, r.now()) {
			p := s.sample(ctx)
			s.add(p)
			s.show(ctx, &p, &line)
		}
	})
	return func() Series {
		cancel()
		done.Wait()
		s.finish()
		return s.series
	}
}

func newSampler(ctx context.Context, r *run) *sampler {
	now := r.now()
	s := &sampler{run: r, sum: newLive(), window: newLive(), reasons: tally{}, own: ownUsage(), ownAt: now, shown: now - lineEvery, since: now, used: now, pairs: 1, series: Series{Every: sampleEvery.Seconds(), Points: []Point{}}}
	for range r.workers {
		s.clean = append(s.clean, newLive())
	}
	s.serverTicks(ctx)
	return s
}

// gather adds up the workers' records since the last time.
func (s *sampler) gather(ctx context.Context) {
	s.sum.reset()
	for i, w := range s.run.workers {
		if s.clean[i] != nil {
			w.request(s.clean[i])
			s.clean[i] = nil
		}
	}
	// The only possible error is that of ctx, which ends the sampling.
	_ = s.run.clock.WaitUntil(ctx, s.run.now()+2*idle)
	for i, w := range s.run.workers {
		s.clean[i] = w.collect(s.sum)
	}
}

// sample returns the point since the last one.
func (s *sampler) sample(ctx context.Context) Point {
	s.gather(ctx)
	p := s.point(s.run.now())
	if d := s.serverTicks(ctx); d != nil {
		p.Tick, p.TickRate = millis(d.Tick.Percentile(99)), hundredths(d.RateHz())
	}
	s.usage(ctx, &p)
	return p
}

// point makes a point of the gathered records.
func (s *sampler) point(now time.Duration) Point {
	r, took := s.run, (now - s.since).Seconds()
	if r.window.holds(s.since) {
		s.window.merge(s.sum)
		s.window.received, s.window.trips = nil, nil
	}
	s.since = now
	joins, errors := r.admitted.Load(), r.failed.Load()+r.gone.Load()+r.drops.Load()
	p := Point{
		At: (now - r.began).Round(time.Millisecond).Seconds(), Phase: r.phase().String(), Clients: r.playing(),
		Interval: percentile(s.sum.interval, 99), AgeP50: percentile(s.sum.age, 50), AgeP99: percentile(s.sum.age, 99),
		CallP50: percentile(s.sum.rtt, 50), CallP99: percentile(s.sum.rtt, 99),
		Joins: uint64(joins - s.joins), Errors: uint64(errors-s.errors) + s.sum.errors,
	}
	if p.Clients > 0 && took > 0 {
		p.Snapshots = hundredths(float64(s.sum.snapshots) / float64(p.Clients) / took)
	}
	s.joins, s.errors = joins, errors
	return p
}

// usage reads the processes, if it is time.
func (s *sampler) usage(ctx context.Context, p *Point) {
	if s.run.now()-s.used < usageEvery {
		return
	}
	s.used = s.run.now()
	defer func() { s.usages = *p }()
	own := ownUsage()
	p.Memory, p.Goroutines = own.memory, own.goroutines
	if s.run.admin == nil {
		return
	}
	// The measured readings report a lasting error.
	if m, err := s.run.admin.metrics(ctx); err == nil {
		u, n := serverUsage(m), float64(len(m))
		p.ServerMemory, p.ServerGoroutines, p.ServerSeries = u.memory, u.goroutines, &n
	}
}

// processes describes the processes as they were read last, for a line of a soak.
func (s *sampler) processes() string {
	p := &s.usages
	return fmt.Sprintf(" │ server %s, %s goroutines, %s series │ own %s, %s goroutines", show(p.ServerMemory, inBytes), show(p.ServerGoroutines, asCount),
		show(p.ServerSeries, asCount), show(p.Memory, inBytes), show(p.Goroutines, asCount))
}

// serverTicks returns the server's ticks since the last call.
func (s *sampler) serverTicks(ctx context.Context) *ticks.Snapshot {
	if s.run.admin == nil {
		return nil
	}
	now, err := s.run.admin.read(ctx)
	if err != nil {
		return nil // As above.
	}
	before := s.ticks
	s.ticks, s.last = &now, nil
	if before == nil {
		return nil
	}
	d, err := now.Sub(before)
	if err != nil || d.Tick.Count() == 0 {
		return nil
	}
	s.last = &d
	return s.last
}

// finish adds the records that the workers, which have ended, still have.
func (s *sampler) finish() {
	s.sum.reset()
	for _, w := range s.run.workers {
		w.collect(s.sum)
		s.sum.merge(w.live)
	}
	p := s.point(s.run.now())
	if last := &s.run.last; last.Phase != "" { // The goodbye is no part of the run.
		p.Phase, p.Clients = last.Phase, last.Clients
	}
	s.add(p)
	s.flush()
}

// add adds a point to the series, or to the point that is not complete yet.
func (s *sampler) add(p Point) {
	if s.held != nil {
		p = joined(s.held, &p)
	}
	s.held = &p
	if s.count++; s.count >= s.pairs {
		s.flush()
	}
}

// flush moves the point that was held into the series.
func (s *sampler) flush() {
	if s.held == nil {
		return
	}
	s.series.Points = append(s.series.Points, *s.held)
	s.held, s.count = nil, 0
	if all := s.series.Points; len(all) >= maxPoints {
		for i := range len(all) / 2 {
			all[i] = joined(&all[2*i], &all[2*i+1])
		}
		s.series.Points = append(all[:0:0], all[:len(all)/2]...)
		s.pairs *= 2
		s.series.Every *= 2
	}
}

// joined returns one point for two: the state of the later one, sums of counts, means of rates and
// the higher of two percentiles.
func joined(a, b *Point) Point {
	p := *b
	p.Joins += a.Joins
	p.Errors += a.Errors
	for _, x := range []struct{ to, with **float64 }{{&p.Snapshots, &a.Snapshots}, {&p.TickRate, &a.TickRate}} {
		if *x.to != nil && *x.with != nil {
			*x.to = hundredths((**x.to + **x.with) / 2)
		}
	}
	for _, x := range []struct {
		to   **float64
		with *float64
	}{
		{&p.Interval, a.Interval}, {&p.AgeP50, a.AgeP50}, {&p.AgeP99, a.AgeP99}, {&p.CallP50, a.CallP50}, {&p.CallP99, a.CallP99}, {&p.Tick, a.Tick},
		{&p.ServerMemory, a.ServerMemory}, {&p.ServerGoroutines, a.ServerGoroutines}, {&p.ServerSeries, a.ServerSeries},
		{&p.Memory, a.Memory}, {&p.Goroutines, a.Goroutines},
	} {
		if *x.to == nil || x.with != nil && *x.with > **x.to {
			*x.to = x.with
		}
	}
	return p
}
