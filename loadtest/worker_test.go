package loadtest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/clock"
)

const frame = 16 * time.Millisecond

// bench is a worker with one player and a measured window from 1 s to 2 s.
func bench() (*worker, *player) {
	r := &run{opts: options{clients: 1}, tick: frame}
	r.window.open(time.Second, 2*time.Second)
	w := newWorker(r)
	p := &player{period: frame, left: make(chan struct{}), meter: Meter{worker: w, rand: rand.New(rand.NewPCG(1, 2))}}
	return w, p
}

func TestIntervalsAreCountedByTheirEnd(t *testing.T) {
	w, p := bench()
	for _, ms := range []int{900, 985, 1001, 1030, 1990, 2001, 2020} {
		w.snapshot(p, time.Duration(ms)*time.Millisecond, 100)
	}
	if p.received != 3 || w.rec.snapshots != 3 || w.rec.bytes != 300 {
		t.Errorf("received %d, %d in all with %d bytes; want 3, 3, 300", p.received, w.rec.snapshots, w.rec.bytes)
	}
	// 985→1001 ends inside and counts; 1990→2001 ends outside and does not.
	s := spread(w.rec.interval)
	if w.rec.interval.TotalCount() != 3 || !is(percentile(w.rec.interval, 1), 16) || !is(s.P50, 29) || !is(s.Max, 960) {
		t.Errorf("%d intervals, p50 %s, max %s", w.rec.interval.TotalCount(), figure(s.P50), figure(s.Max))
	}
	if w.live.snapshots != 7 || w.live.interval.TotalCount() != 6 {
		t.Errorf("the progress line sees %d snapshots and %d intervals", w.live.snapshots, w.live.interval.TotalCount())
	}
}

func TestTheFirstSnapshotEndsNoInterval(t *testing.T) {
	w, p := bench()
	w.snapshot(p, 1500*time.Millisecond, 1)
	if p.received != 1 || w.rec.interval.TotalCount() != 0 {
		t.Errorf("%d snapshots, %d intervals", p.received, w.rec.interval.TotalCount())
	}
}

// A stall skips frames; each counts from its own deadline.
func TestStalledFramesAllCountAsLate(t *testing.T) {
	w, p := bench()
	p.deadline = time.Second
	now := time.Second + 10*frame + time.Millisecond
	w.late(p, now)
	if n := w.rec.lateness.TotalCount(); n != 11 {
		t.Errorf("%d frames counted, want 11", n)
	}
	if p.deadline != time.Second+11*frame {
		t.Errorf("the next frame is due at %v", p.deadline)
	}
	if max := percentile(w.rec.lateness, 100); !is(max, 161) {
		t.Errorf("max %s ms, want 161", figure(max))
	}
	if least := percentile(w.rec.lateness, 1); !is(least, 1) {
		t.Errorf("least %s ms, want 1", figure(least))
	}
}

func TestOnlyFramesOfTheWindowCount(t *testing.T) {
	w, p := bench()
	p.deadline = time.Second - frame
	w.late(p, p.deadline)
	p.deadline = 2 * time.Second
	w.late(p, p.deadline)
	if n := w.rec.lateness.TotalCount(); n != 0 {
		t.Errorf("%d frames from outside of the window", n)
	}
}

