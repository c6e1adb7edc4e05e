package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// Two client builds with schemas other than the world of game_test.go: the first has other
// fields in thing and no note, the second the reverse.
type (
	thingElsewhere struct {
		Glow  float64
		Marks [2]uint8 `net:"name=Tags"`
		X     float32  `net:"quant=1/16"`
		Count int32    `net:"name=N"`
	}
	noteElsewhere struct {
		List []int16 `net:"max=8"`
		Ink  uint8
	}
)

var (
	thingSchema = netloop.NewSchema("test", 1, 1)
	lessThings  = netloop.NewClass[thingElsewhere](thingSchema, "thing")
	noteSchema  = netloop.NewSchema("test", 1, 2)
	_           = netloop.NewClass[struct{ A, B int8 }](noteSchema, "curtain")
	otherNotes  = netloop.NewClass[noteElsewhere](noteSchema, "note")
)

// TestEveryBuildConvergesOverBadLinks plays random worlds with clients of three builds, and
// compares the state of each with a mirror kept by the test.
func TestEveryBuildConvergesOverBadLinks(t *testing.T) {
	seeds.Each(t, 50, convergeBuilds)
}

// seen collects the watcher calls of a client of another build.
type seen struct {
	spawned, despawned int
	last               map[*netloop.Object[thingElsewhere]]thingElsewhere
}

func (s *seen) watch(t *testing.T, c *client.Client) {
	s.last = map[*netloop.Object[thingElsewhere]]thingElsewhere{}
	client.Watch(c, lessThings, client.Watcher[thingElsewhere]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere]) {
			s.spawned++
			s.last[o] = o.State()
		},
		Change: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere], old thingElsewhere) {
			if old != s.last[o] || old == o.State() || o.State().Count < old.Count {
				t.Errorf("notified of a change from %+v to %+v, after %+v", old, o.State(), s.last[o])
			}
			s.last[o] = o.State()
		},
		Despawn: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere], _ thingElsewhere) {
			s.despawned++
			delete(s.last, o)
		},
	})
}

func convergeBuilds(t *testing.T, seed uint64) {
	m := newChurn(seed)
	w := open(t, func(*netloop.Room) {}, netlooptest.Seed(seed))
	l := netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
	less := w.JoinAs(client.Config{Schema: thingSchema}, l)
	other := w.JoinAs(client.Config{Schema: noteSchema}, l)
	same := w.Join("", nil, l)
	clients := []*client.Client{less, other, same}
	var told seen
	told.watch(t, less)
	for range 200 + m.rng.IntN(100) {
		w.Step(1)
		if m.rng.IntN(10) > 0 {
			w.Tick(m.change)
		}
	}
	w.Until(600, func() bool {
		return !slices.ContainsFunc(clients, func(c *client.Client) bool { return c.State().Phase != client.Playing })
	})
	l.Loss = 0
	for _, c := range clients {
		w.SetLink(c, l)
	}
	w.Step(100)
	if err := m.compareBuilds(w, less, other); err != nil {
		t.Error(err)
	}
	if told.spawned-told.despawned != len(m.things) || len(told.last) != len(m.things) {
		t.Errorf("notified of %d spawns and %d despawns, %d things are left", told.spawned, told.despawned, len(m.things))
	}
	for _, c := range clients {
		agree(t, w, c)
	}
	if s := less.Stats(); s.Malformed != 0 || s.Unequal != 0 {
		t.Errorf("%d malformed, %d unequal", s.Malformed, s.Unequal)
	}
}

