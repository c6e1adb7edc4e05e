package loadtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/metrics/ticks"
)

// The intervals between updates of the progress line.
const (
	terminalEvery = 500 * time.Millisecond
	lineEvery     = 2 * time.Second // without a terminal, which keeps every line
)

// startProgress shows progress from a goroutine of its own, until the returned function is called.
func (r *run) startProgress(ctx context.Context) (stop func()) {
	if r.screen.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		every := lineEvery
		if r.screen.terminal {
			every = terminalEvery
		}
		p := newProgress(ctx, r)
		for at := r.now() + every; r.clock.WaitUntil(ctx, at) == nil; at = max(at+every, r.now()) {
			r.screen.progress(p.line(ctx))
		}
	})
	return func() {
		cancel()
		done.Wait()
		r.screen.clear()
	}
}

// progress makes the progress lines. Only the goroutine of startProgress uses it.
type progress struct {
	run   *run
	clean []*live // by worker: an empty record for the next request; nil while the worker has it
	sum   *live
	since time.Duration // of the last line
	ticks *ticks.Snapshot
	phase phase
	began time.Duration // of the phase
}

func newProgress(ctx context.Context, r *run) *progress {
	p := &progress{run: r, sum: newLive(), since: r.now()}
	for range r.workers {
		p.clean = append(p.clean, newLive())
	}
	p.serverTick(ctx)
	return p
}

// gather adds up the workers' records since the last time.
func (p *progress) gather(ctx context.Context) {
	p.sum.reset()
	for i, w := range p.run.workers {
		if p.clean[i] != nil {
			w.request(p.clean[i])
			p.clean[i] = nil
		}
	}
	// The only possible error is that of ctx, which ends the progress.
	_ = p.run.clock.WaitUntil(ctx, p.run.now()+2*idle)
	for i, w := range p.run.workers {
		p.clean[i] = w.collect(p.sum)
	}
}

// line describes the time since the last line: rtt is the calls' latency, p50 and p99, gap the 99th
// percentile of the intervals between snapshots, and tick that of the server's ticks, all in
// milliseconds.
func (p *progress) line(ctx context.Context) string {
	p.gather(ctx)
	r, now := p.run, p.run.now()
	if at := r.phase(); at != p.phase {
		p.phase, p.began = at, now
	}
	parts := []string{
		p.where(now),
		bots(r.connected.Load()-r.gone.Load()-r.away.Load(), r.opts.clients),
		fmt.Sprintf("%.0f snap/s", float64(p.sum.snapshots)/(now-p.since).Seconds()),
	}
	if n := r.drops.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d drops", n))
	}
	if h := p.sum.rtt; h.TotalCount() > 0 {
		parts = append(parts, fmt.Sprintf("rtt %.0f/%.0f", *percentile(h, 50), *percentile(h, 99)))
	}
	if h := p.sum.interval; h.TotalCount() > 0 {
		parts = append(parts, fmt.Sprintf("gap %.0f", *percentile(h, 99)))
	}
	if tick := p.serverTick(ctx); tick != nil {
		parts = append(parts, fmt.Sprintf("tick %.1f ms", *tick))
	}
	p.since = now
	return strings.Join(parts, " │ ")
}

// bots returns the number of playing bots, and the wanted number if some do not play.
func bots(playing int64, wanted int) string {
	if playing == int64(wanted) {
		return fmt.Sprintf("%d bots", wanted)
	}
	return fmt.Sprintf("%d/%d bots", playing, wanted)
}

// where names the phase, and its progress.
func (p *progress) where(now time.Duration) string {
	var whole time.Duration
	switch p.phase {
	case warming:
		whole = p.run.opts.warmup
	case measuring:
		whole, p.began = p.run.opts.duration, time.Duration(p.run.window.from.Load())
	case ramping, verifying, goodbye:
		return p.phase.String()
	}
	return fmt.Sprintf("%s %.0f/%.0fs", p.phase, min(now-p.began, whole).Seconds(), whole.Seconds())
}

// serverTick returns the 99th percentile of the server's ticks since the last line.
func (p *progress) serverTick(ctx context.Context) *float64 {
	if p.run.admin == nil {
		return nil
	}
	s, err := p.run.admin.read(ctx)
	if err != nil {
		return nil // The measured readings report a lasting error.
	}
	before := p.ticks
	p.ticks = &s
	if before == nil {
		return nil
	}
	d, err := s.Sub(before)
	if err != nil || d.Tick.Count() == 0 {
		return nil
	}
	return millis(d.Tick.Percentile(99))
}
