package netvar

import (
	"cmp"
	"slices"
)

// The rules that a client may not read are the same for many clients and objects: each of a hundred
// players may read its own object fully and the others in part. So they are stored per block of 64
// slots, as sets of slots with the same withheld rules, and operations on neighbouring slots use
// these sets.

// view is the readable part of an object for a client, and since when. The zero view is all fields
// since the lifetime began.
type view struct {
	since    uint64 // tick of the last change of the view within the lifetime, 0 = none
	withheld Rules
}

// masked is the set of slots of a block of which the client is withheld the same rules.
type masked struct {
	slots    uint64
	withheld Rules
}

// views are the views of one client. They are empty for a client that may read all fields.
type views struct {
	blocks [][]masked // by block, sorted by withheld, which is not 0
	turned bitset     // slots with a change of view within the lifetime
	since  []uint64   // by slot: tick of that change
}

// block returns the views of a block, without the slots of which all fields may be read.
func (s *views) block(k int) []masked {
	if k < len(s.blocks) {
		return s.blocks[k]
	}
	return nil
}

// withheld returns the rules withheld of a slot.
func (s *views) withheld(slot int) Rules {
	for _, m := range s.block(slot >> 6) {
		if m.slots>>(slot&63)&1 != 0 {
			return m.withheld
		}
	}
	return 0
}

// set sets the rules withheld of a slot.
func (s *views) set(slot int, withheld Rules) {
	k, bit := slot>>6, uint64(1)<<(slot&63)
	list := s.block(k)
	for i := range list {
		if list[i].slots &^= bit; list[i].slots == 0 {
			list = slices.Delete(list, i, i+1)
			s.blocks[k] = list
			break
		}
	}
	if withheld == 0 {
		return
	}
	for len(s.blocks) <= k {
		s.blocks = append(s.blocks, nil)
	}
	i, there := slices.BinarySearchFunc(list, withheld, func(m masked, w Rules) int { return cmp.Compare(m.withheld, w) })
	if !there {
		list = slices.Insert(list, i, masked{withheld: withheld})
	}
	list[i].slots |= bit
	s.blocks[k] = list
}

// turn records that the view of a slot changes within its lifetime.
func (s *views) turn(slot int, tick uint64) {
	for len(s.since) <= slot {
		s.since = append(s.since, 0)
	}
	s.since[slot] = tick
	s.turned.set(slot)
}

// end removes the view of a slot at the end of its lifetime.
func (s *views) end(slot int) {
	s.set(slot, 0)
	s.turned.unset(slot)
}

// maxViews bounds the sets of rules in one run. Runs with more are not shared.
const maxViews = 3

// among returns the views of the masked slots of a block. It reports false if there are too many.
func (s *views) among(k int, mask uint64) (list [maxViews]masked, ok bool) {
	n := 0
	for _, m := range s.block(k) {
		if m.slots &= mask; m.slots == 0 {
			continue
		}
		if n == maxViews {
			return list, false
		}
		list[n] = m
		n++
	}
	return list, true
}

// view returns the view of a slot: mostly the zero view, which is all fields.
func (p *Peer) view(slot int) view {
	v := view{withheld: p.views.withheld(slot)}
	if p.views.turned.has(slot) {
		v.since = p.views.since[slot]
	}
	return v
}

// beginView evaluates the readable fields of an object at the start of its lifetime for a client.
func (w *World) beginView(o *Object, p *Peer) {
	if w.restricted(o) {
		p.views.set(o.id.slot(), w.withheld(o, p))
	}
}

