package loadtest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// planned returns options with a parsed schedule.
func planned(t *testing.T, change func(*options)) *options {
	t.Helper()
	o := &options{clients: 100, ramp: time.Second, duration: 20 * time.Second, seed: 1}
	change(o)
	if err := o.parseSchedule(); err != nil {
		t.Fatal(err)
	}
	return o
}

// The plan of a run follows from its options and its seed alone.
func TestThePlanIsThatOfTheSeed(t *testing.T) {
	plan := func(seed uint64) [2][]event {
		o := planned(t, func(o *options) { o.seed, o.churn, o.storm = seed, "2%/s", "5s" })
		ramp, window := o.plan()
		return [2][]event{ramp, window}
	}
	one := plan(1)
	if !reflect.DeepEqual(one, plan(1)) || reflect.DeepEqual(one, plan(2)) {
		t.Error("two plans of one seed differ, or two of different seeds are equal")
	}
	churned := 0
	for i, e := range one[1] {
		if i > 0 && e.at < one[1][i-1].at || !e.again {
			t.Fatalf("event %d: %+v", i, e)
		}
		if e.at != 5*time.Second {
			churned++
		}
	}
	// 2 a second, without the one at the end; one of them is at the time of the storm.
	if len(one[0]) != 100 || len(one[1]) != 139 || churned != 38 {
		t.Errorf("%d joins, %d events, %d of churn", len(one[0]), len(one[1]), churned)
	}
}

// The number of clients grows evenly, in ten steps, or not at all during the window.
func TestSchedulesShapeThePopulation(t *testing.T) {
	for shape, want := range map[string][4]int{ // in the ramp; at 0 s, 9.9 s and 20 s of the window
		constant: {100, 100, 100, 100},
		stepwise: {10, 10, 50, 100},
		linear:   {1, 1, 50, 100},
	} {
		ramp, window := planned(t, func(o *options) { o.schedule = shape }).plan()
		at := func(d time.Duration) int {
			n := len(ramp)
			for _, e := range window {
				if e.at <= d {
					n++
				}
			}
			return n
		}
		got := [4]int{len(ramp), at(0), at(9900 * time.Millisecond), at(20 * time.Second)}
		if got != want {
			t.Errorf("%s: %v clients, want %v", shape, got, want)
		}
	}
}

// Names are dealt by their shares, to the first clients as to all.
func TestSharesAreDealtEvenly(t *testing.T) {
	shares, err := parseShares("quic=80,websocket=20%")
	if err != nil {
		t.Fatal(err)
	}
	dealt := deal(shares, 1000)
	for n := 5; n <= len(dealt); n += 5 {
		socket := 0
		for _, name := range dealt[:n] {
			if name == "websocket" {
				socket++
			}
		}
		if socket != n/5 {
			t.Fatalf("%d of the first %d", socket, n)
		}
	}
	for _, text := range []string{"", "a=0", "a=x", "a=1,a=2", ",a", "a=-1", "a=NaN"} {
		if got, err := parseShares(text); err == nil {
			t.Errorf("%q is accepted: %v", text, got)
		}
	}
	o := options{room: "match-*", rooms: 3}
	if got := []string{o.roomOf(0), o.roomOf(4), (&options{}).roomOf(7)}; !slices.Equal(got, []string{"match-0", "match-1", ""}) {
		t.Errorf("rooms %q", got)
	}
}

// Two runs of a seed make the same calls at the same offsets, although their clients connect after
// different handshakes and their frames run at different times.
func TestRecordedSchedulesAreEqual(t *testing.T) {
	record := func(jitter uint64) (offsets []time.Duration, digest uint64) {
		w, p := bench()
		rng := rand.New(rand.NewPCG(jitter, 0))
		p.meter.anchor, p.meter.n = 500*time.Millisecond, 3
		const period = 30 * time.Millisecond
		now := 500*time.Millisecond + time.Duration(rng.IntN(100))*time.Millisecond // the handshake
		p.meter.schedules = []schedule{{
			next: following(p.meter.anchor+7*time.Millisecond, period, now), period: period,
			ask: func(_ *netloop.Tick, meant time.Duration, measured bool) {
				if measured {
					offsets = append(offsets, meant-time.Second)
				}
			},
		}}
		for ; now < 3*time.Second; now += time.Duration(5+rng.IntN(40)) * time.Millisecond {
			p.meter.due(nil, now)
		}
		return offsets, w.rec.schedule
	}
	one, digest := record(1)
	if len(one) != 33 {
		t.Fatalf("%d calls in a second", len(one))
	}
	for jitter := range uint64(20) {
		if other, d := record(jitter); !slices.Equal(one, other) || d != digest {
			t.Fatalf("the calls of another run: %v with %x, not %v with %x", other, d, one, digest)
		}
	}
}

// A client of --slow-readers has no figures, and its connection does not count as lost.
func TestSlowReadersHaveNoFigures(t *testing.T) {
	w, p := bench()
	p.meter.slow = true
	p.deadline = time.Second
	w.late(p, 1100*time.Millisecond)
	w.snapshot(p, 1100*time.Millisecond, 100)
	w.snapshot(p, 1200*time.Millisecond, 100)
	p.meter.begin(1100*time.Millisecond, nil)
	if r := w.rec; r.lateness.TotalCount()+r.interval.TotalCount() > 0 || r.snapshots+r.sent > 0 {
		t.Errorf("%+v", r)
	}
	w.state(p, client.Reconnecting, 0)
	w.state(p, client.Playing, 1)
	w.leave(p, errors.New("slow"))
	if r := w.run; len(w.lost) > 0 || r.drops.Load()+r.resumes.Load()+r.away.Load() != 0 || r.gone.Load() != r.disturbed.Load() || r.slowDrops.Load() != 2 {
		t.Errorf("lost %v, %d drops of slow readers", w.lost, r.slowDrops.Load())
	}
}

// A slow reader leaves its sockets unread for a part of each period of the window, from its join
// on, and reads outside of the window and while it joins.
func TestSlowReadersPause(t *testing.T) {
	const s = time.Second
	w, _ := bench()
	w.run.window.open(10*s, 100*s)
	for joined, unread := range map[time.Duration][][2]time.Duration{
		2 * s: {{10 * s, 25 * s}, {30 * s, 45 * s}, {50 * s, 65 * s}, {70 * s, 85 * s}, {90 * s, 100 * s}}, 91 * s: {{91 * s, 100 * s}}, 0: nil,
	} {
		r := slowReader{run: w.run}
		r.joined.Store(int64(joined))
		for at := time.Duration(0); at < 110*s; at += s / 2 {
			if joined > at {
				continue
			}
			want := slices.ContainsFunc(unread, func(of [2]time.Duration) bool { return at >= of[0] && at < of[1] })
			if got := r.unread(at); got != want {
				t.Errorf("joined at %v, at %v: unread %v", joined, at, got)
			}
		}
	}
}
