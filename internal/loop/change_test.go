package loop

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// manySystems is a loop of n systems at Update beside a handful with anchors, as a room has.
type manySystems struct {
	*Loop[*Now]
	tb    testing.TB
	specs []Spec[*Now]
	all   []*System[*Now]
	next  int
}

func newManySystems(tb testing.TB, n int, describe func(*Spec[*Now])) *manySystems {
	tb.Helper()
	now := new(Now)
	c := &manySystems{Loop: New(now, now, monotonic()), tb: tb}
	c.Follow(hz50)
	ask := at(func(*Now) {}, Update)
	for _, s := range []Spec[*Now]{
		{Name: "poll", Place: Head, Ask: ask}, {Name: "flush", Place: Tail, Ask: ask},
		{Name: "move", After: []string{"poll"}, Ask: ask}, {Name: "score", After: []string{"move"}, Before: []string{"flush"}, Ask: ask},
		{Name: "objects", IsGroup: true, After: []string{"move"}},
	} {
		if _, err := c.Add(s); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range n {
		s := Spec[*Now]{Name: fmt.Sprint("object ", i), Ask: ask}
		if describe(&s); s.Group == "" {
			s.Priority = i % 3 // A new system is in the middle.
		}
		c.specs, c.all = append(c.specs, s), append(c.all, nil)
		c.enter(i)
	}
	if _, err := c.Step(hz50.Input(1)); err != nil {
		tb.Fatal(err)
	}
	return c
}

func (c *manySystems) enter(i int) {
	var err error
	if c.all[i], err = c.Add(c.specs[i]); err != nil {
		c.tb.Fatal(err)
	}
}

// swap removes one system and adds it again, and so settles two changes.
func (c *manySystems) swap() {
	c.next = (c.next + 7919) % len(c.all)
	c.all[c.next].Remove()
	c.prepare()
	c.enter(c.next)
	c.prepare()
}

func plain(*Spec[*Now])      {}
func periodic(s *Spec[*Now]) { s.Periodic, s.Period = true, time.Second }
func grouped(s *Spec[*Now])  { s.Group = "objects" }

// BenchmarkChange measures the addition or removal of one system among many.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		for _, kind := range []struct {
			name     string
			describe func(*Spec[*Now])
		}{{"plain", plain}, {"periodic", periodic}, {"in a group", grouped}} {
			b.Run(fmt.Sprint(kind.name, " among ", n), func(b *testing.B) {
				c := newManySystems(b, n, kind.describe)
				b.ReportAllocs()
				for b.Loop() {
					c.swap()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/change")
			})
		}
	}
}

// BenchmarkStep measures a tick by the number of running systems.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkSteps(b, filled(b, n, Update)) })
		b.Run(fmt.Sprint(n, " due"), func(b *testing.B) {
			c := newManySystems(b, n, func(s *Spec[*Now]) { s.Periodic, s.Period = true, 20*ms })
			b.ReportAllocs()
			for tick := uint64(2); b.Loop(); tick++ {
				if _, err := c.Step(hz50.Input(tick)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The allocations of one change do not depend on the number of systems, and its time is a small
// part of a rebuild's: some thousandth, and a hundredth if others move in memory.
func TestOneChangeNeedsNoRebuild(t *testing.T) {
	const n, most = 10_000, 8 << 10 // bytes; two changes use about 3 KB
	for name, describe := range map[string]func(*Spec[*Now]){"plain": plain, "periodic": periodic, "in a group": grouped} {
		t.Run(name, func(t *testing.T) {
			c := newManySystems(t, n, describe)
			for range 10 {
				c.swap() // Its memory grows once.
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			const rounds = 20
			for range rounds {
				c.swap()
			}
			runtime.ReadMemStats(&after)
			if bytes := (after.TotalAlloc - before.TotalAlloc) / rounds; bytes > most {
				t.Errorf("removing and adding a system takes %d bytes, want at most %d", bytes, most)
			}
			clock, one, all := monotonic(), time.Hour, time.Hour
			for range 10 { // The minimum of many runs: other processes only add time.
				start := clock()
				c.swap()
				one = min(one, clock()-start)
				for _, s := range c.systems {
					c.touch(s)
				}
				start = clock()
				c.prepare()
				all = min(all, clock()-start)
			}
			if one > all/10 {
				t.Errorf("two changes cost %v, and a rebuild %v; want at most a tenth", one, all)
			}
		})
	}
}
