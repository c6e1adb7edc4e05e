package loop

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rebuilt computes list k in the order of the package comment from all systems at once: a
// topological sort, group by group, that always takes the least ready one. It shares no code with
// settle.
func (l *Loop[C]) rebuilt(k int) []*System[C] {
	members := make(map[*System[C]][]*System[C]) // by group
	seen := make(map[*System[C]]bool)
	for _, s := range l.registered() {
		if s.pending || !s.places().has(k) {
			continue
		}
		for at := s; at != nil && !seen[at]; at = l.parent(at) {
			seen[at] = true
			members[l.parent(at)] = append(members[l.parent(at)], at)
		}
	}
	later := make(map[*System[C]][]*System[C]) // anchors between neighbours
	pulls := make(map[[2]*System[C]]bool)
	waits := make(map[*System[C]]int)
	link := func(from, to *System[C], pull bool) {
		if from == nil || to == nil || !seen[from] || !seen[to] {
			return
		}
		if from, to = beside(from, to, l.parent); from != nil {
			later[from] = append(later[from], to)
			pulls[[2]*System[C]{from, to}] = pulls[[2]*System[C]{from, to}] || pull
			waits[to]++
		}
	}
	for s := range seen {
		for _, name := range s.spec.Before {
			link(s, l.names[name], true)
		}
		for _, name := range s.spec.After {
			link(l.names[name], s, false)
		}
	}
	var effective func(s *System[C]) key
	effective = func(s *System[C]) key {
		eff := s.key()
		for _, to := range later[s] {
			theirs := effective(to)
			moves := pulls[[2]*System[C]{s, to}] || theirs.compare(to.key()) < 0
			if leavesTail := s.key().place == placeTail && theirs.place != placeTail; moves && !leavesTail && theirs.compare(eff) < 0 {
				eff = theirs
			}
		}
		return eff
	}
	var order []*System[C]
	var sorted func(g *System[C])
	sorted = func(g *System[C]) {
		left := members[g]
		for len(left) > 0 {
			least := -1
			for i, s := range left {
				if waits[s] > 0 {
					continue
				}
				if least < 0 || effective(s).compare(effective(left[least])) < 0 ||
					effective(s) == effective(left[least]) && s.seq < left[least].seq {
					least = i
				}
			}
			s := left[least]
			left = slices.Delete(left, least, least+1)
			for _, to := range later[s] {
				waits[to]--
			}
			if s.spec.IsGroup {
				sorted(s)
			} else {
				order = append(order, s)
			}
		}
	}
	sorted(nil)
	return order
}

// checkSettled compares the incremental results of settles with a full computation.
func (l *Loop[C]) checkSettled(fail func(string, ...any)) {
	row := 0
	for k := range l.lists {
		x := &l.lists[k]
		var want, got []string
		for _, s := range l.rebuilt(k) {
			off, checked := false, s.spec.Periodic
			for at := s; at != nil; at = l.parent(at) {
				off, checked = off || at.spec.Disabled, checked || at.spec.RunIf != nil
			}
			if !off {
				want = append(want, fmt.Sprint(s.spec.Name, s.id, s.spec.Periodic && s.spec.Period > 0, checked))
			}
		}
		if len(x.slots) > len(l.systems) {
			fail("list %d has %d slots for %d ids", k, len(x.slots), len(l.systems))
		}
		i, j := 0, 0
		for pos := range x.size() {
			var e *entry[C]
			timed := j < len(x.timed) && int(x.timed[j].pos) == pos
			if timed {
				e = &x.timed[j]
				if x.slots[e.id] != int32(j) {
					fail("%s is at %d and not at %d", e.sys.spec.Name, j, x.slots[e.id])
				}
				j++
			} else if i == len(x.always) || int(x.always[i].pos) != pos {
				fail("nobody is at %d of list %d: %+v", pos, k, *x)
			} else {
				e = &x.always[i]
				i++
			}
			if r := l.row(x, e); l.rec.Systems[row] != *r || r.Name != e.sys.spec.Name || r.Stage != stageOf(k) {
				fail("row %d is of %s in %v, and not of %s in %v", row, r.Name, r.Stage, e.sys.spec.Name, stageOf(k))
			}
			row++
			if e.fn == nil || e.cost != e.sys.costs[stageOf(k).index()] {
				fail("%s in list %d is half an entry", e.sys.spec.Name, k)
			}
			got = append(got, fmt.Sprint(e.sys.spec.Name, e.id, timed, e.checked))
		}
		if !slices.Equal(got, want) {
			fail("list %d holds %v, want %v", k, got, want)
		}
	}
	if row != len(l.rec.Systems) {
		fail("%d rows, want %d", len(l.rec.Systems), row)
	}
	l.checkKnown(fail)
}

