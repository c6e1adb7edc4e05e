package loadtest

import (
	"fmt"
	"strings"
	"time"
)

// lineEvery is the interval between lines of progress.
const lineEvery = 5 * time.Second

// progress makes the lines of progress. Only the sampler's goroutine uses it.
type progress struct {
	run   *run
	phase phase
	began time.Duration // of the phase
}

// line describes a point: rtt is the calls' latency, p50 and p99, gap the 99th percentile of the
// intervals between snapshots, and tick that of the server's ticks, all in milliseconds.
func (g *progress) line(p *Point) string {
	r := g.run
	parts := []string{g.where(r.now()), bots(p.Clients, r.opts.clients)}
	if p.Snapshots != nil {
		parts = append(parts, fmt.Sprintf("%.0f Hz", *p.Snapshots))
	}
	if n := r.drops.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d drops", n))
	}
	if p.CallP50 != nil {
		parts = append(parts, fmt.Sprintf("rtt %.0f/%.0f", *p.CallP50, *p.CallP99))
	}
	if p.Interval != nil {
		parts = append(parts, fmt.Sprintf("gap %.0f", *p.Interval))
	}
	if p.Tick != nil {
		parts = append(parts, fmt.Sprintf("tick %.1f ms", *p.Tick))
	}
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
func (g *progress) where(now time.Duration) string {
	done, whole := g.progress(now)
	if whole == 0 {
		return g.phase.String()
	}
	return fmt.Sprintf("%s %.0f/%.0fs", g.phase, done.Seconds(), whole.Seconds())
}

// progress sets the phase, and returns its progress and its length, which is 0 if it is not known.
func (g *progress) progress(now time.Duration) (done, whole time.Duration) {
	if at := g.run.phase(); at != g.phase {
		g.phase, g.began = at, now
	}
	switch g.phase {
	case warming:
		whole = g.run.opts.warmup
	case measuring:
		whole, g.began = g.run.opts.duration, time.Duration(g.run.window.from.Load())
	case ramping, verifying, goodbye:
	}
	return min(now-g.began, whole), whole
}
