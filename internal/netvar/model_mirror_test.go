package netvar

import (
	"fmt"
	"strings"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The mirror of the model: the state that each client must have, from the live values and from the
// model's own decisions. It does not use the world.

// parts is a value as text, by readers: all clients, the owner, the team. Other clients read
// hiddenParts.
type parts [3]string

// mirrored is one object at one tick.
type mirrored struct {
	id      state.ID
	parts   parts
	changed [3]uint64 // by part: tick of the last change
	spawned uint64    // tick of the first capture
	views   [3]mirroredView
}

// mirroredView is the view of one client.
type mirroredView struct {
	since  uint64  // since when it may see the object without interruption, 0 = it may not
	reads  [3]bool // readable parts
	masked uint64  // since when it reads exactly those, or sees an object that was hidden
}

// version returns the version that the client of a view must have.
func (e *mirrored) version(client int) uint64 {
	v := &e.views[client]
	version := v.masked
	for i, reads := range v.reads {
		if reads {
			version = max(version, e.changed[i])
		}
	}
	return version
}

// text returns the text that the client of a view must have.
func (e *mirrored) text(client int) string {
	t := e.parts
	for i, reads := range e.views[client].reads {
		if !reads {
			t[i] = hiddenParts[i]
		}
	}
	return strings.Join(t[:], " ")
}

// remember mirrors the current state of the world.
func (m *model) remember() {
	now := make(map[int]mirrored, len(m.objects))
	before := m.mirror[m.tick-1]
	for _, o := range m.objects {
		e := mirrored{id: o.ID(), changed: [3]uint64{m.tick, m.tick, m.tick}, spawned: m.tick}
		b, ok := before[o.Slot()]
		ok = ok && b.id == o.ID()
		switch {
		case ok && !m.touched[o]:
			e.parts, e.changed, e.spawned = b.parts, b.changed, b.spawned
		case ok:
			e.parts, e.spawned = m.parts(o), b.spawned
			for i := range e.parts {
				if e.parts[i] == b.parts[i] {
					e.changed[i] = b.changed[i]
				}
			}
		default:
			e.parts = m.parts(o)
		}
		for i, c := range m.clients {
			if c != nil {
				e.views[i] = m.viewOf(o, i, b.views[i])
				// The version of an object that was hidden does not reveal changes of that time.
				if _, guarded := m.may[o]; e.views[i].since == m.tick && e.spawned < m.tick && (guarded || c.joined < m.tick) {
					e.views[i].masked = m.tick
				}
			}
		}
		now[o.Slot()] = e
	}
	clear(m.touched)
	m.mirror[m.tick] = now
	delete(m.mirror, m.tick-1500)
}

// viewOf returns a client's view of o; before is its view at the last tick.
func (m *model) viewOf(o *state.Object, client int, before mirroredView) (v mirroredView) {
	if may, guarded := m.may[o]; guarded && may>>client&1 == 0 {
		return mirroredView{}
	}
	v.reads = [3]bool{true, o.WireClass() != m.agent || o.Owner() == uint64(client+1), o.WireClass() != m.agent || m.team[o]>>client&1 != 0}
	switch {
	case before.since == 0:
		v.since = m.tick
	case before.reads != v.reads:
		v.since, v.masked = before.since, m.tick
	default:
		v = before
	}
	return v
}

// parts returns the text of an object on either side. Values are rounded as on the wire.
func (m *model) parts(o *state.Object) parts {
	head := fmt.Sprintf("%016x owner=%d", uint64(o.ID()), o.Owner())
	switch o.WireClass() {
	case m.rock:
		return parts{fmt.Sprintf("%s %+v", head, *live[rock](o))}
	case m.hoard:
		return parts{fmt.Sprintf("%s %x", head, *live[hoard](o))}
	case m.agent:
		p := agentParts(live[agent](o))
		p[0] = head + p[0]
		return p
	}
	v := codec.Values{Words: make([]uint64, o.WireClass().Words()), Blobs: make([][]byte, o.Plan().Blobs())}
	var s ship
	o.Plan().Capture(o.Live(), &v)
	o.Plan().Restore(newShip(&s), &v, nil)
	s.Local = 0
	return parts{fmt.Sprintf("%s %+v", head, s)}
}

// isVersion compares a client's object with the version that it was sent at a tick.
func (m *model) isVersion(c *modelClient, o *state.Object, sent uint64) error {
	then, ok := m.mirror[sent]
	if !ok {
		return nil
	}
	slot := o.Slot()
	e := then[slot]
	if e.views[c.index].since != o.Life {
		return fmt.Errorf("%x of lifetime %d is shown at tick %d, it is visible since %d", uint64(o.ID()), o.Life, sent, e.views[c.index].since)
	}
	if want := e.version(c.index); o.Changed() != want {
		return fmt.Errorf("%x is shown in version %d at tick %d, want %d", uint64(o.ID()), o.Changed(), sent, want)
	}
	got := m.parts(o)
	if text := strings.Join(got[:], " "); text != e.text(c.index) {
		return fmt.Errorf("version %d is shown as %.200s, was %.200s", o.Changed(), text, e.text(c.index))
	}
	return nil
}

// same compares the client's whole state with the mirror of a tick. While edits continue a client
// may have the A of an A, B, A that is not yet acknowledged: equal, but an older version.
func (m *model) same(c *modelClient, tick uint64, healed bool) error {
	want := m.mirror[tick]
	n := 0
	for _, k := range m.table.Classes() {
		last := -1
		for o := range c.r.All(k) {
			slot := o.Slot()
			if slot <= last {
				return fmt.Errorf("All is not in id order")
			}
			last = slot
			n++
			w, ok := want[slot]
			got := m.parts(o)
			if text := strings.Join(got[:], " "); !ok || w.text(c.index) != text || healed && w.version(c.index) != o.Changed() || w.views[c.index].since != o.Life {
				return fmt.Errorf("slot %d at tick %d shows %s v%d life %d, want %+v", slot, tick, text, o.Changed(), o.Life, w)
			}
		}
	}
	visible := 0
	for _, w := range want {
		if w.views[c.index].since > 0 {
			visible++
		}
	}
	if n != visible || n != len(c.shown) {
		return fmt.Errorf("%d objects at tick %d, %d by events, want %d", n, tick, len(c.shown), visible)
	}
	return nil
}
