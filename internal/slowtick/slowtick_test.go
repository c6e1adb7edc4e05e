package slowtick

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/loop"
)

const period = time.Second / 60

// noGC keeps the tests independent of the process.
func noGC() GC { return GC{} }

// tick is a record of the n-th tick with systems of given costs in Update.
func tick(n uint64, costs ...time.Duration) *loop.Record {
	rec := &loop.Record{Tick: n, Start: time.Duration(n) * period, Deadline: time.Duration(n)*period - time.Millisecond}
	for i, c := range costs {
		rec.Systems = append(rec.Systems, loop.SystemCost{Name: fmt.Sprint("test.", i), Stage: loop.Update, Cost: c, Runs: 1})
		rec.Duration += c
	}
	rec.Stages[loop.Update-1] = rec.Duration
	return rec
}

func TestARecordHasTheCostsOfATick(t *testing.T) {
	var reads uint64
	// The first read is of the time before.
	l := newLog(period, func() GC { reads++; return GC{Cycles: reads - 1, CPU: 2, Pauses: 3} })
	rec := tick(9, 4*time.Millisecond, 20*time.Millisecond, time.Millisecond, 10*time.Microsecond, 20*time.Microsecond)
	rec.Systems = append(rec.Systems, loop.SystemCost{Name: "test.idle", Stage: loop.PreUpdate})
	rec.Dropped, rec.FixedSteps = 2, 3
	f := Facts{Overload: 1, Clients: 4, Arrivals: 5, Queues: [loop.NumStages]int{loop.Update - 1: 6}, Work: 7}
	if blame := l.Observe(rec, &f); blame.Name != "test.1" {
		t.Errorf("%v is blamed", blame)
	}
	rec.Systems[0].Name = "nothing of it is kept"
	got := l.Last()
	if got.Budget != period || len(got.Ticks) != 1 {
		t.Fatalf("%+v", got)
	}
	want := Record{
		Tick: 9, Start: rec.Start, Lateness: time.Millisecond, Duration: rec.Duration, Stages: rec.Stages,
		Cause: CauseSystem, Blame: System{"test.1", "Update", 20 * time.Millisecond, 1},
		Systems: []System{
			{"test.0", "Update", 4 * time.Millisecond, 1}, {"test.1", "Update", 20 * time.Millisecond, 1}, {"test.2", "Update", time.Millisecond, 1},
		},
		Others:  Others{Systems: 2, Cost: 30 * time.Microsecond},
		Dropped: 2, FixedSteps: 3, Facts: f, GC: GC{1, 2, 3},
	}
	a, b := encode(t, got.Ticks[0]), encode(t, want)
	if a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// For any costs of systems, no record outgrows its memory, and the costs add up.
func TestCostsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Int64Range(0, 1e6), 0, 300).Draw(t, "costs")
		var r Record
		r.Systems = make([]System, 0, maxSystems)
		var all []time.Duration
		for _, c := range costs {
			all = append(all, time.Duration(c))
		}
		rec := tick(1, all...)
		r.fill(rec, &Facts{}, GC{})
		if len(r.Systems) > maxSystems || cap(r.Systems) != maxSystems {
			t.Fatalf("%d systems", len(r.Systems))
		}
		sum := r.Others.Cost
		for _, s := range r.Systems {
			sum += s.Cost
			if s.Cost > r.Blame.Cost {
				t.Fatalf("%v took longer than the blamed system, %v", s, r.Blame)
			}
		}
		if sum != rec.Duration || len(r.Systems)+r.Others.Systems != len(costs) {
			t.Fatalf("%v in %d and %d systems, want %v in %d", sum, len(r.Systems), r.Others.Systems, rec.Duration, len(costs))
		}
	})
}

// The end of each tick is known when the next one is late.
func TestATickIsLateBehindALongOne(t *testing.T) {
	l := newLog(period, noGC)
	for n := range uint64(2) {
		rec := tick(n+1, time.Millisecond)
		if rec.Deadline = rec.Start - period/2; n == 0 {
			rec.Duration = period
		}
		l.Observe(rec, &Facts{})
	}
	if r := l.Last().Ticks[1]; r.Cause != CauseBehind {
		t.Errorf("the cause is %q", r.Cause)
	}
}

