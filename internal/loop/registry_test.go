package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
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

// The model of the registry: who is registered, since when, where not.
type modelSystem struct {
	name     string
	seq      int
	priority int
	stages   []Stage
	gone     []Stage
	removed  bool
	live     bool // took effect
	handle   *System[*Now]
}

func (m *modelSystem) runs(s Stage) bool {
	return !m.removed && m.live && slices.Contains(m.stages, s) && !slices.Contains(m.gone, s)
}

// model runs random changes during ticks and knows, call by call, who is next.
type model struct {
	h       *harness
	rnd     *rand.Rand
	all     []*modelSystem // not removed, in order of registration
	seq     int
	stage   Stage
	frozen  []*modelSystem // what is left of the stage that runs
	wrong   string
	told    int // OnRemove
	removed int
}

// Changes asked for at random moments of a tick: nobody is skipped, repeated or
// lost, and who was removed does not run.
func TestRandomChangesDuringTicksFollowTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{h: newHarness(t), rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))}
		for range rapid.IntRange(0, 8).Draw(rt, "systems") {
			m.add()
		}
		for range rapid.IntRange(1, 20).Draw(rt, "ticks") {
			m.stage, m.frozen = 0, nil
			for _, s := range m.all {
				s.live = true
			}
			m.h.step()
			m.enter(PostLateUpdate + 1)
			if m.wrong != "" {
				rt.Fatal(m.wrong)
			}
		}
		if m.told != m.removed {
			rt.Fatalf("%d removed, %d told", m.removed, m.told)
		}
	})
}

func (m *model) add() {
	s := &modelSystem{name: fmt.Sprint("s", m.rnd.IntN(12)), seq: m.seq, priority: m.rnd.IntN(3)}
	for _, st := range Stages() {
		if m.rnd.IntN(3) == 0 {
			s.stages = append(s.stages, st)
		}
	}
	used := slices.ContainsFunc(m.all, func(o *modelSystem) bool { return o.name == s.name })
	var err error
	s.handle, err = m.h.Add(Spec[*Now]{
		Name: s.name, Priority: s.priority, OnRemove: func() { m.told++ },
		Ask: at(func(n *Now) { m.called(s, n) }, s.stages...),
	})
	if (err != nil) != used {
		m.wrong = fmt.Sprintf("adding %s while used is %v: %v", s.name, used, err)
	}
	if err == nil {
		m.seq++
		m.all = append(m.all, s)
	}
}

func (m *model) remove(s *modelSystem) {
	if m.rnd.IntN(2) == 0 {
		s.removed = true
		s.handle.Remove()
	} else {
		st := Stages()[m.rnd.IntN(NumStages)]
		s.gone = append(s.gone, st)
		s.handle.Remove(st)
		left := slices.ContainsFunc(s.stages, func(x Stage) bool { return !slices.Contains(s.gone, x) })
		every := !slices.ContainsFunc(slices.Collect(stagesOf()), func(x Stage) bool { return !slices.Contains(s.gone, x) })
		s.removed = s.live && !left || every
	}
	if s.removed {
		m.removed++
		m.all = slices.DeleteFunc(m.all, func(o *modelSystem) bool { return o == s })
	}
}

func stagesOf() func(func(Stage) bool) {
	return func(yield func(Stage) bool) {
		for _, s := range Stages() {
			if !yield(s) {
				return
			}
		}
	}
}

// enter moves on to a stage: whatever the last ones still held must be gone.
func (m *model) enter(to Stage) {
	for m.stage < to {
		for _, s := range m.frozen {
			if s.runs(m.stage) {
				m.wrong = fmt.Sprintf("tick %d: %s was skipped in %v", m.h.tick, s.name, m.stage)
			}
		}
		m.frozen = nil
		if m.stage++; m.stage > PostLateUpdate {
			return
		}
		for _, s := range m.all {
			if s.runs(m.stage) {
				m.frozen = append(m.frozen, s)
			}
		}
		slices.SortStableFunc(m.frozen, func(a, b *modelSystem) int { return a.priority - b.priority })
	}
}

func (m *model) called(s *modelSystem, n *Now) {
	m.enter(n.Stage)
	for len(m.frozen) > 0 && !m.frozen[0].runs(m.stage) {
		m.frozen = m.frozen[1:]
	}
	if len(m.frozen) == 0 || m.frozen[0] != s {
		m.wrong = fmt.Sprintf("tick %d: %s ran in %v out of turn", m.h.tick, s.name, n.Stage)
		return
	}
	m.frozen = m.frozen[1:]
	for m.rnd.IntN(3) == 0 {
		if k := m.rnd.IntN(2 + len(m.all)); k < len(m.all) {
			m.remove(m.all[k])
		} else {
			m.add()
		}
	}
	if m.rnd.IntN(10) == 0 {
		panic("now and then") // costs nobody else anything
	}
}
