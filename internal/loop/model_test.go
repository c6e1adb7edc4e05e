package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelSystem is the model's data of a system.
type modelSystem struct {
	name     string
	answers  stageSet // of its Ask
	priority int
	stages   stageSet // requested
	disabled bool
	waits    bool // pending or changed
	leaving  bool
	removed  bool

	now    stageSet // where it runs
	off    bool
	row    [NumStages]int
	caught bool // quarantined, which outlasts the test
	handle *System[*Now]
}

func (s *modelSystem) runs(stage Stage) bool {
	return !s.removed && !s.off && !s.caught && s.now.has(stage)
}

// model runs random changes during ticks and predicts, call by call, the next system.
type model struct {
	h       *harness
	rnd     *rand.Rand
	all     []*modelSystem // as requested, in order of registration
	leaving []*modelSystem // left out by Set
	order   []*modelSystem // in effect
	stage   Stage
	frozen  []*modelSystem // the remaining systems of the running stage
	wrong   string
	told    int // calls of OnRemove
	removed int
}

// After random changes during ticks, no system is skipped, repeated or lost, removed and
// quarantined systems do not run, and the others run in order.
func TestRandomChangesDuringTicksFollowTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{h: newHarness(t), rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))}
		for range rapid.IntRange(0, 8).Draw(rt, "systems") {
			m.add()
		}
		for range rapid.IntRange(1, 20).Draw(rt, "ticks") {
			m.settle()
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

// settle simulates the next Initialization.
func (m *model) settle() {
	m.stage, m.frozen = 0, nil
	for _, s := range m.leaving {
		if !s.removed {
			s.removed = true
			m.removed++
		}
	}
	m.leaving = nil
	for _, s := range m.all {
		s.now, s.off, s.waits = s.stages&s.answers, s.disabled, false
	}
	m.order = slices.Clone(m.all)
	slices.SortStableFunc(m.order, func(a, b *modelSystem) int { return a.priority - b.priority })
}

func (m *model) find(name string) bool {
	return slices.ContainsFunc(m.all, func(o *modelSystem) bool { return o.name == name })
}

func (m *model) someStages() stageSet {
	return stageSet(m.rnd.IntN(1<<NumStages)) << 1
}

func (m *model) fresh() (*modelSystem, Spec[*Now]) {
	s := &modelSystem{name: fmt.Sprint("s", m.rnd.IntN(12)), priority: m.rnd.IntN(3), answers: m.someStages(), stages: allStages, waits: true}
	if m.rnd.IntN(3) == 0 {
		s.stages = m.someStages() | Update.bit()
	}
	s.disabled = m.rnd.IntN(8) == 0
	ask := func(stage Stage) func(*Now) {
		if !s.answers.has(stage) {
			return nil
		}
		return func(n *Now) { m.called(s, n) }
	}
	return s, Spec[*Now]{
		Name: s.name, Priority: s.priority, Ask: ask, Stages: s.stages.list(), Disabled: s.disabled, OnRemove: func() { m.told++ },
	}
}

func (m *model) add() {
	s, spec := m.fresh()
	used := m.find(s.name)
	var err error
	if s.handle, err = m.h.Add(spec); (err != nil) != used {
		m.wrong = fmt.Sprintf("adding %s while used is %v: %v", s.name, used, err)
	}
	if err == nil {
		m.all = append(m.all, s)
	}
}

func (m *model) remove(s *modelSystem) {
	if m.rnd.IntN(2) == 0 {
		s.removed = true
		s.handle.Remove()
	} else {
		stage := Stages()[m.rnd.IntN(NumStages)]
		s.stages &^= stage.bit()
		s.now &^= stage.bit()
		s.handle.Remove(stage)
		s.removed = s.stages == 0 || !s.waits && s.now == 0
	}
	if s.removed {
		m.removed++
		m.all = slices.DeleteFunc(m.all, func(o *modelSystem) bool { return o == s })
	}
}

// other gives a system another priority, other stages, or disables or enables it.
func (m *model) other(s *modelSystem) Spec[*Now] {
	spec := s.handle.Spec()
	switch m.rnd.IntN(3) {
	case 0:
		s.priority = m.rnd.IntN(3)
		spec.Priority = s.priority
	case 1:
		s.stages = m.someStages() | PreUpdate.bit()
		spec.Stages = s.stages.list()
	default:
		s.disabled = !s.disabled
		spec.Disabled = s.disabled
	}
	s.waits = true
	return spec
}

// set takes the tree and leaves out, changes, moves and adds.
func (m *model) set() {
	tree := m.h.Tree()
	if len(tree.Items) != len(m.all) {
		m.wrong = fmt.Sprintf("a tree of %d systems, want %d", len(tree.Items), len(m.all))
		return
	}
	if m.rnd.IntN(4) == 0 {
		// An invalid change has no effect.
		_, spec := m.fresh()
		spec.After = []string{"nobody"}
		tree.Items = append(tree.Items[len(tree.Items)/2:], Item[*Now]{Spec: spec})
		if err := m.h.Set(tree); err == nil {
			m.wrong = "a tree with an unknown anchor was set"
		}
		return
	}
	var all []*modelSystem
	var items []Item[*Now]
	for i, s := range m.all {
		switch m.rnd.IntN(6) {
		case 0:
			s.leaving = true
			m.leaving = append(m.leaving, s)
			continue
		case 1:
			tree.Items[i].Spec, tree.Items[i].Changed = m.other(s), true
		}
		all, items = append(all, s), append(items, tree.Items[i])
	}
	m.all = all
	m.rnd.Shuffle(len(all), func(i, j int) {
		all[i], all[j] = all[j], all[i]
		items[i], items[j] = items[j], items[i]
	})
	if s, spec := m.fresh(); !m.find(s.name) {
		m.all, items = append(m.all, s), append(items, Item[*Now]{Spec: spec})
	}
	tree.Items = items
	if err := m.h.Set(tree); err != nil {
		m.wrong = err.Error()
	}
	for _, s := range m.all {
		s.handle = m.h.names[s.name]
	}
}

// change makes a random request.
func (m *model) change() {
	k := m.rnd.IntN(3 + 2*len(m.all))
	switch {
	case k < len(m.all):
		m.remove(m.all[k])
	case k < 2*len(m.all):
		s := m.all[k-len(m.all)]
		if err := s.handle.Change(m.other(s)); err != nil {
			m.wrong = err.Error()
		}
	case k == 2*len(m.all):
		m.set()
	default:
		m.add()
	}
}

// enter moves to a stage: the remaining systems of earlier stages must be removed ones.
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
		for _, s := range m.order {
			if s.runs(m.stage) {
				m.frozen = append(m.frozen, s)
			}
		}
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
	for m.rnd.IntN(3) == 0 && m.wrong == "" {
		m.change()
	}
	row := &s.row[m.stage.index()]
	if m.rnd.IntN(10) == 0 {
		if *row++; *row >= quarantineAfter && !s.removed {
			s.caught = true
		}
		panic("now and then") // Affects no other system.
	}
	*row = 0
}