// A system is named from a sixty-fourth of the tick on.
func TestSmallSystemsAreAddedUp(t *testing.T) {
	for systems, named := range map[int]int{64: 64, 65: 0} {
		l := newLog(period, noGC)
		l.Observe(tick(1, slices.Repeat([]time.Duration{time.Millisecond}, systems)...), &Facts{})
		if r := l.Last().Ticks[0]; len(r.Systems) != named || r.Others.Systems != systems-named || r.Blame.Name != "test.0" {
			t.Errorf("of %d systems %d are named, %d added up, and %s is blamed", systems, len(r.Systems), r.Others.Systems, r.Blame.Name)
		}
	}
}

// At most 64 systems are named, however short the tick.
func TestRecordsAreBounded(t *testing.T) {
	l := newLog(period, noGC)
	l.Observe(tick(1, slices.Repeat([]time.Duration{1}, 65)...), &Facts{})
	if r := l.Last().Ticks[0]; len(r.Systems) != 64 || r.Others.Systems != 1 {
		t.Errorf("%d are named, %d added up", len(r.Systems), r.Others.Systems)
	}
}

func TestLastTicksAreKept(t *testing.T) {
	l := newLog(period, noGC)
	if r := l.Last(); len(r.Ticks) != 0 || encode(t, r.Ticks) != "[]" {
		t.Errorf("before the first tick: %+v", r)
	}
	for n := range uint64(LastTicks + 250) {
		l.Observe(tick(n+1, time.Millisecond), &Facts{})
	}
	r := l.Last()
	if len(r.Ticks) != LastTicks || r.Ticks[0].Tick != 251 || r.Ticks[LastTicks-1].Tick != LastTicks+250 {
		t.Fatalf("%d ticks from %d to %d", len(r.Ticks), r.Ticks[0].Tick, r.Ticks[len(r.Ticks)-1].Tick)
	}
}

// The worst ticks are the first of all ticks younger than an hour, sorted by duration.
func TestTheSlowestTicksAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog(period, noGC)
		var all []Record
		var start time.Duration
		for n := range rapid.IntRange(1, 400).Draw(t, "ticks") {
			start += rapid.SampledFrom([]time.Duration{period, time.Minute}).Draw(t, "gap")
			rec := tick(uint64(n+1), time.Duration(rapid.IntRange(0, 50).Draw(t, "cost")))
			rec.Start, rec.Deadline = start, start
			l.Observe(rec, &Facts{})
			all = append(all, Record{Start: start, Duration: rec.Duration})
		}
		all = slices.DeleteFunc(all, func(r Record) bool { return start-r.Start >= WorstFor })
		slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(b.Duration, a.Duration) })
		got := l.Worst().Ticks
		if len(got) > WorstTicks || len(got) == 0 {
			t.Fatalf("%d ticks", len(got))
		}
		// An expired tick is replaced by later ticks only.
		if got[0].Duration != all[0].Duration {
			t.Fatalf("the worst is %v, not %v", got[0].Duration, all[0].Duration)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Duration > got[i-1].Duration || start-got[i].Start >= WorstFor {
				t.Fatalf("%v after %v, %v old", got[i].Duration, got[i-1].Duration, start-got[i].Start)
			}
		}
	})
}

func TestTheSlowestTicksOfAnHourAreKept(t *testing.T) {
	l := newLog(period, noGC)
	for n := range uint64(10_000) {
		cost := time.Millisecond
		if n%100 == 50 {
			cost = time.Duration(n) * time.Microsecond
		}
		l.Observe(tick(n+1, cost), &Facts{})
	}
	got := l.Worst().Ticks
	if len(got) != WorstTicks {
		t.Fatalf("%d ticks", len(got))
	}
	for i, r := range got {
		if want := uint64(9950 - 100*i); r.Tick != want+1 || r.Duration != time.Duration(want)*time.Microsecond {
			t.Fatalf("place %d is tick %d with %v", i+1, r.Tick, r.Duration)
		}
	}
	late := tick(1_000_000, 2*time.Millisecond)
	l.Observe(late, &Facts{})
	if got := l.Worst().Ticks; len(got) != 1 || got[0].Tick != 1_000_000 {
		t.Errorf("hours later %d ticks remain", len(got))
	}
}

