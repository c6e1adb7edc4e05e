package loop

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"
)

func TestANameInUseIsRefusedAndFreeAfterRemoval(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a"})
	_, err := h.try(Spec[*Now]{Name: "a"})
	wantNames(t, err, "a")
	a.Remove()
	h.add(Spec[*Now]{Name: "a"})
	h.step()
	h.wantRan("a")
}

func TestABadSpecIsRefused(t *testing.T) {
	h := newHarness(t)
	ask := at(h.note, Update)
	for _, s := range []Spec[*Now]{{Ask: ask}, {Name: "a"}, {Name: "a", Ask: ask, Place: Tail + 1}} {
		if _, err := h.Add(s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}

func TestARemovalTakesEffectWithinTheStage(t *testing.T) {
	h := newHarness(t)
	var b *System[*Now]
	h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) { h.note(n); b.Remove() }, Update)})
	b = h.add(Spec[*Now]{Name: "b"})
	h.add(Spec[*Now]{Name: "c"})
	h.step()
	h.wantRan("a", "c")
	if !b.Removed() {
		t.Fatal("Removed of b is false")
	}
}

func TestASystemThatRemovesItselfSkipsNoOther(t *testing.T) {
	h := newHarness(t)
	var a *System[*Now]
	a = h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) { h.note(n); a.Remove() }, Update)})
	h.add(Spec[*Now]{Name: "b"})
	h.step()
	h.wantRan("a", "b")
	h.step()
	h.wantRan("b")
}

func TestAnAdditionWaitsForTheNextInitialization(t *testing.T) {
	h := newHarness(t)
	var once bool
	h.add(Spec[*Now]{Name: "adder", Ask: at(func(n *Now) {
		h.note(n)
		if !once {
			once = true
			h.add(Spec[*Now]{Name: "new", Priority: First, Ask: at(h.note, Initialization, Update)})
		}
	}, Initialization)})
	h.step()
	h.wantRan("adder")
	h.step()
	h.wantRan("new", "adder", "new")
}

func TestANameReusedWithinATickRunsOnce(t *testing.T) {
	h := newHarness(t)
	var old *System[*Now]
	h.add(Spec[*Now]{Name: "a", Ask: at(func(*Now) {
		if !old.Removed() {
			old.Remove()
			h.add(Spec[*Now]{Name: "x"})
		}
	}, PreUpdate)})
	old = h.add(Spec[*Now]{Name: "x"})
	h.step()
	h.wantRan()
	h.step()
	h.wantRan("x")
}

func TestRemovalFromOneStageKeepsTheOthers(t *testing.T) {
	h := newHarness(t)
	told := 0
	a := h.add(Spec[*Now]{Name: "a", Ask: at(h.note, PreUpdate, Update), OnRemove: func() { told++ }})
	h.step()
	a.Remove(Update)
	h.step()
	h.wantRan("a")
	if a.Removed() || told != 0 {
		t.Fatal("removed from all stages although one remains")
	}
	a.Remove(PreUpdate)
	a.Remove()
	if !a.Removed() || told != 1 {
		t.Fatalf("removed: %v, %d calls of OnRemove; want true and once", a.Removed(), told)
	}
	h.step()
	h.wantRan()
}

func TestAskIsNotCalledForAStageRemovedEarly(t *testing.T) {
	h := newHarness(t)
	var asked []Stage
	a := h.add(Spec[*Now]{Name: "a", Ask: func(s Stage) func(*Now) { asked = append(asked, s); return h.note }})
	a.Remove(Initialization, FixedUpdate)
	if len(asked) != 0 {
		t.Fatal("asked before it takes effect")
	}
	h.step()
	h.step()
	if want := []Stage{EarlyUpdate, PreUpdate, Update, PreLateUpdate, PostLateUpdate}; !slices.Equal(asked, want) {
		t.Fatalf("asked for %v, want %v, once", asked, want)
	}
}

func TestAPendingSystemThatIsRemovedNeverRuns(t *testing.T) {
	h := newHarness(t)
	told := false
	a := h.add(Spec[*Now]{Name: "a", OnRemove: func() { told = true }})
	a.Remove()
	h.step()
	h.wantRan()
	if !told {
		t.Fatal("OnRemove was not called")
	}
}

func TestSystemsAddedInAskWaitAndRemovedOnesDoNotRun(t *testing.T) {
	h := newHarness(t)
	b := h.add(Spec[*Now]{Name: "b"})
	h.add(Spec[*Now]{Name: "a", Ask: func(s Stage) func(*Now) {
		if s == Update {
			b.Remove()
			h.add(Spec[*Now]{Name: "c"})
			return h.note
		}
		return nil
	}})
	h.step()
	h.wantRan("a")
	h.step()
	h.wantRan("a", "c")
}

