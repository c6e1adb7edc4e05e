package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func group(name, in string) Spec[*Now] { return Spec[*Now]{Name: name, IsGroup: true, Group: in} }

func TestRemovingAGroupRemovesItsMembers(t *testing.T) {
	h := newHarness(t)
	var told []string
	tell := func(s Spec[*Now]) Spec[*Now] {
		s.OnRemove = func() { told = append(told, s.Name) }
		return s
	}
	g := h.add(tell(group("g", "")))
	h.add(tell(group("inner", "g")))
	h.add(tell(Spec[*Now]{Name: "a", Group: "g"}))
	h.add(tell(Spec[*Now]{Name: "b", Group: "inner"}))
	h.add(Spec[*Now]{Name: "c"})
	h.step()
	h.wantRan("b", "a", "c")
	g.Remove()
	slices.Sort(told)
	if want := []string{"a", "b", "g", "inner"}; !slices.Equal(told, want) {
		t.Fatalf("told %v, want %v", told, want)
	}
	h.step()
	h.wantRan("c")
	h.add(Spec[*Now]{Name: "g"}) // The names are free again.
}

func TestTheDepthOfGroupsIsLimited(t *testing.T) {
	h := newHarness(t)
	in := ""
	for i := range MaxDepth + 1 {
		name := fmt.Sprint("g", i)
		h.add(group(name, in))
		in = name
	}
	_, err := h.try(group("deep", in))
	wantNames(t, err, "deep", in)
	_, err = h.try(group("self", "self"))
	wantNames(t, err, "self")
	if err := h.Check(); err != nil { // From now on anchors are searched in all parent groups.
		t.Fatal(err)
	}
	self := group("self", "self")
	self.After = []string{"g0"}
	_, err = h.try(self)
	wantNames(t, err, "self")
	tree := h.Tree()
	tree.Items = append(tree.Items, Item[*Now]{Spec: self})
	wantNames(t, h.Set(tree), "self")
}

func TestAMoveIntoAGroupChecksAllMembers(t *testing.T) {
	h := newHarness(t)
	h.add(group("g", ""))
	inner := h.add(group("inner", ""))
	h.add(Spec[*Now]{Name: "a", Group: "inner", Before: []string{"g"}})
	h.step()
	spec := inner.Spec()
	spec.Group = "g" // Then a would have to run before its own group.
	wantNames(t, inner.Change(spec), "a", "g")
	if inner.Spec().Group != "" {
		t.Fatal("the refused change was made")
	}
}

func TestAPanicOfAGroupsConditionQuarantinesTheGroup(t *testing.T) {
	h := newHarness(t)
	g := group("g", "")
	g.RunIf = func(n *Now) bool {
		if n.Tick <= 3 {
			panic("no answer")
		}
		return true
	}
	h.add(g)
	h.add(Spec[*Now]{Name: "a", Group: "g"})
	for range 10 {
		h.step()
		h.wantRan()
	}
	if h.Quarantined() != 1 {
		t.Fatalf("%d quarantined", h.Quarantined())
	}
	for range 64 {
		h.step()
	}
	h.wantRan("a")
}

// For any accepted nesting and anchors: members of a group are contiguous and every anchor holds,
// between the groups if it crosses their border.
func TestGroupsAreContiguousAndAnchorsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t)
		if err := h.Check(); err != nil { // From now on Add checks all anchors.
			rt.Fatal(err)
		}
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		name := func(i int) string { return fmt.Sprint("s", i) }
		accepted := make(map[string]Spec[*Now])
		for i := range n {
			s := Spec[*Now]{Name: name(i), Priority: rapid.IntRange(-1, 1).Draw(rt, "priority"), IsGroup: rapid.IntRange(0, 2).Draw(rt, "kind") == 0}
			for j := range i {
				if accepted[name(j)].IsGroup && rapid.Bool().Draw(rt, "in") {
					s.Group = name(j)
				}
			}
			if i > 0 && rapid.Bool().Draw(rt, "before") {
				s.Before = []string{name(rapid.IntRange(0, i-1).Draw(rt, "before"))}
			}
			if i > 0 && rapid.Bool().Draw(rt, "after") {
				s.After = []string{name(rapid.IntRange(0, i-1).Draw(rt, "after"))}
			}
			if _, err := h.try(s); err == nil {
				accepted[s.Name] = s
			}
		}
		ran := h.step()
		within := func(s, g string) bool {
			for at := s; at != ""; at = accepted[at].Group {
				if at == g {
					return true
				}
			}
			return false
		}
		span := func(s string) (from, to int) {
			from, to = len(ran), -1
			count := 0
			for i, x := range ran {
				if within(x, s) {
					from, to, count = min(from, i), max(to, i), count+1
				}
			}
			if to >= 0 && to-from+1 != count {
				rt.Fatalf("the members of %s are not contiguous: %v", s, ran)
			}
			return from, to
		}
		for s, spec := range accepted {
			from, to := span(s)
			if to < 0 {
				continue
			}
			for _, a := range spec.Before {
				if first, last := span(a); last >= 0 && to > first {
					rt.Fatalf("%s is not before %s: %v", s, a, ran)
				}
			}
			for _, a := range spec.After {
				if _, last := span(a); last >= 0 && from < last {
					rt.Fatalf("%s is not after %s: %v", s, a, ran)
				}
			}
		}
	})
}

