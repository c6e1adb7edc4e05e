package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spec makes a system of Update for tests of order.
func spec(name string, place Place, priority int) Spec[*Now] {
	return Spec[*Now]{Name: name, Place: place, Priority: priority}
}

func (s specs) run(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	for _, x := range s {
		h.add(x)
	}
	h.step()
	return h
}

type specs []Spec[*Now]

func before(s Spec[*Now], names ...string) Spec[*Now] { s.Before = names; return s }
func after(s Spec[*Now], names ...string) Spec[*Now]  { s.After = names; return s }

func TestOrderIsPriorityThenRegistration(t *testing.T) {
	specs{
		spec("last", Body, Last), spec("a", Body, Normal), spec("late", Body, Late), spec("early", Body, Early),
		spec("b", Body, Normal), spec("first", Body, First), spec("c", Body, 100), spec("d", Body, -100),
	}.run(t).wantRan("d", "first", "early", "a", "b", "late", "last", "c")
}

func TestPrioritiesDoNotPassBuiltIns(t *testing.T) {
	specs{
		spec("flush", Tail, First), spec("poll", Head, Last),
		spec("a", Body, -1000), spec("b", Body, 1000),
	}.run(t).wantRan("poll", "a", "b", "flush")
}

func TestAnchorsPassBuiltIns(t *testing.T) {
	specs{
		spec("flush", Tail, 0), spec("poll", Head, 0), spec("a", Body, First), spec("b", Body, 0),
		after(spec("log", Body, First), "flush"), before(spec("spy", Body, Last), "poll"),
	}.run(t).wantRan("spy", "poll", "a", "b", "flush", "log")
}

// A system after one built-in of the tail may run before the next one.
func TestAnAnchorMovesNoFurtherThanNecessary(t *testing.T) {
	specs{
		spec("poll", Head, 0), spec("drain", Head, 0), spec("snapshot", Tail, 0), spec("flush", Tail, 0),
		after(spec("x", Body, Last), "snapshot"), before(spec("y", Body, First), "drain"), spec("z", Body, 0),
	}.run(t).wantRan("poll", "y", "drain", "z", "snapshot", "x", "flush")
}

func TestBeforeRunsDirectlyBeforeItsAnchor(t *testing.T) {
	specs{
		spec("a", Body, 0), spec("b", Body, 0), spec("c", Body, 0), before(spec("x", Body, Last), "b"),
	}.run(t).wantRan("a", "x", "b", "c")
}

// A system moved to the front moves along the systems that must precede it, so that the anchor
// keeps its own position.
func TestBeforeMovesItsPredecessorsToo(t *testing.T) {
	specs{
		spec("poll", Head, 0), spec("a", Body, First), spec("w", Body, Last),
		after(before(spec("x", Body, 0), "poll"), "w"),
	}.run(t).wantRan("w", "x", "poll", "a")
}

func TestAfterDoesNotMoveItsAnchor(t *testing.T) {
	specs{
		after(spec("x", Body, First), "z"), spec("a", Body, 0), spec("b", Body, 0), spec("z", Body, Last),
	}.run(t).wantRan("a", "b", "z", "x")
}

func TestNoAnchorMovesTheTail(t *testing.T) {
	specs{
		spec("a", Body, First), spec("b", Body, 0), spec("flush", Tail, 0),
		before(after(spec("x", Body, 0), "flush"), "a"),
	}.run(t).wantRan("b", "flush", "x", "a")
}

func TestAnchorsBindOnlyWithinAStage(t *testing.T) {
	h := newHarness(t)
	h.add(Spec[*Now]{Name: "a", After: []string{"b"}, Ask: at(h.note, Update, PreUpdate)})
	h.add(Spec[*Now]{Name: "b", Ask: at(h.note, Update)})
	h.add(Spec[*Now]{Name: "c", Ask: at(h.note, Update, PreUpdate)})
	h.step()
	h.wantRan("a", "c", "b", "a", "c")
}

