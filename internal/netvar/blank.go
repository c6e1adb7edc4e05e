package netvar

import "math/bits"

// An object of which a client has nothing yet is blank for its peer: the entry has no detail of its
// own, since all of it would be 0. A client that joins, asks for the full state, or is back without
// copies has all its objects blank. What it is sent first then follows a plan: see plan.go.

// setBlank makes the entry of a slot that of an object of which nothing is sent.
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

// isBlank reports whether a detail is that of all blank objects, which nobody may change.
func (s *details) isBlank(d *detail) bool { return d == &s.blank }

// lastSent returns the low bits of the tick of the last record of a slot, which of a steady object
// its entry need not have.
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

// maxSpareEntries is of how many peers that have left the entries are kept for those who come: as
// many as may come in a tick. In a world of many objects they would be a lot of garbage.
const maxSpareEntries = 4

// keepEntries takes the entries of a peer that leaves, and their details.
func (w *World) keepEntries(p *Peer) {
	for i := range p.entries {
		w.details.release(p.entries[i].detail)
	}
	if len(w.spareEntries) < maxSpareEntries {
		w.spareEntries = append(w.spareEntries, p.entries)
	}
	p.entries = nil
}

// takeEntries returns an entry for each slot, all of which are absent.
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

// beginAll begins the lifetimes of what everybody may see, for a client that joins. Of these
// objects it looks at none: in a world of many that would be the most of a join.
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

// opens notes a published object if all clients see all of it, unless it has an audience, and if a
// packet takes it.
func (w *World) opens(o *Object) {
	if !w.inSpace(o.class) && !w.restricted(o) && !o.class.large {
		w.open.set(o.id.slot())
	}
}