// checkKnown checks the state that settle keeps for its next run.
func (l *Loop[C]) checkKnown(fail func(string, ...any)) {
	inside, counts := make(map[*System[C]]int), make(map[*System[C]][numLists]int32)
	anchored, named := 0, make(map[string]bool)
	all := slices.DeleteFunc(l.registered(), func(s *System[C]) bool { return s.pending })
	for _, s := range all {
		if l.systems[s.id] != s || s.group != l.parent(s) {
			fail("%s is not where it says: %d, in %v", s.spec.Name, s.id, s.group)
		}
		if s.group != nil {
			inside[s.group]++
		}
		for g := s.group; g != nil; g = g.group {
			n := counts[g]
			for k := range n {
				if s.places().has(k) {
					n[k]++
				}
			}
			counts[g] = n
		}
		if s.anchored() {
			anchored++
		}
		for _, name := range slices.Concat(s.spec.Before, s.spec.After) {
			named[name] = true
		}
	}
	for _, s := range all {
		if len(s.inside) != inside[s] || s.counts != counts[s] {
			fail("%s holds %d and %v, want %d and %v", s.spec.Name, len(s.inside), s.counts, inside[s], counts[s])
		}
	}
	if l.rebind {
		fail("all anchors would be looked at again for nothing")
	}
	for _, id := range l.free {
		if l.systems[id] != nil {
			fail("%d is free, and %s has it", id, l.systems[id].spec.Name)
		}
	}
	bound := make(map[*System[C]]bool)
	for _, s := range l.bound {
		if bound[s] || s.bound == nil {
			fail("%q is bound twice, or not", s.spec.Name)
		}
		bound[s] = true
	}
	if len(l.systems) != len(all)+len(l.free) || len(l.anchored) != anchored || !maps.Equal(l.named, named) {
		fail("%d systems and %d free, %d anchored; want %d and %d", len(l.systems), len(l.free), len(l.anchored), len(all), anchored)
	}
}

// checkPlanned checks the heaps: every running timer is in its own heap once.
func (l *Loop[C]) checkPlanned(fail func(string, ...any)) {
	for kind := range l.flows {
		f, waits := &l.flows[kind], 0
		kind, clock := kind%numKinds, kind/numKinds
		live := make(map[*System[C]]int)
		for i, w := range f.heap {
			if i > 0 && f.heap[(i-1)/2].at > w.at {
				fail("the heap is none at %d", i)
			}
			if w.gen == w.sys.timers[kind].gen {
				live[w.sys]++
			}
		}
		for _, w := range f.heap[len(f.heap):cap(f.heap)] {
			if w.sys != nil {
				fail("the heap holds %s beyond its end", w.sys.spec.Name)
			}
		}
		for _, s := range l.registered() {
			if t := &s.timers[kind]; !s.pending && t.on && t.period > 0 && t.clock == clock && !s.off {
				if waits++; live[s] != 1 {
					fail("%s waits %d times", s.spec.Name, live[s])
				}
			}
		}
		if len(live) != waits || len(f.heap) > 2*max(f.swept, minSweep) {
			fail("%d timers wait, want %d, in a heap of %d after one of %d", len(live), waits, len(f.heap), f.swept)
		}
	}
}

// churn makes random requests of all kinds.
type churn struct {
	*harness
	*rapid.T
	names []string
	yes   func(*Now) bool
}

func (c *churn) some(what string, n int) bool { return rapid.IntRange(0, n-1).Draw(c.T, what) == 0 }