func TestUnknownAnchorNamesBoth(t *testing.T) {
	for _, s := range []Spec[*Now]{before(spec("a", Body, 0), "nobody"), after(spec("a", Body, 0), "nobody")} {
		h := newHarness(t)
		h.step()
		_, err := h.try(s)
		wantNames(t, err, "a", "nobody")
		if got := h.step(); len(got) > 0 {
			t.Fatalf("the rejected system ran: %v", got)
		}
	}
}

func TestAnchorsMayBeRegisteredUntilCheck(t *testing.T) {
	h := newHarness(t)
	h.add(before(spec("a", Body, Last), "b"))
	h.add(after(spec("c", Body, 0), "missing", "gone"))
	wantNames(t, h.Check(), "c", "missing", "gone")
	if _, err := h.stepRecord(); err == nil {
		t.Fatal("a tick ran in spite of an unknown anchor")
	}
	h.add(spec("b", Body, 0))
	h.add(spec("missing", Body, Last))
	h.add(spec("gone", Body, Last))
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	h.step()
	h.wantRan("a", "b", "missing", "gone", "c")
}

func TestARemovedAnchorHasNoEffect(t *testing.T) {
	h := newHarness(t)
	b := h.add(spec("b", Body, Last))
	h.add(after(spec("a", Body, First), "b"))
	h.add(spec("c", Body, 0))
	h.step()
	h.wantRan("c", "b", "a")
	b.Remove()
	h.step()
	h.wantRan("a", "c")
	h.add(spec("b", Body, Last))
	h.step()
	h.wantRan("c", "b", "a")
}

// The anchors of a removed system do not bind a new one of its name.
func TestASystemOfAFreeNameHasItsOwnAnchors(t *testing.T) {
	h := newHarness(t)
	a := h.add(before(spec("a", Body, 0), "b"))
	h.add(spec("b", Body, 0))
	h.step()
	a.Remove()
	h.add(after(spec("a", Body, 0), "b"))
	h.step()
	h.wantRan("b", "a")
}

func TestCycleNamesBoth(t *testing.T) {
	for name, list := range map[string]specs{
		"itself":        {before(spec("a", Body, 0), "a")},
		"both before":   {before(spec("b", Body, 0), "a"), before(spec("a", Body, 0), "b")},
		"both after":    {after(spec("b", Body, 0), "a"), after(spec("a", Body, 0), "b")},
		"three":         {before(spec("c", Body, 0), "b"), before(spec("b", Body, 0), "a"), before(spec("a", Body, 0), "c")},
		"through plain": {spec("p", Body, 0), after(spec("b", Body, 0), "p"), after(before(spec("a", Body, 0), "p"), "b")},
		"into a group":  {group("a", ""), before(after(spec("b", Body, 0), "a"), "p"), {Name: "p", Group: "a"}},
		"out of one":    {group("a", ""), before(after(spec("b", Body, 0), "p"), "a"), {Name: "p", Group: "a"}},
		"head and tail": {spec("h", Head, 0), spec("b", Tail, 0), before(after(spec("a", Body, 0), "b"), "h")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, s := range list[:len(list)-1] {
				h.add(s)
			}
			_, err := h.try(list[len(list)-1])
			wantNames(t, err, "a", list[max(0, len(list)-2)].Name)
		})
	}
}

func wantNames(t *testing.T, err error, names ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that names %v", names)
	}
	for _, n := range names {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", n)) {
			t.Fatalf("error %q does not name %q", err, n)
		}
	}
}