// A tick is one of the worst for less than an hour, also if it took no time. Ticks of the same
// duration are in order.
func TestTheWorstAreForgottenAfterAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		starts []time.Duration
		costs  []time.Duration // the last one is that of the further ticks
		want   []uint64
	}{
		"in order":   {[]time.Duration{0, 0, time.Minute, time.Hour}, []time.Duration{5}, []uint64{3, 4}},
		"no time":    {[]time.Duration{0, 1, 2}, []time.Duration{0}, []uint64{1, 2, 3}},
		"a full log": {append(make([]time.Duration, WorstTicks), time.Hour), append(slices.Repeat([]time.Duration{10}, WorstTicks), 5), []uint64{WorstTicks + 1}},
	} {
		l := newLog(period, noGC)
		for i, start := range c.starts {
			rec := tick(uint64(i+1), c.costs[min(i, len(c.costs)-1)])
			rec.Start = start
			l.Observe(rec, &Facts{})
		}
		var got []uint64
		for _, r := range l.Worst().Ticks {
			got = append(got, r.Tick)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the worst are %v, want %v", name, got, c.want)
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	l := New(period)
	rec := tick(0, slices.Repeat([]time.Duration{time.Millisecond}, 40)...)
	if n := testing.AllocsPerRun(2*LastTicks, func() {
		rec.Tick++
		rec.Start += time.Minute
		rec.Duration += time.Microsecond // Always one of the worst.
		rec.Systems[rec.Tick%40].Cost += time.Microsecond
		l.Observe(rec, &Facts{})
	}); n != 0 {
		t.Errorf("%v allocations per tick", n)
	}
}

// A tick that meets readers continues, whichever records they lock.
func TestReadersNeverDelayATick(t *testing.T) {
	l := newLog(period, noGC)
	for i := range LastTicks - 1 {
		l.last[i].mu.Lock() // Readers in all slots but one.
	}
	for i := range l.worst {
		l.worst[i].mu.Lock()
	}
	for n := range uint64(3) {
		l.Observe(tick(n+1, time.Second), &Facts{})
	}
	for i := range LastTicks - 1 {
		l.last[i].mu.Unlock()
	}
	for i := range l.worst {
		l.worst[i].mu.Unlock()
	}
	if r := l.Last(); len(r.Ticks) != 1 || r.Ticks[0].Tick != 3 {
		t.Errorf("%d ticks", len(r.Ticks))
	}
}

// Ticks and readers at once, for the race detector.
func TestTicksAndReadersRunConcurrently(t *testing.T) {
	l := New(period)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, r := range append(l.Last().Ticks, l.Worst().Ticks...) {
					if len(r.Systems) != 1 || r.Systems[0].Cost != r.Duration {
						t.Errorf("tick %d: %+v", r.Tick, r)
						return
					}
				}
			}
		})
	}
	for n := range uint64(5000) {
		l.Observe(tick(n+1, time.Duration(n%777+1)), &Facts{})
	}
	close(done)
	readers.Wait()
}

func TestGarbageCollectionsAreMeasured(t *testing.T) {
	var c collector
	c.read()
	runtime.GC()
	gc := c.read()
	if gc.Cycles == 0 || gc.CPU <= 0 || c.last.Cycles == 0 {
		t.Errorf("after a collection: %+v", gc)
	}
}

func BenchmarkObserve(b *testing.B) {
	l := New(period)
	rec := tick(1, slices.Repeat([]time.Duration{20 * time.Microsecond}, 70)...)
	b.ReportAllocs()
	for b.Loop() {
		rec.Tick++
		rec.Start += period
		l.Observe(rec, &Facts{})
	}
}

// A system that did not run is not blamed, even in a tick that took no time.
func TestAnIdleSystemIsNotBlamed(t *testing.T) {
	l := newLog(period, noGC)
	rec := tick(1)
	rec.Systems = []loop.SystemCost{{Name: "test.idle", Stage: loop.PreUpdate}}
	if blame := l.Observe(rec, &Facts{}); blame != (System{}) {
		t.Errorf("no system ran, and %v is blamed", blame)
	}
	rec.Systems = append(rec.Systems, loop.SystemCost{Name: "test.ran", Stage: loop.Update, Runs: 1})
	if blame := l.Observe(rec, &Facts{}); blame.Name != "test.ran" {
		t.Errorf("%v is blamed", blame)
	}
}

// Counters of the collector that have not risen, or have fallen, count as no work.
func TestUnchangedCollectorCountersAreZero(t *testing.T) {
	now := GC{Cycles: 3, CPU: 5 * time.Millisecond, Pauses: time.Millisecond}
	for _, was := range []GC{now, {Cycles: 3, CPU: time.Second, Pauses: time.Second}} {
		if got := now.since(was); got != (GC{}) {
			t.Errorf("from %+v to %+v: %+v", was, now, got)
		}
	}
	if got, want := now.since(GC{1, 2, 3}), (GC{2, now.CPU - 2, now.Pauses - 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n, d := count(metrics.Value{}), seconds(metrics.Value{}); n != 0 || d != 0 {
		t.Errorf("figures that a runtime does not have are %d and %v", n, d)
	}
}