// review evaluates again which fields a client may read of an object that it has.
func (w *World) review(o *Object, p *Peer) {
	if !w.restricted(o) {
		return
	}
	slot := o.id.slot()
	withheld := w.withheld(o, p)
	if withheld == p.views.withheld(slot) {
		return
	}
	e := p.detailed(slot)
	p.views.set(slot, withheld)
	p.views.turn(slot, w.tick)
	e.forget()
	e.sent, e.full = 0, fullMasked
	p.owed.set(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
	w.stats.Masked++
}

// version returns the tick of the newest change in the view, and at least the tick at which the
// view changed: versions never decrease within a lifetime.
func (v view) version(o *Object) uint64 {
	if v.withheld == 0 {
		return max(v.since, o.changed)
	}
	newest := max(v.since, o.fields[0])
	for i, rule := range o.class.reads.rule {
		if v.withheld>>rule&1 == 0 {
			newest = max(newest, o.fields[1+i])
		}
	}
	return newest
}

// asOf returns the version that the view had at a tick, or 0 if it cannot be derived any more.
// Versions with equal readable fields count as one, and the first of them may be dropped.
func (v view) asOf(o *Object, tick uint64) uint64 {
	if tick < v.since {
		return 0
	}
	if newest := v.version(o); newest <= tick {
		return newest
	}
	i := o.floor(tick, v.withheld)
	if i < 0 {
		return 0
	}
	if v.withheld != 0 {
		for i > 0 && o.class.looksSame(&o.hist, i, i-1, v.withheld) {
			i--
		}
		if first := o.hist.tick(0); i == 0 && o.hist.evicted && first != o.born && first > v.since {
			return 0
		}
		if i == 0 {
			return max(v.since, o.oldest(v.withheld))
		}
	}
	return max(v.since, o.hist.tick(i))
}

// noteDropped compares the versions that the capture of a tick is about to drop with their
// successors. It updates began, the tick since which the oldest kept version has its values.
func (o *Object) noteDropped(tick uint64) {
	if o.began == nil {
		o.began = make([]uint64, len(o.class.reads.rules))
		for rule := range o.began {
			o.began[rule] = o.born
		}
	}
	h, c := &o.hist, o.class
	for i := 1; i < int(h.n) && h.tick(i)+Horizon <= tick; i++ {
		a, b := h.values(i-1), h.values(i)
		if c.owner(&a) != c.owner(&b) {
			o.began[0] = h.tick(i)
		}
		for leaf, rule := range c.reads.rule {
			if !c.plan.Same(leaf, &a, &b) {
				o.began[rule] = h.tick(i)
			}
		}
	}
}

// oldest returns the tick since which the readable fields have the values of the oldest kept
// version. Changes of other fields do not count, so they do not drop a baseline of the client.
func (o *Object) oldest(withheld Rules) (tick uint64) {
	if o.began == nil {
		return o.born
	}
	for rule, began := range o.began {
		if withheld>>rule&1 == 0 {
			tick = max(tick, began)
		}
	}
	return tick
}

// floor returns the index of the version that was the newest at a tick, as history.floor does. If
// that is dropped, it is the oldest kept version, provided that its readable fields are the same
// since the tick.
func (o *Object) floor(tick uint64, withheld Rules) int {
	i := o.hist.floor(tick, o.changed)
	if i < 0 && withheld != 0 && !o.hist.evicted && tick >= o.oldest(withheld) {
		return 0
	}
	return i
}

// readable returns the members of moved, the objects with a new version, with a change that the
// client may read. The result is valid until the next call for any client.
func (p *Peer) readable(moved bitset) bitset {
	if len(p.views.blocks) == 0 {
		return moved
	}
	w := p.w
	seen := append(w.reading.moved[:0], moved...)
	for k := range min(len(moved), len(p.views.blocks)) {
		seen[k] = unhidden(moved[k], w.reading.news, k, p.views.blocks[k])
	}
	w.reading.moved = seen
	return seen
}

// unhidden returns the changed slots of a block with a readable change. moved has all changed
// slots, news has them by rule.
func unhidden(moved uint64, news []bitset, k int, list []masked) uint64 {
	for _, m := range list {
		if moved&m.slots == 0 {
			continue
		}
		seen := uint64(0)
		for rule, b := range news {
			if m.withheld>>rule&1 == 0 {
				seen |= b.word(k)
			}
		}
		moved &^= m.slots &^ seen
	}
	return moved
}
