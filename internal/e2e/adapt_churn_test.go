package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
)

// churn is what the test knows of the server's objects: it makes every change
// itself and does not ask the runtime.
type churn struct {
	rng    *rand.Rand
	things map[netloop.Ref[thing]]thing
	notes  map[netloop.Ref[note]]note
	objT   map[netloop.Ref[thing]]*netloop.Object[thing]
	objN   map[netloop.Ref[note]]*netloop.Object[note]
}

// newChurn returns that of an empty world.
func newChurn(seed uint64) *churn {
	return &churn{
		rng:    rand.New(rand.NewPCG(seed, 2)),
		things: map[netloop.Ref[thing]]thing{}, notes: map[netloop.Ref[note]]note{},
		objT: map[netloop.Ref[thing]]*netloop.Object[thing]{}, objN: map[netloop.Ref[note]]*netloop.Object[note]{},
	}
}

// order returns the keys of a map in an order that the seed decides alone.
func order[S, V any](m map[netloop.Ref[S]]V) []netloop.Ref[S] {
	return slices.SortedFunc(maps.Keys(m), netloop.Ref[S].Compare)
}

// change makes a few random changes. A thing's N counts its edits, so that an old
// value after a newer one is seen.
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
