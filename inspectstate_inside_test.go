package netloop

import "testing"

// A search of many objects continues in the next tick when its time is used up, and then finds each
// object once. All found objects are described as of one capture, without those that have ended.
func TestAStateSearchContinuesInTheNextTick(t *testing.T) {
	r, _ := spawned(t, Config{})
	const crowd = 5*searchAtOnce + 7
	var ones []*Object[hiddenState]
	if err := r.e.Inspect(func() {
		for range crowd {
			ones = append(ones, hiddenOnes.Spawn(&r.tick, hiddenState{N: 1}))
		}
	}); err != nil {
		t.Fatal(err)
	}
	step := func(n uint64) {
		t.Helper()
		if err := r.e.Step(r.e.Timeline().Input(n)); err != nil {
			t.Fatal(err)
		}
	}
	step(1)
	var parts int
	search := func(q *stateQuery, between func()) stateAnswer {
		t.Helper()
		s := stateSearch{r: r, q: q}
		for parts = 1; ; parts++ {
			looks := 0
			v, done := s.run(func() bool { looks++; return looks == 1 }) // time for one look more
			if done {
				return v.(stateAnswer)
			}
			between()
		}
	}
	a := search(&stateQuery{}, func() {})
	seen := map[string]bool{}
	for _, o := range a.Objects {
		seen[o.ID] = true
	}
	if len(seen) != maxRows || a.More != crowd+1-maxRows || parts < 3 {
		t.Errorf("%d objects and %d more in %d parts", len(seen), a.More, parts)
	}
	last := ones[crowd-1].o.ID()
	if a = search(&stateQuery{find: last.String()}, func() {}); len(a.Objects) == 0 || a.Objects[len(a.Objects)-1].ID != last.String() {
		t.Errorf("the last object is not found: %+v", a)
	}
	n := uint64(2)
	a = search(&stateQuery{}, func() {
		if n == 2 {
			if err := r.e.Inspect(func() { ones[0].Despawn(&r.tick) }); err != nil {
				t.Fatal(err)
			}
		}
		step(n)
		n++
	})
	if len(a.Objects) != maxRows-1 || a.Tick != r.e.Captured() || a.Tick < 3 {
		t.Errorf("%d objects as of tick %d, want those of %d", len(a.Objects), a.Tick, r.e.Captured())
	}
}
