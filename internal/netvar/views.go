package netvar

import (
	"cmp"
	"slices"
)

// What a client may not read of its objects is the same for many clients and many objects: of a
// hundred players each reads one and is withheld the same of the others. So it is kept by 64 slots,
// as sets of slots of which the same is withheld, and whatever is done for neighbours at once is
// done with these sets.

// view is what a client has of an object, where that is not simply everything since its lifetime
// began.
type view struct {
	since    uint64 // tick at which it changed, or a hidden object was shown; 0 = it did not
	withheld Rules
}

// masked are those of 64 slots of which a client is withheld the same rules.
type masked struct {
	slots    uint64
	withheld Rules
}

// views are those of one client. A client without any pays for none.
type views struct {
	blocks [][]masked // by 64 slots: in the order of withheld, which is not 0
	turned bitset     // slots of which the view has changed within the lifetime
	since  []uint64   // by slot: when
}

// block returns the views of 64 slots, but for those of which everything may be read.
func (s *views) block(k int) []masked {
	if k < len(s.blocks) {
		return s.blocks[k]
	}
	return nil
}

// of returns what is withheld of a slot.
func (s *views) withheld(slot int) Rules {
	for _, m := range s.block(slot >> 6) {
		if m.slots>>(slot&63)&1 != 0 {
			return m.withheld
		}
	}
	return 0
}

// set says what is withheld of a slot.
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

// turn notes that the view of a slot changes within its lifetime.
func (s *views) turn(slot int, tick uint64) {
	for len(s.since) <= slot {
		s.since = append(s.since, 0)
	}
	s.since[slot] = tick
	s.turned.set(slot)
}

// end forgets the view of a slot whose lifetime ends.
func (s *views) end(slot int) {
	s.set(slot, 0)
	s.turned.unset(slot)
}

// maxViews is how many sets of rules may be withheld in one run: others are not shared.
const maxViews = 3

// among returns the views of some of 64 slots, or reports that there are too many.
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

// view returns what a client has of the object in a slot: mostly everything, which is the zero
// view.
func (p *Peer) view(slot int) view {
	v := view{withheld: p.views.withheld(slot)}
	if p.views.turned.has(slot) {
		v.since = p.views.since[slot]
	}
	return v
}

// beginView judges what a client may read of an object whose lifetime there begins.
func (w *World) beginView(o *Object, p *Peer) {
	if w.restricted(o) {
		p.views.set(o.id.slot(), w.withheld(o, p))
	}
}

// review judges what a client may read of an object that it has.
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

// version is the tick of the newest change in what the view shows, and at least the tick at which
// the view changed: versions never go back within a lifetime.
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

// at is the version that the view had as of a tick, or 0 if nobody knows any more: versions that
// look the same to it are one, of which the first may be gone.
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

// noteDropped compares the versions that the capture of a tick is about to drop with those after
// them, so that oldest knows since when the oldest kept version looks as it does.
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

// oldest returns the tick since which the oldest kept version looks to a client as it does. Changes
// that the client may not read do not count, so they do not drop a baseline of the client.
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

// floor returns which version was the newest at a tick, as history.floor does. If that is dropped,
// it is the oldest one for a client to which the object has looked like that since the tick.
func (o *Object) floor(tick uint64, withheld Rules) int {
	i := o.hist.floor(tick, o.changed)
	if i < 0 && withheld != 0 && !o.hist.evicted && tick >= o.oldest(withheld) {
		return 0
	}
	return i
}

// readable returns the members of moved, objects with a new version, in which the client may read
// what has changed. They are valid until the next call for any client.
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

// unhidden returns those of 64 slots that have changed in something that may be read, of all that
// have changed and of the news by rule.
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