func TestFramesAndSnapshotsAllocateNothing(t *testing.T) {
	w, p := bench()
	at := time.Second
	if n := testing.AllocsPerRun(1000, func() {
		at += time.Millisecond / 2
		p.deadline = at
		w.late(p, at)
		w.snapshot(p, at, 1)
		w.handOver()
		p.meter.due(nil, at)
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// With --exact-frames a worker with clients sleeps until the next frame; a worker without clients
// waits for the first one.
func TestExactFramesAreStartedAtTheirTime(t *testing.T) {
	w, p := bench()
	if w.sleep != nil || newWorker(&run{opts: options{exact: true}, clock: clock.NewSystem()}).sleep == nil {
		t.Error("frames are exact without --exact-frames, or not exact with it")
	}
	var slept []time.Duration
	w.sleep = func(until time.Duration) { slept = append(slept, until) }
	w.run.clock, w.timer = clock.NewSystem(), time.NewTimer(time.Hour)
	if w.wait(w.run.now()); len(slept) != 0 {
		t.Error("a worker without clients does not wait for one")
	}
	w.players = append(w.players, p)
	if w.wait(time.Second); !slices.Equal(slept, []time.Duration{time.Second}) {
		t.Errorf("it slept until %v, want 1s", slept)
	}
}

// calls runs the schedule of a meter up to times, and returns the scheduled time of each call.
func calls(m *Meter, s schedule, times ...time.Duration) []time.Duration {
	var meant []time.Duration
	s.ask = func(_ *netloop.Tick, at time.Duration, _ bool) { meant = append(meant, at) }
	m.schedules = []schedule{s}
	for _, at := range times {
		m.due(nil, at)
	}
	return meant
}

// The schedule is open: a late frame makes all due calls, at their scheduled times.
func TestLateFramesDoNotMoveTheSchedule(t *testing.T) {
	w, p := bench()
	ms := time.Millisecond
	got := calls(&p.meter, schedule{next: 900 * ms, period: 100 * ms}, 890*ms, 910*ms, 1000*ms, 1350*ms, 2100*ms)
	if len(got) != 13 {
		t.Fatalf("%d calls, want 13: %v", len(got), got)
	}
	for i, at := range got {
		if want := (900 + time.Duration(i)*100) * ms; at != want {
			t.Errorf("call %d was scheduled at %v, want %v", i, at, want)
		}
	}
	// Those scheduled from 1 s until before 2 s are measured.
	if w.rec.intended != 10 || w.rec.sent != 10 || p.meter.pending != 10 {
		t.Errorf("%d intended, %d sent, %d pending; want 10 each", w.rec.intended, w.rec.sent, p.meter.pending)
	}
}

func TestCallsSkippedByAStallCountAsIntended(t *testing.T) {
	w, p := bench()
	got := calls(&p.meter, schedule{next: time.Second, period: time.Millisecond}, 1500*time.Millisecond)
	if len(got) != maxBurst || w.rec.sent != maxBurst || w.rec.intended != 501 {
		t.Errorf("%d calls, %d sent, %d intended; want %d, %d, 501", len(got), w.rec.sent, w.rec.intended, maxBurst, maxBurst)
	}
	if next := p.meter.schedules[0].next; next != 1501*time.Millisecond {
		t.Errorf("the next call is due at %v", next)
	}
}

func TestOnlyMeasuredAnswersCount(t *testing.T) {
	w, p := bench()
	m := &p.meter
	m.pending = 2
	m.took(30*time.Millisecond, true, nil)
	m.took(40*time.Millisecond, false, nil)
	m.took(50*time.Millisecond, true, errors.New("refused"))
	m.took(60*time.Millisecond, false, errors.New("refused"))
	if w.rec.answered != 1 || w.rec.rtt.TotalCount() != 1 || !is(percentile(w.rec.rtt, 100), 30) {
		t.Errorf("%d answered, max %s ms", w.rec.answered, figure(percentile(w.rec.rtt, 100)))
	}
	if m.pending != 0 || w.rec.callErrors["refused"] != 1 || w.live.rtt.TotalCount() != 2 {
		t.Errorf("%d pending, %v, %d live", m.pending, w.rec.callErrors, w.live.rtt.TotalCount())
	}
}

// A call that fails because the run ends its client counts as not sent, and not as an error.
func TestTheRunsOwnEndFailsNoCall(t *testing.T) {
	w, p := bench()
	ended := p.meter.begin(1500*time.Millisecond, func() time.Duration { return 0 })
	p.meter.intend(0, 1200*time.Millisecond)
	p.meter.varies = true
	digest := w.rec.schedule
	p.meter.intend(0, 1300*time.Millisecond)
	p.meter.ending = true
	ended(errors.New("left"))
	if r := w.rec; r.intended != 2 || r.sent != 0 || len(r.callErrors) != 0 || w.live.errors != 0 || p.meter.pending != 0 {
		t.Errorf("%d intended, %d sent, %v, %d pending", r.intended, r.sent, r.callErrors, p.meter.pending)
	}
	if digest == 0 || w.rec.schedule != digest {
		t.Errorf("the digest is %x, and then %x", digest, w.rec.schedule)
	}
}

// A call that a bot starts in the measured window is counted with its latency, and its counts are
// in the report; before and after the window they are not.
func TestCallsAndCountsOfBotsAreReported(t *testing.T) {
	w, p := bench()
	m := &p.meter
	for _, c := range []struct {
		at  time.Duration // The window is from 1 s until before 2 s.
		err error
	}{{at: time.Second}, {at: 1500 * time.Millisecond, err: errors.New("refused")}, {at: 2 * time.Second}} {
		ended := m.begin(c.at, func() time.Duration { return c.at + 30*time.Millisecond })
		m.count("matches", c.at)
		ended(c.err)
	}
	if r := w.rec; r.intended != 2 || r.sent != 2 || r.answered != 1 || m.pending != 0 || r.callErrors["refused"] != 1 || !is(percentile(r.rtt, 100), 30) {
		t.Errorf("%d intended, %d sent, %d answered, %d pending, %v", r.intended, r.sent, r.answered, m.pending, r.callErrors)
	}
	sum := newRecorder()
	sum.merge(w.rec)
	sum.counts.add("draws")
	r := report{rec: sum}
	r.fill(nil)
	if got := happened(r.Counts); got != "1 draws, 2 matches" {
		t.Errorf("the report has %q", got)
	}
}

func TestCallsRefusesInvalidRates(t *testing.T) {
	_, p := bench()
	for _, rate := range []float64{0, -1, maxCallRate + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v calls a second were accepted", rate)
				}
			}()
			p.meter.schedule(rate, nil)
		}()
	}
}

