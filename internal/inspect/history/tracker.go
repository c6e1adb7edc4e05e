package history

import (
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// The changes of a tick, and a keyframe, which has all objects as added:
//
//	frame   = group*
//	group   = class:uvarint size:uvarint removed added changed
//	removed = n:uvarint (slot)*
//	added   = n:uvarint (slot generation:uvarint owner:uvarint values)*
//	changed = n:uvarint (slot flag mask [owner:uvarint] values of the mask)*
//
// A slot is its distance from the one before it in its list; in changed its lowest bit is the flag
// of a new owner. Values are those of the codec, in wire precision. A group has a size, so that a
// search skips other classes.

// tracker finds the changes of a world from one capture to the next. It belongs to the goroutine of
// the room.
type tracker struct {
	classes []*state.Class
	last    []seen  // by slot: the objects of the last call
	groups  []group // by class
	body    []byte  // scratch: a group
	mask    []byte  // scratch
}

// seen is the object that a slot had.
type seen struct {
	id    state.ID // 0: none
	class int
}

// group holds the changes of one class.
type group struct {
	removed        []int // slots
	added, changed []*state.Object
}

// changes counts the changes of a tick, and the objects after it.
type changes struct{ objects, added, removed, changed uint32 }

func newTracker(t *state.Table) *tracker {
	return &tracker{classes: t.Classes(), groups: make([]group, len(t.Classes()))}
}

// observe compares the world after a tick with that of the last call.
func (t *tracker) observe(w *netvar.World, tick uint64) (n changes) {
	t.clear()
	next := 0
	for o := range w.Captured() {
		slot := o.Slot()
		n.removed += t.removeFrom(next, slot)
		next = slot + 1
		for len(t.last) <= slot {
			t.last = append(t.last, seen{})
		}
		was, class := t.last[slot], o.WireClass().Index()
		n.objects++
		switch g := &t.groups[class]; {
		case was.id != o.ID():
			n.removed += t.remove(slot)
			g.added = append(g.added, o)
			t.last[slot] = seen{o.ID(), class}
			n.added++
		case o.Changed() == tick:
			g.changed = append(g.changed, o)
			n.changed++
		}
	}
	n.removed += t.removeFrom(next, len(t.last))
	return n
}

func (t *tracker) clear() {
	for i := range t.groups {
		g := &t.groups[i]
		clear(g.added) // release the objects
		clear(g.changed)
		g.removed, g.added, g.changed = g.removed[:0], g.added[:0], g.changed[:0]
	}
}

// removeFrom records that the objects in the slots from slot up to but not including limit were
// removed. They existed at the last call.
func (t *tracker) removeFrom(slot, limit int) (n uint32) {
	for ; slot < min(limit, len(t.last)); slot++ {
		n += t.remove(slot)
	}
	return n
}

func (t *tracker) remove(slot int) uint32 {
	was := t.last[slot]
	if was.id == 0 {
		return 0
	}
	t.last[slot] = seen{}
	g := &t.groups[was.class]
	g.removed = append(g.removed, slot)
	return 1
}

// appendChanges appends the changes that the last observe of a tick has found.
func (t *tracker) appendChanges(dst []byte, tick uint64) []byte {
	for i := range t.groups {
		if g := &t.groups[i]; len(g.removed)+len(g.added)+len(g.changed) > 0 {
			t.body = t.appendGroup(t.body[:0], t.classes[i], g, tick)
			dst = wire.AppendBytes(wire.AppendUvarint(dst, uint64(i)), t.body)
		}
	}
	return dst
}

// appendKeyframe appends all objects of the world as added. It uses the memory of the last observe.
func (t *tracker) appendKeyframe(dst []byte, w *netvar.World) []byte {
	t.clear()
	for o := range w.Captured() {
		g := &t.groups[o.WireClass().Index()]
		g.added = append(g.added, o)
	}
	return t.appendChanges(dst, 0)
}

func (t *tracker) appendGroup(dst []byte, c *state.Class, g *group, tick uint64) []byte {
	last := 0
	dst = wire.AppendUvarint(dst, uint64(len(g.removed)))
	for _, slot := range g.removed {
		dst = wire.AppendUvarint(dst, uint64(slot-last))
		last = slot
	}
	last = 0
	dst = wire.AppendUvarint(dst, uint64(len(g.added)))
	for _, o := range g.added {
		v := o.Newest()
		dst = wire.AppendUvarint(dst, uint64(o.Slot()-last))
		last = o.Slot()
		dst = wire.AppendUvarint(dst, uint64(o.ID().Gen()))
		dst = c.Plan().AppendValues(wire.AppendUvarint(dst, c.Owner(&v)), &v)
	}
	last = 0
	dst = wire.AppendUvarint(dst, uint64(len(g.changed)))
	for _, o := range g.changed {
		dst = t.appendChanged(dst, c, o, o.Slot()-last, tick)
		last = o.Slot()
	}
	return dst
}

func (t *tracker) appendChanged(dst []byte, c *state.Class, o *state.Object, gap int, tick uint64) []byte {
	v := o.Newest()
	owner := uint64(0)
	if o.Fields[0] == tick {
		owner = 1
	}
	t.mask = append(t.mask[:0], state.NoMask[:c.MaskBytes()]...)
	for i, changed := range o.Fields[1:] {
		if changed == tick {
			t.mask[i>>3] |= 1 << (i & 7)
		}
	}
	dst = append(wire.AppendUvarint(dst, uint64(gap)<<1|owner), t.mask...)
	if owner != 0 {
		dst = wire.AppendUvarint(dst, c.Owner(&v))
	}
	return c.Plan().AppendSome(dst, &v, t.mask)
}