// compareBuilds returns the differences between the clients of other builds and the mirror.
// Objects are compared in the order of their ids, whatever the type of their Refs.
func (m *churn) compareBuilds(w *netlooptest.World, less, other *client.Client) error {
	var got, want []string
	w.Look(less, func(t *netloop.Tick) {
		for o := range lessThings.All(t) {
			s := o.State()
			got = append(got, fmt.Sprint(s.Count, s.X, s.Marks, s.Glow))
		}
	})
	w.Look(other, func(t *netloop.Tick) {
		for o := range otherNotes.All(t) {
			s := o.State()
			got = append(got, fmt.Sprint(len(s.List), s.List, s.Ink))
		}
	})
	for _, r := range order(m.things) {
		s := m.things[r]
		want = append(want, fmt.Sprint(s.N, s.X, s.Tags, 0))
	}
	for _, r := range order(m.notes) {
		want = append(want, fmt.Sprint(len(m.notes[r].List), m.notes[r].List, 0))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("they see %v\nwant     %v", got, want)
	}
	return nil
}

// churn is the test's copy of the server's objects. The test makes every change to both and does
// not read the copy back from the runtime.
type churn struct {
	rng    *rand.Rand
	things map[netloop.Ref[thing]]thing
	notes  map[netloop.Ref[note]]note
	objT   map[netloop.Ref[thing]]*netloop.Object[thing]
	objN   map[netloop.Ref[note]]*netloop.Object[note]
}

// newChurn returns the copy of an empty world.
func newChurn(seed uint64) *churn {
	return &churn{
		rng:    rand.New(rand.NewPCG(seed, 2)),
		things: map[netloop.Ref[thing]]thing{}, notes: map[netloop.Ref[note]]note{},
		objT: map[netloop.Ref[thing]]*netloop.Object[thing]{}, objN: map[netloop.Ref[note]]*netloop.Object[note]{},
	}
}

// order returns the keys of a map in an order that depends on the seed alone.
func order[S, V any](m map[netloop.Ref[S]]V) []netloop.Ref[S] {
	return slices.SortedFunc(maps.Keys(m), netloop.Ref[S].Compare)
}

// change makes a few random changes. A thing's N counts its edits, so the test notices an old
// value after a newer one.
func (m *churn) change(t *netloop.Tick) {
	for range m.rng.IntN(6) {
		switch k := m.rng.IntN(20); {
		case k < 2 && len(m.things) < 60:
			v := thing{X: m.coordinate()}
			o := things.Spawn(t, v)
			m.things[o.Ref()], m.objT[o.Ref()] = v, o
		case k < 3 && len(m.notes) < 20:
			v := note{Text: "new", List: []int16{1}}
			o := notes.Spawn(t, v)
			m.notes[o.Ref()], m.objN[o.Ref()] = v, o
		case k < 4:
			for _, r := range order(m.things)[:min(1, len(m.things))] {
				m.objT[r].Despawn(t)
				delete(m.things, r)
			}
		case k < 8:
			for r, o := range m.pickNote() {
				n := o.Edit(t)
				n.Text = fmt.Sprint("text ", m.rng.IntN(1000))
				n.List = append(n.List[:0:0], make([]int16, m.rng.IntN(8))...)
				m.notes[r] = note{Text: n.Text, List: slices.Clone(n.List)}
			}
		default:
			for r, o := range m.pickThing() {
				e := o.Edit(t)
				e.N++
				e.X = m.coordinate()
				e.Tags[m.rng.IntN(2)] = uint8(m.rng.IntN(3))
				m.things[r] = *e
			}
		}
	}
}

// coordinate draws a value that survives the quantisation to sixteenths.
func (m *churn) coordinate() float32 { return float32(m.rng.IntN(4000)-2000) / 16 }

func (m *churn) pickThing() map[netloop.Ref[thing]]*netloop.Object[thing] {
	keys := order(m.things)
	if len(keys) == 0 {
		return nil
	}
	r := keys[m.rng.IntN(len(keys))]
	return map[netloop.Ref[thing]]*netloop.Object[thing]{r: m.objT[r]}
}

func (m *churn) pickNote() map[netloop.Ref[note]]*netloop.Object[note] {
	keys := order(m.notes)
	if len(keys) == 0 {
		return nil
	}
	r := keys[m.rng.IntN(len(keys))]
	return map[netloop.Ref[note]]*netloop.Object[note]{r: m.objN[r]}
}