// Every sample reaches the line of progress exactly once, whether or not the worker runs between
// a request and its collection.
func TestProgressCountsEverySampleOnce(t *testing.T) {
	w, p := bench()
	w.run.clock = clock.NewSystem()
	sum, clean, at := newLive(), newLive(), time.Duration(0)
	for i := range 20 {
		if clean != nil {
			w.request(clean)
		}
		for range 3 {
			at += frame
			w.snapshot(p, at, 1)
			if i%3 != 0 {
				w.handOver()
			}
		}
		clean = w.collect(sum)
	}
	w.handOver()
	w.collect(sum)
	if sum.snapshots+w.live.snapshots != 60 || sum.snapshots < 40 {
		t.Errorf("%d collected and %d waiting of 60 snapshots", sum.snapshots, w.live.snapshots)
	}
}

func TestAClientSettlesOnce(t *testing.T) {
	w, p := bench()
	p.verify = equal
	w.settle(p)
	w.leave(p, errors.New("lost"))
	if w.run.settled.Load() != 1 || w.run.gone.Load() != 1 || p.verify != failed || !p.gone {
		t.Errorf("settled %d, gone %d, %v", w.run.settled.Load(), w.run.gone.Load(), p.verify)
	}
}

// A returning client is counted once per break, and as away until it is back or closed.
func TestBreaksAreCounted(t *testing.T) {
	w, p := bench()
	for i, s := range []struct {
		phase                client.Phase
		had                  uint64 // resumes of the client
		away, drops, resumes int64
	}{
		{client.Playing, 0, 0, 0, 0}, {client.Reconnecting, 0, 1, 1, 0}, {client.Reconnecting, 0, 1, 1, 0}, {client.Loading, 0, 0, 1, 0},
		{client.Playing, 0, 0, 1, 0}, {client.Reconnecting, 0, 1, 2, 0}, {client.Playing, 1, 0, 2, 1}, {client.Reconnecting, 1, 1, 3, 1},
		{client.Closed, 1, 0, 3, 1},
	} {
		w.state(p, s.phase, s.had)
		if got := [...]int64{w.run.away.Load(), w.run.drops.Load(), w.run.resumes.Load()}; got != [...]int64{s.away, s.drops, s.resumes} {
			t.Errorf("after change %d: away, drops and resumes are %v", i, got)
		}
	}
}
