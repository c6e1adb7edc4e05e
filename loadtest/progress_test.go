package loadtest

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// The line of progress gives the number of players and the figures of the last second, and omits
// figures without samples. The point of the series has the same figures.
func TestTheProgressLineOmitsMissingFigures(t *testing.T) {
	w, _ := bench()
	r := w.run
	r.clock, r.workers = clock.NewSystem(), []*worker{w}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // It waits for no worker.
	s, g := newSampler(ctx, r), progress{run: r}
	says := func(want string) (p Point) {
		t.Helper()
		p = s.sample(ctx)
		if got := g.line(&p); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		return p
	}
	start := r.phase().String()
	says(start + " │ 0/1 bots")
	r.connected.Add(1)
	r.admitted.Add(1)
	r.drops.Add(1)
	record(w.live.rtt, 20*time.Millisecond)
	record(w.live.interval, 17*time.Millisecond)
	record(w.live.age, 30*time.Millisecond)
	w.live.errors++
	w.handOver()
	p := says(start + " │ 1 bots │ 0 Hz │ 1 drops │ rtt 20/20 │ gap 17")
	if p.Joins != 1 || p.Errors != 2 || !is(p.AgeP99, 30) || p.Tick != nil {
		t.Errorf("the point is %+v", p)
	}
	w.handOver()
	if p = says(start + " │ 1 bots │ 0 Hz │ 1 drops"); p.Joins != 0 || p.Errors != 0 || p.AgeP50 != nil {
		t.Errorf("the next point is %+v", p)
	}
	r.away.Add(1)
	w.handOver()
	says(start + " │ 0/1 bots │ 1 drops")
}

// The goroutine of the sampler has ended when stop returns: it prints nothing afterwards. The last
// point has the rest of the records, and the phase before the goodbye.
func TestTheSamplerEndsWithStop(t *testing.T) {
	w, _ := bench()
	r := w.run
	r.clock, r.workers, r.screen = clock.NewSystem(), []*worker{w}, newScreen(io.Discard, false)
	r.connected.Add(1)
	stacks := make([]byte, 1<<20)
	for range 20 {
		stop := r.startSampler(t.Context())
		record(w.live.age, 30*time.Millisecond)
		r.last = Point{Phase: "measuring", Clients: 7}
		if s := stop(); len(s.Points) != 1 || !is(s.Points[0].AgeP50, 30) || s.Points[0].Phase != "measuring" || s.Points[0].Clients != 7 {
			t.Fatalf("the series is %+v", s)
		}
		if text := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(text, "startSampler") {
			t.Fatalf("it runs on:\n%s", text)
		}
	}
}

// A series of many hours has at most maxPoints points, of equal length, and loses no count.
func TestALongSeriesIsBounded(t *testing.T) {
	s := &sampler{pairs: 1, series: Series{Every: 1}}
	const seconds = 5*maxPoints + 3
	for i := range seconds {
		high := float64(i)
		s.add(Point{At: float64(i + 1), Joins: 1, AgeP99: &high, Snapshots: hundredths(60)})
	}
	s.flush()
	all := s.series.Points
	joins := uint64(0)
	for i, p := range all {
		joins += p.Joins
		if last := i == len(all)-1; *p.AgeP99 != p.At-1 || *p.Snapshots != 60 || !last && p.Joins != uint64(s.series.Every) {
			t.Fatalf("point %d is %+v", i, p)
		}
	}
	if len(all) > maxPoints || joins != seconds || s.series.Every != 8 || all[len(all)-1].At != seconds {
		t.Errorf("%d points of %v s with %d joins, until %v", len(all), s.series.Every, joins, all[len(all)-1].At)
	}
}
