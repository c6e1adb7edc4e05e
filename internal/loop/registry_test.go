package loop

import (
	"fmt"
	"slices"
	"testing"
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

func TestRemovalActsLaterInTheSameStage(t *testing.T) {
	h := newHarness(t)
	var b *System[*Now]
	h.add(Spec[*Now]{Name: "a", Ask: at(func(n *Now) { h.note(n); b.Remove() }, Update)})
	b = h.add(Spec[*Now]{Name: "b"})
	h.add(Spec[*Now]{Name: "c"})
	h.step()
	h.wantRan("a", "c")
	if !b.Removed() {
		t.Fatal("b does not say that it was removed")
	}
}

func TestASystemMayRemoveItselfAndNobodyIsSkipped(t *testing.T) {
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

func TestANameTakenOverWithinATickRunsOnce(t *testing.T) {
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
		t.Fatal("removed altogether although a stage is left")
	}
	a.Remove(PreUpdate)
	a.Remove()
	if !a.Removed() || told != 1 {
		t.Fatalf("removed: %v, told %d times; want true and once", a.Removed(), told)
	}
	h.step()
	h.wantRan()
}

func TestAStageRemovedBeforeTheFirstTickIsNotAskedFor(t *testing.T) {
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

func TestRemovalWhilePendingNeverRuns(t *testing.T) {
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

func TestWhatAskAddsWaitsAndWhatItRemovesDoesNotRun(t *testing.T) {
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

func TestALoopHoldsMaxSystems(t *testing.T) {
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
