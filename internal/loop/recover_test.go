package loop

import (
	"slices"
	"testing"
)

// A successful call ends only the panics in a row: a stage that the system has left within that
// call remains left.
func TestASuccessfulCallResetsOnlyPanics(t *testing.T) {
	h := newHarness(t)
	var s *System[*Now]
	s = h.add(Spec[*Now]{Name: "s", Ask: at(func(n *Now) {
		h.note(n)
		switch {
		case n.Tick == 1 && n.Stage == Update:
			panic("once")
		case n.Stage == Update:
			s.Remove(PreLateUpdate)
		}
	}, Update, PreLateUpdate)})
	for range 3 {
		h.step()
		if n := len(h.ran); h.tick > 1 && n != 1 {
			t.Errorf("tick %d: ran %v, although it has left a stage", h.tick, h.ran)
		}
	}
}

// Anchors added by a change count for all later changes: a cycle is refused at the change that
// closes it.
func TestACycleByTheAnchorsOfAChangeIsRefused(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		for _, first := range []Spec[*Now]{{After: []string{"b"}}, {Before: []string{"b"}}} {
			for _, second := range []Spec[*Now]{{After: []string{"a"}}, {Before: []string{"a"}}} {
				h := newHarness(t)
				a, b := h.add(Spec[*Now]{Name: "a"}), h.add(Spec[*Now]{Name: "b"})
				h.step()
				if err := a.Change(first); err != nil {
					t.Fatal(err)
				}
				if stepped {
					h.step()
				}
				circle := len(first.After) == len(second.After)
				if err := b.Change(second); (err != nil) != circle {
					t.Errorf("stepped %v: a %v, b %v: %v", stepped, first, second, err)
				}
			}
		}
	}
}

// A system that changes itself in its Ask is asked again.
func TestASystemMayChangeItselfInItsAsk(t *testing.T) {
	h := newHarness(t)
	var s *System[*Now]
	changed := false
	s = h.add(Spec[*Now]{Name: "s", Stages: []Stage{Update}, Ask: func(stage Stage) func(*Now) {
		if !changed {
			changed = true
			if err := s.Change(Spec[*Now]{Stages: []Stage{PreUpdate}}); err != nil {
				t.Error(err)
			}
		}
		return func(n *Now) { h.ran = append(h.ran, stage.String()) }
	}})
	var ran []string
	for range 3 {
		ran = append(ran, h.step()...)
	}
	if want := PreUpdate.String(); len(ran) == 0 || ran[len(ran)-1] != want || slices.Contains(ran[1:], Update.String()) {
		t.Errorf("ran at %v, want %s in the end", ran, want)
	}
}

// A system removed by a new tree is not asked any more, not even for an earlier change.
func TestASystemRemovedByATreeIsNotAsked(t *testing.T) {
	h := newHarness(t)
	asked := 0
	s := h.add(Spec[*Now]{Name: "s", Stages: []Stage{Update}, Ask: func(Stage) func(*Now) { asked++; return func(*Now) {} }})
	h.step()
	if err := s.Change(Spec[*Now]{Stages: []Stage{PreUpdate}}); err != nil {
		t.Fatal(err)
	}
	tree := h.Tree()
	tree.Items = slices.DeleteFunc(tree.Items, func(it Item[*Now]) bool { return it.Spec.Name == "s" })
	if err := h.Set(tree); err != nil {
		t.Fatal(err)
	}
	before := asked
	h.step()
	if asked != before || !s.Removed() {
		t.Errorf("asked %d times when it had left: removed %v", asked-before, s.Removed())
	}
}