func TestRemoveOfNoStagePanics(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a"})
	defer func() {
		if recover() == nil {
			t.Fatal("Remove(9) was accepted")
		}
	}()
	a.Remove(9)
}

func TestALoopHasAtMostMaxSystems(t *testing.T) {
	h := newHarness(t)
	var one *System[*Now]
	for i := range MaxSystems {
		one = h.add(Spec[*Now]{Name: fmt.Sprint(i)})
	}
	_, err := h.try(Spec[*Now]{Name: "more"})
	wantNames(t, err, "more")
	h.step()
	one.Remove()
	h.step()
	h.add(Spec[*Now]{Name: "more"})
}

func TestTheEndCallsOnRemoveOnceInOrder(t *testing.T) {
	h := newHarness(t)
	var told []string
	tell := func(s Spec[*Now]) Spec[*Now] {
		s.OnRemove = func() {
			if told = append(told, s.Name); s.Name == "panics" {
				panic("too late for tears")
			}
			if _, err := h.try(Spec[*Now]{Name: "again"}); s.Name == "last" && err == nil {
				t.Error("a system was added to a loop that has ended")
			}
		}
		return s
	}
	gone := h.add(tell(Spec[*Now]{Name: "gone"}))
	h.add(tell(Spec[*Now]{Name: "a", Priority: Last}))
	h.add(tell(Spec[*Now]{Name: "panics"}))
	h.add(tell(Spec[*Now]{Name: "b", Group: "g", Disabled: true}))
	h.add(tell(group("g", "")))
	h.add(tell(Spec[*Now]{Name: "left out"}))
	h.step()
	gone.Remove()
	tree := h.Tree()
	tree.Items = tree.Items[:4]
	if err := h.Set(tree); err != nil {
		t.Fatal(err)
	}
	h.add(tell(Spec[*Now]{Name: "last"})) // It has never run.
	rec := h.End()
	// Set has registered the systems of its tree in the tree's order.
	if want := []string{"gone", "left out", "a", "panics", "b", "g", "last"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if len(rec.Panics) != 1 || rec.Panics[0].System != "panics" || !rec.Panics[0].First {
		t.Errorf("panics %+v", rec.Panics)
	}
	if h.End(); len(told) != 7 {
		t.Errorf("told again: %v", told)
	}
	if rec, err := h.stepRecord(); err == nil || len(h.ran)+len(rec.Panics) > 0 {
		t.Errorf("a loop that has ended ran %v and called OnRemove again: %v", h.ran, rec.Panics)
	}
}

func TestALoopMayEndInATick(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) { h.note(n); h.End() }, PreUpdate)})
	h.add(Spec[*Now]{Name: "b", OnRemove: func() { h.ran = append(h.ran, "b is removed") }})
	h.step()
	h.wantRan("a", "b is removed")
	if _, err := h.stepRecord(); err == nil {
		t.Error("the loop continues")
	}
}

func TestARefusedChangeHasNoEffect(t *testing.T) {
	h := newHarness(t)
	a, removed, left := h.add(Spec[*Now]{Name: "a"}), h.add(Spec[*Now]{Name: "removed"}), h.add(Spec[*Now]{Name: "left"})
	h.step()
	removed.Remove()
	tree := h.Tree()
	tree.Items = tree.Items[:1]
	if err := h.Set(tree); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*System[*Now]{removed, left} {
		wantNames(t, s.Change(Spec[*Now]{Priority: 1}), s.Name())
	}
	for _, spec := range []Spec[*Now]{{Priority: 1, Period: -1}, {Priority: 1, After: []string{"a"}}, {Priority: 1, Group: "nobody"}} {
		if wantNames(t, a.Change(spec), "a"); a.Spec().Priority != 0 {
			t.Errorf("%+v was refused and is in effect", spec)
		}
	}
}

// A refused tree leaves the anchors unchanged, and so the systems that may be added to them.
func TestARefusedTreeKeepsTheAnchors(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a"})
	b := h.add(Spec[*Now]{Name: "b", After: []string{"a"}})
	h.step()
	tree := h.Tree()
	for i := range tree.Items {
		if it := &tree.Items[i]; it.System == b {
			it.Spec.After, it.Changed = nil, true
		}
	}
	tree.Items = append(tree.Items, Item[*Now]{Spec: Spec[*Now]{Name: "c", After: []string{"nobody"}, Ask: at(h.note, Update)}})
	wantNames(t, h.Set(tree), "c", "nobody")
	wantNames(t, a.Change(Spec[*Now]{After: []string{"b"}}), "a", "b")
	if _, err := h.try(Spec[*Now]{Name: "c", After: []string{"a"}, Before: []string{"b"}}); err != nil {
		t.Error(err)
	}
}

