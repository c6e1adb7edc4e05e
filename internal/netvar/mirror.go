package netvar

import (
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Mirror fills a world with the snapshots that a client of another world was sent. The clients of
// this world then see exactly what that client sees, with the same ids, owners and masks, after any
// delay:
//
//	World ─▶ Peer.AppendSnapshot ─▶ … ─▶ Mirror.Apply ─▶ Mirror.Show ─▶ World.Capture ─▶ its peers
//
// The visibility rules of the game are not evaluated again: an object that the client was not sent
// is hidden from all clients here, and a field that the client could not read is readable by no
// client here. A mirror belongs to the goroutine of its world.
type Mirror struct {
	w        *World
	r        *replica.Replica
	touched  bitset.Set      // slots with applied records that are not shown yet
	shown    []*state.Object // by slot: the replica's object that the world's object copies
	withheld []state.Rules   // by slot: rules that no client may read
}

// NewMirror makes a mirror that fills w, which must have neither objects nor peers. Objects have
// the weights of their class in the mirrored world.
func NewMirror(w, of *World) *Mirror {
	m := &Mirror{w: w, r: replica.New(w.table)}
	m.r.Track(&m.touched)
	w.mirrors = true
	// The mirrored world has already applied intervals and thresholds.
	w.holds = holds{by: make([][]uint64, len(w.table.Classes()))}
	for i, c := range w.table.Classes() {
		m.r.TellChanges(c, false)
		w.SetReaders(c, m)
		w.kinds[i].weight, w.kinds[i].every = of.kinds[i].weight, of.kinds[i].every
	}
	return m
}

// Apply applies a packet of the client. Packets must be passed in the order of sending, without
// gaps.
func (m *Mirror) Apply(packet []byte) error {
	_, err := m.r.Apply(packet)
	return err
}

// ApplyLarge applies a record that was sent over the client's stream. It must be called after the
// packets of the same snapshot.
func (m *Mirror) ApplyLarge(record []byte) error {
	_, err := m.r.ApplyLarge(record)
	return err
}

// Show copies the applied state into the world for the next capture. It reports whether all objects
// could be copied. If not, call Show again: a new object has to wait until the capture has ended
// the old object of its slot.
func (m *Mirror) Show(tick uint64) (all bool) {
	all = true
	for slot := m.touched.Next(0); slot >= 0; slot = m.touched.Next(slot + 1) {
		if m.show(slot, tick) {
			m.touched.Remove(slot)
		} else {
			all = false
		}
	}
	m.r.Events() // drop the events, which are not used
	return all
}

// show copies one slot of the replica into the world.
func (m *Mirror) show(slot int, tick uint64) (done bool) {
	for len(m.shown) <= slot {
		m.shown, m.withheld = append(m.shown, nil), append(m.withheld, 0)
	}
	now := m.r.Objects().At(slot)
	image := m.w.objects.At(slot)
	if image != nil && now != m.shown[slot] {
		m.w.Despawn(image)
		return now == nil
	}
	if now == nil {
		return true // the object was spawned and despawned since the last Show
	}
	withheld := now.WireClass().WithheldBy(m.r.Mask(slot))
	if image == nil {
		m.shown[slot], m.withheld[slot] = now, withheld
		m.w.put(now.ID(), now.WireClass(), now.Live(), now.Owner(), tick)
		return true
	}
	if withheld != m.withheld[slot] {
		m.withheld[slot] = withheld
		m.w.Recheck(image)
	}
	if image.Owner() != now.Owner() {
		m.w.SetOwner(image, now.Owner())
	}
	m.w.Edit(image)
	return true
}

// Ask implements Readers.
func (m *Mirror) Ask(*state.Object) {}

// Withheld implements Readers.
func (m *Mirror) Withheld(o *state.Object, _ *interest.Viewer) state.Rules {
	return m.withheld[o.Slot()]
}
