package interest

import (
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/state"
)

// A field may have a rule for its readers (`net:"read=owner"`). A client must not notice changes of
// fields that it may not read. So such a change makes no record pending; the version of a record is
// the tick of the newest readable change; and unreadable values are 0 in it. They are replaced
// before encoding, so no coder ever sees a value that it must not send.
//
// Rules are evaluated together with audiences, for each object and client. If the result changes
// within a lifetime, a new view begins: acknowledgements of earlier packets are ignored, and all
// fields of the object are pending.

// Readers decides which fields of a class's objects a client may read. Both methods run within a
// capture.
type Readers interface {
	// Ask evaluates the part of an object's rules that is the same for all clients. The calls of
	// Withheld for the object use its result until Ask is called again.
	Ask(o *state.Object)
	// Withheld returns the rules of the fields that the client may not read.
	Withheld(o *state.Object, v *Viewer) state.Rules
}

// SetReaders sets the readers of a class's fields that have a rule. Without readers no client may
// read them. It must be called before the first object is spawned.
func (m *Map) SetReaders(c *state.Class, r Readers) {
	if m.readers == nil {
		m.readers = make([]Readers, len(m.table.Classes()))
	}
	m.readers[c.Index()] = r
}

// Note adds a changed object to the sets of Changed.
func (m *Map) Note(o *state.Object) {
	for i, changed := range o.Fields {
		if changed != m.tick {
			continue
		}
		rule := o.WireClass().RuleOf(i)
		for len(m.changed) <= rule {
			m.changed = append(m.changed, nil)
		}
		m.changed[rule].Add(o.Slot())
	}
}

// Changed returns, by rule, the slots of objects in which the running capture has found a change of
// a field with that rule. Objects of classes without rules are not included.
func (m *Map) Changed() []bitset.Set { return m.changed }

// Restricted iterates over the living objects that have fields with a rule, in id order.
func (m *Map) Restricted(yield func(*state.Object) bool) {
	for _, c := range m.table.Classes() {
		if !c.Restricted() {
			continue
		}
		for o := range m.objects.All(c) {
			if !yield(o) {
				return
			}
		}
	}
}

func (m *Map) readersOf(o *state.Object) Readers {
	if m.readers == nil {
		return nil
	}
	return m.readers[o.WireClass().Index()]
}

// askRules announces that the rules of o are evaluated again.
func (m *Map) askRules(o *state.Object) {
	if !o.WireClass().Restricted() {
		return
	}
	if r := m.readersOf(o); r != nil {
		r.Ask(o)
	}
}

// withheld evaluates which rules a client may not read.
func (m *Map) withheld(o *state.Object, v *Viewer) state.Rules {
	all := o.WireClass().AllRules()
	if r := m.readersOf(o); r != nil {
		return r.Withheld(o, v) & all
	}
	return all
}

// beginView evaluates the readable fields of an object at the start of its lifetime for a client.
func (m *Map) beginView(o *state.Object, v *Viewer) {
	if o.WireClass().Restricted() {
		v.Set(o.Slot(), m.withheld(o, v))
	}
}

// review evaluates again which fields a client may read of an object that it has.
func (m *Map) review(o *state.Object, v *Viewer) {
	if !o.WireClass().Restricted() {
		return
	}
	slot := o.Slot()
	withheld := m.withheld(o, v)
	if withheld == v.Withheld(slot) {
		return
	}
	v.client.Remask(slot)
	v.Set(slot, withheld)
	v.turn(slot, m.tick)
	m.stats.Masked++
}

// Readable returns those slots of moved, the objects with a new version, in which a field has
// changed that the client may read. The result is valid until the next call for any client.
func (m *Map) Readable(v *Viewer, moved bitset.Set) bitset.Set {
	if len(v.blocks) == 0 {
		return moved
	}
	seen := append(m.scratch[:0], moved...)
	for k := range min(len(moved), len(v.blocks)) {
		seen[k] = v.Readable(k, moved[k], m.changed)
	}
	m.scratch = seen
	return seen
}