// A tree is outdated after any two requests since Loop.Tree, even if the second one undoes the
// first.
func TestAnOutdatedTreeIsRefused(t *testing.T) {
	ask := map[string]func(h *harness) error{
		"add": func(h *harness) error { _, err := h.try(Spec[*Now]{Name: "b"}); return err },
		"remove": func(h *harness) error {
			if s := h.Find("b"); s != nil {
				s.Remove()
			} else {
				h.Find("c").Remove()
			}
			return nil
		},
		"change": func(h *harness) error { return h.Find("a").Change(Spec[*Now]{Priority: 1}) },
		"set":    func(h *harness) error { return h.Set(h.Tree()) },
	}
	for one, first := range ask {
		for two, second := range ask {
			if one == two && one != "change" && one != "set" {
				continue
			}
			h := newHarness(t)
			h.add(Spec[*Now]{Name: "a"})
			h.add(Spec[*Now]{Name: "c"})
			tree := h.Tree()
			if err := first(h); err != nil {
				t.Fatal(err)
			}
			if err := second(h); err != nil {
				t.Fatal(err)
			}
			if h.Set(tree) == nil {
				t.Errorf("%s and %s: an outdated tree was set", one, two)
			}
		}
	}
}

func TestRejectReturnsEachSystemOnce(t *testing.T) {
	h := newHarness(t)
	told := 0
	tell := func() { told++ }
	gone := h.add(Spec[*Now]{Name: "gone", After: []string{"nobody"}})
	// The first is misplaced because the second one, its anchor, is rejected.
	second := h.add(Spec[*Now]{Name: "second", After: []string{"first"}, OnRemove: tell})
	first := h.add(Spec[*Now]{Name: "first", Before: []string{"nobody"}, OnRemove: tell})
	good := h.add(Spec[*Now]{Name: "good"})
	gone.Remove()
	var errs []error
	h.Reject(func(err error) { errs = append(errs, err) })
	if len(errs) != 2 || !errors.Is(first.Err(), errs[0]) || !errors.Is(second.Err(), errs[1]) || good.Err() != nil || gone.Err() != nil || told != 0 {
		t.Errorf("told of %v, and OnRemove %d times", errs, told)
	}
	h.step()
	h.wantRan("good")
	h.Reject(func(err error) { t.Error(err) })
}

func TestCheckReturnsNoPanicOfATick(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "a", Ask: at(func(*Now) { panic("in its call") }, Update)})
	h.step()
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

func TestRepeatedChangesOfASystemArePendingOnce(t *testing.T) {
	h := newHarness(t)
	a := h.add(Spec[*Now]{Name: "a"})
	for _, waiting := range [][2]int{{1, 0}, {0, 1}} { // Before it takes effect, and afterwards.
		for i := range 3 {
			h.set(a, func(s *Spec[*Now]) { s.Priority = i })
		}
		if got := [2]int{len(h.pending), len(h.changed)}; got != waiting {
			t.Errorf("%v wait, want %v", got, waiting)
		}
		h.step()
	}
}

// A new system reuses the id of a removed one, so additions and removals do not grow the memory.
func TestIdsOfRemovedSystemsAreReused(t *testing.T) {
	h := newHarness(t)
	for range 50 {
		a := h.add(Spec[*Now]{Name: "a"})
		h.step()
		a.Remove()
		h.step()
	}
	if len(h.systems) != 1 || len(h.free) != 1 {
		t.Errorf("%d ids, %d of them free, after one system at a time", len(h.systems), len(h.free))
	}
}

// The loop does not keep a removed system in memory, with or without a period.
func TestARemovedSystemIsFreed(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "stays"})
	gone := map[string]weak.Pointer[System[*Now]]{}
	for _, spec := range []Spec[*Now]{{Name: "in each tick"}, {Name: "with a period", Periodic: true, Period: at60.Rate.Period()}} {
		sys := h.add(spec)
		h.step()
		sys.Remove()
		gone[spec.Name] = weak.Make(sys)
	}
	h.step()
	h.step()
	runtime.GC()
	for name, sys := range gone {
		if sys.Value() != nil {
			t.Errorf("%q is in memory", name)
		}
	}
	h.wantRan("stays")
}
