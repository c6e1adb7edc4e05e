package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// placed returns the names of a dump, stage by stage; systems without a stage are last.
func placed(stages []DumpStage) string {
	var all []string
	for _, d := range stages {
		for i := range d.Systems {
			all = append(all, fmt.Sprint(d.Stage, " ", d.Systems[i].Path()))
		}
	}
	return strings.Join(all, ", ")
}

func TestAPreviewShowsTheOrderWithoutAskingSystems(t *testing.T) {
	h := newHarness(t)
	asked := 0
	ask := func(stages ...Stage) func(Stage) func(*Now) {
		return func(s Stage) func(*Now) { asked++; return at(h.note, stages...)(s) }
	}
	h.add(Spec[*Now]{Name: "built in", BuiltIn: "nothing would", Ask: at(h.note, PreUpdate, Update), Stages: []Stage{Update, EarlyUpdate}})
	h.add(group("g", ""))
	h.add(Spec[*Now]{Name: "known", Group: "g", Ask: ask(PreUpdate, PostLateUpdate)})
	h.add(Spec[*Now]{Name: "narrow", Ask: ask(PreUpdate, Update), Stages: []Stage{PreUpdate, EarlyUpdate}})
	h.step()
	waits := h.add(Spec[*Now]{Name: "waits", Ask: ask(Update)})
	h.add(Spec[*Now]{Name: "named", Ask: ask(Update), Stages: []Stage{PostLateUpdate}})
	tree, before := h.Tree(), asked
	for i := range tree.Items {
		// A preview asks neither for EarlyUpdate again nor for Update the first time.
		if it := &tree.Items[i]; it.Spec.Name == "narrow" {
			it.Spec.Stages, it.Changed = []Stage{EarlyUpdate, PreUpdate, Update}, true
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	tree.Items = append(tree.Items,
		Item[*Now]{Spec: Spec[*Now]{Name: "new", Ask: ask(), Stages: []Stage{Update}, Priority: First, Context: ended}},
		Item[*Now]{Spec: Spec[*Now]{Name: "unknown", Ask: ask(Update)}},
		Item[*Now]{Spec: Spec[*Now]{Name: "new", Ask: ask(Update), Stages: []Stage{Update}}},
		Item[*Now]{Spec: Spec[*Now]{Name: "inside", Ask: ask(Update), Stages: []Stage{Update}, Group: "g", After: []string{"g"}}},
	)
	want := "PreUpdate g / known, PreUpdate narrow, " +
		"Update new, Update built in, Update g / inside, Update narrow, " +
		"PostLateUpdate g / known, PostLateUpdate named, " +
		"unset waits, unset unknown, unset new"
	if got := placed(h.Preview(tree)); got != want {
		t.Errorf("shown:\n%s\nwant\n%s", got, want)
	}
	if asked != before || waits.asked != 0 {
		t.Errorf("a preview asked %d times", asked-before)
	}
	// The stages of a system are known after Ask has run for all of them, even if there are none.
	h.step()
	if got := placed(h.Preview(h.Tree())); !strings.Contains(got, "Update waits") || strings.Contains(got, "unset") {
		t.Errorf("shown: %s", got)
	}
}

func TestATableOfSystems(t *testing.T) {
	stages := []DumpStage{
		{Stage: Update, Systems: []DumpSystem{
			{Name: "plain", Cost: &DumpCost{Runs: 12, Mean: 1500, P50: 1000, P99: 2_000_000}},
			{Name: "in", Groups: []string{"outer", "inner"}, Priority: -2, Before: []string{"a", "b"}, After: []string{"c"}, Conditional: true},
			{Name: "<off>", Place: Tail, Disabled: true, Pending: true, Quarantine: 1, Panics: 1},
			{Name: "once", Once: true, Disabled: true, Panics: 3},
			{Name: "every", Periodic: true, Period: time.Second},
			{Name: "catches", Periodic: true, Period: ms, Scaled: true, CatchUp: 1},
			{Name: "gap", Periodic: true, Period: ms, Gap: true, Before: []string{"a"}},
		}},
		{Stage: PostLateUpdate},
		{Systems: []DumpSystem{{Name: "new"}}},
	}
	const want = `stage and system      place  priority  every                      order                                 calls  mean   p50    p99       state
Update
  plain               body   0         -                          -                                     12     1.5µs  1.0µs  2000.0µs  ok
  outer / inner / in  body   -2        -                          before a, b; after c; on a condition  0      -      -      -         ok
  <off>               tail   0         -                          disabled                              0      -      -      -         pending, quarantined for 1 ticks, panicked 1 times
  once                body   0         once a tick                disabled                              0      -      -      -         panicked 3 times
  every               body   0         1s                         -                                     0      -      -      -         ok
  catches             body   0         1ms scaled, up to 1 times  -                                     0      -      -      -         ok
  gap                 body   0         at least 1ms               before a                              0      -      -      -         ok
PostLateUpdate
not placed yet
  new                 body   0         -                          -                                     0      -      -      -         ok
`
	if got := Table(stages, true); got != want {
		t.Errorf("of a running loop:\n%s\nwant\n%s", got, want)
	}
	const brief = `stage and system  place  priority  every  order
not placed yet
  new             body   0         -      -
`
	if got := Table(stages[2:], false); got != brief {
		t.Errorf("of a tree:\n%s\nwant\n%s", got, brief)
	}
}

func TestADumpHasTheReasonsWhyASystemDoesNotRun(t *testing.T) {
	h := newHarness(t)
	outer := h.add(Spec[*Now]{Name: "outer", IsGroup: true})
	inner := group("inner", "outer")
	inner.RunIf = func(n *Now) bool { panic("no answer") }
	in := h.add(inner)
	a := h.add(Spec[*Now]{Name: "a", Group: "inner", Scaled: true, Once: true, Ask: at(func(*Now) { panic("once") }, Update, FixedUpdate)})
	if d := a.Dump(0); !d.Pending || strings.Join(d.Groups, " ") != "outer inner" || d.Scaled || d.Once || d.Disabled || !d.Conditional || d.Cost != nil {
		t.Errorf("pending: %+v", d)
	}
	h.step() // The condition runs in both stages; its third panic quarantines it.
	h.set(in, func(s *Spec[*Now]) { s.Group = "" })
	if d := in.Dump(0); !d.Pending {
		t.Errorf("its change waits: %+v", d)
	}
	if d := a.Dump(Update); d.Pending || strings.Join(d.Groups, " ") != "outer inner" {
		t.Errorf("before the change: %+v", d)
	}
	h.step()
	h.step()
	if d := a.Dump(FixedUpdate); strings.Join(d.Groups, " ") != "inner" || d.Quarantine != firstQuarantine || !d.Once {
		t.Errorf("in quarantine: %+v", d)
	}
	h.step()
	if d := a.Dump(Update); d.Quarantine != firstQuarantine-1 || d.Once {
		t.Errorf("a tick later: %+v", d)
	}
	h.set(in, func(s *Spec[*Now]) { s.Group, s.RunIf = "outer", nil })
	h.set(outer, disable)
	h.step()
	if d := a.Dump(Update); !d.Disabled || strings.Join(d.Off, " ") != "outer" || d.Conditional || d.Panics != 0 {
		t.Errorf("in a disabled group: %+v", d)
	}
}

func TestADumpHasTheCostsOfSystems(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) { h.time += time.Duration(n.Tick) * ms }, Update)})
	for tick, want := range []*DumpCost{
		nil, {Runs: 1, Mean: 1001 * time.Microsecond, P50: middle(bucketOf(ms)), P99: middle(bucketOf(ms))},
		{Runs: 2, Mean: 1501 * time.Microsecond, P50: middle(bucketOf(2 * ms)), P99: middle(bucketOf(2 * ms))},
	} {
		if tick > 0 {
			h.step()
		}
		if got := a.Dump(Update).Cost; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("after %d ticks: %+v, want %+v", tick, got, want)
		}
	}
	if d := a.Dump(PreUpdate); d.Cost != nil {
		t.Errorf("in another stage: %+v", d.Cost)
	}
}

// The dump of a system tells whether its condition, or that of its group, was false when it was
// last due.
func TestDumpTellsAboutConditions(t *testing.T) {
	h := newHarness(t)
	group, own := true, true
	h.add(Spec[*Now]{Name: "outer", IsGroup: true, RunIf: func(*Now) bool { return group }})
	in := h.add(Spec[*Now]{Name: "in", Group: "outer", Ask: at(func(*Now) {}, Update), RunIf: func(*Now) bool { return own }})
	plain := h.add(Spec[*Now]{Name: "plain", Ask: at(func(*Now) {}, Update)})
	for _, c := range []struct{ group, own, skipped bool }{{true, true, false}, {true, false, true}, {false, true, true}, {true, true, false}} {
		group, own = c.group, c.own
		h.step()
		if d := in.Dump(Update); d.Skipped != c.skipped || !d.Conditional {
			t.Errorf("%+v: %+v", c, d)
		}
		if plain.Dump(Update).Skipped {
			t.Error("a system without a condition is skipped")
		}
	}
}
