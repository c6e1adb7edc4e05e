package interest

import "github.com/netloop/netloop/internal/netvar/state"

// Audience decides which clients may see an object. A capture calls it after SetAudience,
// [Map.Recheck] and [Map.RecheckFor], and for a new client, but not in each tick. For an object in
// a space it is called only for clients that are near enough.
type Audience interface{ Includes(v *Viewer) bool }

// SetAudience makes o visible to the clients of the audience only; nil, the default, means all
// clients. It takes effect with the next capture, so hiding and showing an object before that has
// no effect.
func (m *Map) SetAudience(o *state.Object, a Audience) {
	if !o.Alive() {
		return
	}
	m.setAudience(o.Slot(), a)
	m.Recheck(o)
}

// setAudience stores the audience by slot and not in Object, because objects of a replica have no
// audience, and an unused field would take space in CPU caches.
func (m *Map) setAudience(slot int, a Audience) {
	if a == nil {
		if m.guarded.Remove(slot); slot < len(m.audiences) {
			m.audiences[slot] = nil
		}
		return
	}
	for len(m.audiences) <= slot {
		m.audiences = append(m.audiences, nil)
	}
	m.audiences[slot] = a
	m.guarded.Add(slot)
}

// Audience returns the audience set by SetAudience for a living object.
func (m *Map) Audience(o *state.Object) Audience {
	if slot := o.Slot(); slot < len(m.audiences) {
		return m.audiences[slot]
	}
	return nil
}

// Guarded iterates over the living objects with an audience, in id order.
func (m *Map) Guarded(yield func(*state.Object) bool) {
	for slot := m.guarded.Next(0); slot >= 0; slot = m.guarded.Next(slot + 1) {
		if !yield(m.objects.Slots[slot]) {
			return
		}
	}
}

// GuardedIn returns the slots of block k with an audience, one per bit.
func (m *Map) GuardedIn(k int) uint64 { return m.guarded.Word(k) }