// A condition that returns without a panic resets the count of panics in a row of its own group
// only: a system that panics in each call is still quarantined.
func TestASuccessfulConditionResetsPanicsOfItsGroupOnly(t *testing.T) {
	h := newHarness(t)
	g := group("g", "")
	g.RunIf = func(n *Now) bool {
		if n.Tick%quarantineAfter != 0 {
			panic("now and then")
		}
		return true
	}
	h.add(g)
	h.add(Spec[*Now]{Name: "a", Group: "g"})
	for range 10 * quarantineAfter {
		h.step()
	}
	if h.wantRan("a"); h.Quarantined() != 0 {
		t.Fatalf("%d quarantined although every third answer is yes", h.Quarantined())
	}
	h.add(Spec[*Now]{Name: "b", RunIf: func(*Now) bool { return true }, Ask: at(func(*Now) { panic("always") }, Update)})
	for range quarantineAfter {
		h.step()
	}
	if h.Quarantined() != 1 {
		t.Fatalf("%d quarantined although every call panics", h.Quarantined())
	}
}

// An anchor on a group without members has no effect; it applies from the first member to the
// last one.
func TestAnAnchorOnAGroupAppliesWhileItHasMembers(t *testing.T) {
	h := newHarness(t)
	g := group("g", "")
	g.After = []string{"late"}
	h.add(g)
	h.add(group("inner", "g"))
	h.add(after(spec("follows", Body, First), "g"))
	h.add(spec("early", Body, Early))
	h.add(spec("late", Body, Late))
	h.step()
	h.wantRan("follows", "early", "late")
	a := h.add(Spec[*Now]{Name: "a", Group: "inner", Priority: First})
	h.step()
	h.wantRan("early", "late", "a", "follows")
	b := h.add(Spec[*Now]{Name: "b", Group: "inner"})
	h.step()
	a.Remove()
	h.step()
	h.wantRan("early", "late", "b", "follows")
	b.Remove()
	h.step()
	h.wantRan("follows", "early", "late")
}

// A refused tree returns an error and changes no system.
func TestAnInvalidTreeIsRefused(t *testing.T) {
	ask := at(func(*Now) {}, Update)
	for name, edit := range map[string]func(h *harness, tree *Tree[*Now]){
		"a name that is there twice": func(_ *harness, tree *Tree[*Now]) {
			tree.Items = append(tree.Items, Item[*Now]{Spec: Spec[*Now]{Name: "b", Ask: ask}})
		},
		"a system that is there twice": func(_ *harness, tree *Tree[*Now]) {
			again := tree.Items[1]
			again.Spec.Name = "c"
			tree.Items = append(tree.Items, again)
		},
		"a system of another loop": func(h *harness, tree *Tree[*Now]) {
			tree.Items[1].System = newHarness(h.tb).add(Spec[*Now]{Name: "b"})
		},
		"a system that was removed": func(h *harness, tree *Tree[*Now]) {
			h.Find("b").Remove()
			tree.version = h.version
		},
		"a system that was left out": func(h *harness, tree *Tree[*Now]) {
			less := h.Tree()
			less.Items = less.Items[:1]
			if err := h.Set(less); err != nil {
				h.tb.Fatal(err)
			}
			tree.version = h.version
		},
		"a built-in that was changed": func(_ *harness, tree *Tree[*Now]) { tree.Items[0].Changed = true },
		"a built-in that is left out": func(_ *harness, tree *Tree[*Now]) { tree.Items = tree.Items[1:] },
		"a built-in by another": func(_ *harness, tree *Tree[*Now]) {
			tree.Items[0] = Item[*Now]{Spec: Spec[*Now]{Name: "poll", Ask: ask}}
		},
		"a description that is none": func(_ *harness, tree *Tree[*Now]) {
			tree.Items = append(tree.Items, Item[*Now]{Spec: Spec[*Now]{Name: "c"}})
		},
		"a cycle": func(_ *harness, tree *Tree[*Now]) {
			tree.Items[1].Spec.Before, tree.Items[1].Changed = []string{"b"}, true
		},
	} {
		h := newHarness(t)
		h.add(Spec[*Now]{Name: "poll", BuiltIn: "nothing would arrive"})
		h.add(Spec[*Now]{Name: "b"})
		h.step()
		tree := h.Tree()
		edit(h, &tree)
		before := fmt.Sprintf("%+v", h.Preview(h.Tree()))
		if h.Set(tree) == nil {
			t.Errorf("%s was set", name)
		}
		if after := fmt.Sprintf("%+v", h.Preview(h.Tree())); after != before {
			t.Errorf("%s was refused, and the loop is %s, not %s", name, after, before)
		}
	}
}

func TestATreeHasAtMostMaxSystems(t *testing.T) {
	h := newHarness(t)
	for n, tooLarge := range map[int]bool{MaxSystems: false, MaxSystems + 1: true} {
		// They have no names, which is refused later.
		err := h.Set(Tree[*Now]{Items: make([]Item[*Now], n)})
		if err == nil || strings.Contains(err.Error(), "too large") != tooLarge {
			t.Errorf("a tree of %d is too large: %v", n, !tooLarge)
		}
	}
}
