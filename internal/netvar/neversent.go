package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/netvar/state"
)

// A slot is never-sent for a peer while no record of its object was sent since the lifetime began
// for the client, the client requested the full state, or it resumed without copies. All never-sent
// entries share one empty detail. If there are many, the client receives them by a plan: see
// plan.go.

// setNeverSent overwrites the entry of a slot with an entry without records, and makes the slot
// pending. The slot is added to p.neverSent unless values of its class may not fit a packet.
func (p *Peer) setNeverSent(slot int, to entry) {
	e, d := &p.entries[slot], &p.w.details
	d.release(e.detail)
	to.detail = &d.neverSent
	*e = to
	p.derived.Remove(slot)
	p.pending.Add(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
	if !p.w.objects.Slots[slot].WireClass().Large {
		p.neverSent.Add(slot)
	}
}

// lastSent returns the low bits of the tick of the slot's last record. The entry of an object with
// a derived baseline may lack them, so they are derived from the versions.
func (p *Peer) lastSent(slot int) uint32 {
	e := &p.entries[slot]
	if !p.derived.Has(slot) {
		return e.last
	}
	version := p.View(slot).Version(p.w.objects.Slots[slot])
	if version > p.before {
		return p.detailed(slot).last
	}
	if last := uint32(version); int32(last-e.last) > 0 {
		return last
	}
	return e.last
}

// maxSpareEntries bounds the entry lists that are kept from closed peers for new ones: about as
// many as join in one tick. In a world with many objects each list is large, and would otherwise
// have to be collected as garbage.
const maxSpareEntries = 4

// keepEntries stores the entry list of a closed peer for reuse, and releases its details.
func (w *World) keepEntries(p *Peer) {
	for i := range p.entries {
		w.details.release(p.entries[i].detail)
	}
	if len(w.spareEntries) < maxSpareEntries {
		w.spareEntries = append(w.spareEntries, p.entries)
	}
	p.entries = nil
}

// takeEntries returns a list with one absent entry for each slot.
func (w *World) takeEntries() []entry {
	n := len(w.objects.Slots)
	if last := len(w.spareEntries) - 1; last >= 0 {
		list := w.spareEntries[last]
		w.spareEntries[last] = nil
		w.spareEntries = w.spareEntries[:last]
		if cap(list) >= n {
			list = list[:cap(list)]
			clear(list)
			return list[:n]
		}
	}
	return make([]entry, n)
}

// beginAll starts the lifetimes, for a joining client, of all objects in World.open. It does not
// read the objects themselves, because in a large world this would be most of the cost of joining.
func (p *Peer) beginAll(tick uint64) {
	w, none := p.w, &p.w.details.neverSent
	p.neverSent = append(p.neverSent, w.open...)
	for k := range p.neverSent {
		p.neverSent[k] &^= w.GuardedIn(k)
		p.first.left += bits.OnesCount64(p.neverSent[k])
		for m := p.neverSent[k]; m != 0; m &= m - 1 {
			p.entries[k<<6+bits.TrailingZeros64(m)] = entry{detail: none, life: tick, last: uint32(tick), phase: shown, first: true}
		}
	}
	p.pending = append(p.pending, p.neverSent...)
	p.first.total = p.first.left
}

// opens adds a published object to World.open if all clients see all of its fields and it fits a
// packet.
func (w *World) opens(o *state.Object) {
	if !w.InSpace(o.WireClass()) && !o.WireClass().Restricted() && !o.WireClass().Large {
		w.open.Add(o.Slot())
	}
}