func (c *churn) name(what string) string { return rapid.SampledFrom(c.names).Draw(c.T, what) }

// describe generates a description, valid or not.
func (c *churn) describe(s *Spec[*Now]) {
	s.Priority = rapid.IntRange(-1, 1).Draw(c.T, "priority")
	s.Before, s.After, s.Group, s.RunIf, s.Stages = nil, nil, "", nil, nil
	if c.some("before", 4) {
		s.Before = []string{c.name("before"), c.name("before")}
	}
	if c.some("after", 3) {
		s.After = []string{c.name("after")}
	}
	if !c.some("in", 3) {
		s.Group = c.name("group")
	}
	if c.some("condition", 4) {
		s.RunIf = c.yes
	}
	s.Disabled = c.some("disabled", 4)
	if s.IsGroup {
		return
	}
	if c.some("place", 6) {
		s.Place = Place(rapid.IntRange(0, 2).Draw(c.T, "place"))
	}
	if !c.some("stages", 3) {
		s.Stages = rapid.SliceOfN(rapid.SampledFrom([]Stage{FixedUpdate, Update, PostLateUpdate}), 1, 2).Draw(c.T, "stages")
	}
	s.Once, s.Periodic, s.Period, s.CatchUp, s.Scaled, s.Gap = false, false, 0, 0, false, false
	switch rapid.IntRange(0, 5).Draw(c.T, "kind") {
	case 0:
		s.Once = true
	case 1, 2:
		s.Periodic, s.Period = true, time.Duration(rapid.IntRange(0, 5).Draw(c.T, "period"))*7*ms
		s.Scaled, s.Gap = c.some("scaled", 3), c.some("gap", 3)
	}
}

func (c *churn) ask() {
	s := c.Find(c.name("who"))
	switch what := rapid.IntRange(0, 9).Draw(c.T, "what"); {
	case s == nil:
		spec := Spec[*Now]{Name: c.name("new"), IsGroup: c.some("is group", 4)}
		if c.describe(&spec); !spec.IsGroup {
			spec.Ask = at(c.note, EarlyUpdate, FixedUpdate, Update, PostLateUpdate)
		}
		_, _ = c.Add(spec)
	case what < 5:
		spec := s.Spec()
		c.describe(&spec)
		_ = s.Change(spec)
	case what < 7:
		s.Remove()
	case what < 8:
		s.Remove(Update)
	default:
		tree := c.Tree()
		i := rapid.IntRange(0, len(tree.Items)-1).Draw(c.T, "item")
		j := rapid.IntRange(0, len(tree.Items)-1).Draw(c.T, "other")
		tree.Items[i], tree.Items[j] = tree.Items[j], tree.Items[i]
		switch what := rapid.IntRange(0, 2).Draw(c.T, "tree"); what {
		case 0:
			tree.Items = slices.Delete(tree.Items, i, i+1)
		case 1:
			spec := tree.Items[i].Spec
			tree.Items[i] = Item[*Now]{Spec: spec} // Another system of the same name.
		default:
			c.describe(&tree.Items[i].Spec)
			tree.Items[i].Changed = true
		}
		_ = c.Set(tree)
	}
}

// Incremental changes of groups, anchors, places, periods and trees give the same lists as a
// rebuild.
func TestIncrementalChangesEqualARebuild(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &churn{harness: newHarness(t), T: rt, yes: func(*Now) bool { return true }}
		for i := range rapid.IntRange(4, 20).Draw(rt, "names") {
			c.names = append(c.names, fmt.Sprint("s", i))
			if i%4 == 0 {
				c.add(group(c.names[i], ""))
			} else {
				c.add(Spec[*Now]{Name: c.names[i]})
			}
		}
		c.Follow(hz50)
		if err := c.Check(); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(40, 80).Draw(rt, "ticks") {
			for range rapid.IntRange(0, 4).Draw(rt, "changes") {
				c.ask()
			}
			if _, err := c.stepRecord(); err != nil {
				rt.Fatal(err)
			}
			c.checkSettled(rt.Fatalf)
			c.checkPlanned(rt.Fatalf)
		}
	})
}
