package netvar

import "math/bits"

// A slot is blank for a peer while no record of its object was sent since the lifetime began for
// the client, the client requested the full state, or it resumed without copies. All blank entries
// share one empty detail. If there are many, the client receives them by a plan: see plan.go.

// setBlank replaces the entry of a slot with one of which no record was sent, and makes it pending.
func (p *Peer) setBlank(slot int, to entry) {
	e, d := &p.entries[slot], &p.w.details
	d.release(e.detail)
	to.detail = &d.blank
	*e = to
	p.steady.unset(slot)
	p.owed.set(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
	if !p.w.slots[slot].class.large {
		p.blank.set(slot)
	}
}

// isBlank reports whether d is the detail that all blank entries share. It must not be changed.
func (s *details) isBlank(d *detail) bool { return d == &s.blank }

// lastSent returns the low bits of the tick of the slot's last record. The entry of a steady object
// may lack them, so they are derived from the versions.
func (p *Peer) lastSent(slot int) uint32 {
	e := &p.entries[slot]
	if !p.steady.has(slot) {
		return e.last
	}
	version := p.view(slot).version(p.w.slots[slot])
	if version > p.before {
		return p.detailed(slot).last
	}
	if last := uint32(version); int32(last-e.last) > 0 {
		return last
	}
	return e.last
}

// maxSpareEntries bounds the entry lists that are kept from closed peers for new ones: about as
// many as join in one tick. In a world of many objects each list is large, and would be garbage
// otherwise.
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
	n := len(w.slots)
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
// look at the objects themselves: in a large world that would be most of the cost of joining.
func (p *Peer) beginAll(tick uint64) {
	w, none := p.w, &p.w.details.blank
	p.blank = append(p.blank, w.open...)
	for k := range p.blank {
		p.blank[k] &^= w.guarded.word(k)
		p.first.left += bits.OnesCount64(p.blank[k])
		for m := p.blank[k]; m != 0; m &= m - 1 {
			p.entries[k<<6+bits.TrailingZeros64(m)] = entry{detail: none, life: tick, last: uint32(tick), phase: shown, first: true}
		}
	}
	p.owed = append(p.owed, p.blank...)
	p.first.total = p.first.left
}

// opens adds a published object to World.open if all clients see all of its fields and it fits a
// packet. beginAll skips slots with an audience.
func (w *World) opens(o *Object) {
	if !w.inSpace(o.class) && !w.restricted(o) && !o.class.large {
		w.open.set(o.id.slot())
	}
}