// Any accepted system has an order: every anchor holds, and systems without anchors are ordered by
// place, priority and registration.
func TestEveryAcceptedOrderHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t)
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		var accepted specs
		named := make(map[string]bool)
		for i := range n {
			s := spec(fmt.Sprint("s", i), Place(rapid.IntRange(0, 2).Draw(rt, "place")), rapid.IntRange(-2, 2).Draw(rt, "priority"))
			names := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 2)
			if s.Place == Body { // built-ins are ordered by their place
				for _, j := range names.Draw(rt, "before") {
					s.Before = append(s.Before, fmt.Sprint("s", j))
				}
				for _, j := range names.Draw(rt, "after") {
					s.After = append(s.After, fmt.Sprint("s", j))
				}
			}
			if _, err := h.try(s); err == nil {
				accepted = append(accepted, s)
				for _, a := range slices.Concat(s.Before, s.After) {
					named[a] = true
				}
			}
		}
		// Register the refused anchors, so that none is unknown.
		for i := range n {
			if s := spec(fmt.Sprint("s", i), Body, 0); h.names[s.Name] == nil {
				h.add(s)
				accepted = append(accepted, s)
			}
		}
		checkOrder(rt, accepted, named, h.step())
	})
}

func checkOrder(rt *rapid.T, accepted specs, named map[string]bool, ran []string) {
	if len(ran) != len(accepted) {
		rt.Fatalf("%d of %d systems ran: %v", len(ran), len(accepted), ran)
	}
	pos := make(map[string]int)
	for i, name := range ran {
		pos[name] = i
	}
	var free specs
	for _, s := range accepted {
		for _, a := range s.Before {
			if pos[s.Name] > pos[a] {
				rt.Fatalf("%s is not before %s: %v", s.Name, a, ran)
			}
		}
		for _, a := range s.After {
			if pos[s.Name] < pos[a] {
				rt.Fatalf("%s is not after %s: %v", s.Name, a, ran)
			}
		}
		if len(s.Before)+len(s.After) == 0 && !named[s.Name] {
			free = append(free, s)
		}
	}
	band := map[Place]int{Head: 0, Body: 1, Tail: 2}
	for i, a := range free {
		for _, b := range free[i+1:] { // b was registered later
			swap := band[b.Place] < band[a.Place] || b.Place == a.Place && b.Priority < a.Priority
			if swap == (pos[a.Name] < pos[b.Name]) {
				rt.Fatalf("%s and %s are in the wrong order: %v", a.Name, b.Name, ran)
			}
		}
	}
	// No unanchored system passes a built-in by its priority.
	for _, s := range accepted {
		for _, f := range free {
			if f.Place == Body && s.Place == Head && pos[s.Name] > pos[f.Name] {
				rt.Fatalf("%s passes the head %s: %v", f.Name, s.Name, ran)
			}
			if f.Place == Body && s.Place == Tail && pos[s.Name] < pos[f.Name] {
				rt.Fatalf("%s is passed by the tail %s: %v", f.Name, s.Name, ran)
			}
		}
	}
}

// An anchor of a system on itself is the only error reported.
func TestAnAnchorOnItselfIsACycle(t *testing.T) {
	h := newHarness(t)
	if err := h.Check(); err != nil { // From now on an unknown anchor is an error, too.
		t.Fatal(err)
	}
	for _, s := range []Spec[*Now]{{Name: "a", Before: []string{"a"}}, {Name: "a", After: []string{"a"}}} {
		_, err := h.try(s)
		if want := `systems "a" and "a" must each run before the other (a before a)`; err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

// However often a system is changed, a loop searches cycles through it once.
func TestRepeatedChangesAreCheckedOnce(t *testing.T) {
	h := newHarness(t)
	first, plain := h.add(Spec[*Now]{Name: "first"}), h.add(Spec[*Now]{Name: "plain"})
	second := h.add(Spec[*Now]{Name: "second", After: []string{"first"}})
	for n := range 10 {
		for _, s := range []*System[*Now]{first, plain, second} {
			spec := s.Spec()
			spec.Priority = n
			if err := s.Change(spec); err != nil {
				t.Fatal(err)
			}
		}
		if len(h.shaped) != 1 || h.shaped[0] != second {
			t.Fatalf("after %d changes cycles are searched through %d systems, want 1", n+1, len(h.shaped))
		}
		h.step()
	}
	spec := first.Spec()
	spec.Before = []string{"plain"}
	if err := first.Change(spec); err != nil || len(h.shaped) != 2 {
		t.Errorf("cycles are searched through %d systems, want 2: %v", len(h.shaped), err)
	}
}
