package netvar

import (
	"math/bits"
	"slices"
)

// Where little changes, the records that are due in a snapshot are few, and the same for all clients alike. From the third of these
// on they are one run for all slots together.

const (
	// maxBundle is how many records are few: of more, the runs of 64 slots are long enough.
	maxBundle = 64
	// maxBundles bounds the sets of what is due in a tick.
	maxBundles = 16
)

// bundle is all that is due to some clients.
type bundle struct {
	origin origin
	hash   uint64 // of due
	due    bitset
	views  []blockView // of due
	asked  int         // for a run: what few clients need is not put together
	run    run
}

// blockView is what may not be read of some slots in a block.
type blockView struct {
	block int
	masked
}

// bundles are those that this capture has needed.
type bundles struct {
	epoch uint64
	shares
	all [maxBundles]bundle
}

// bundle returns what is due, if it is little, all of it is steady, and there is room to remember it.
func (c *cutter) bundle() *bundle {
	p, w := c.p, c.p.w
	if c.header.HasDigest || w.tick != c.header.Tick || len(p.marks.holes) > 0 {
		return nil
	}
	c.due, c.views = c.due[:0], c.views[:0]
	count, hash := 0, uint64(fnvStart)
	for k := range p.owed {
		due := c.isDue(k)
		if due != 0 {
			if count += bits.OnesCount64(due); count > maxBundle || p.makeSteady(k, due) != due {
				return nil
			}
			hash = (hash ^ due ^ uint64(k)) * fnvPrime
			for _, m := range p.views.block(k) {
				if m.slots &= due; m.slots != 0 {
					c.views = append(c.views, blockView{k, m})
				}
			}
		}
		c.due = append(c.due, due)
	}
	s := &w.bundles
	if s.epoch != w.tick {
		s.epoch = w.tick
		s.reset()
	}
	for i := range s.list {
		if a := &s.all[i]; a.hash == hash && a.origin == c.origin && slices.Equal(a.due, c.due) && slices.Equal(a.views, c.views) {
			s.ask(i, w.stats.Snapshots)
			a.asked++
			return a
		}
	}
	if count == 0 {
		return nil
	}
	i := s.admit(maxBundles, w.crowds.sharing(c.origin), w.stats.Snapshots)
	if i < 0 {
		return nil
	}
	a := &s.all[i]
	a.origin, a.hash, a.due, a.asked = c.origin, hash, append(a.due[:0], c.due...), 1
	a.views = append(a.views[:0], c.views...)
	a.run.begin()
	return a
}

// put puts the runs of a snapshot together, if it has nothing else.
func (a *bundle) put(c *cutter) {
	r, b := &a.run, &c.p.w.runBits
	b.Reset(b.Bytes()[:0])
	for i := range c.list {
		one := c.list[i].run
		if one == nil || b.Len()+int(one.n) > c.room/maxShare {
			return
		}
		start := b.Len()
		if i > 0 {
			b.PutRice(uint64(one.first-r.last-1), gapRice)
		}
		gap := uint32(b.Len() - start)
		b.PutBits(one.bits, int(one.n))
		for j := range one.notes {
			r.add(int(one.notes[j].block), one.notes[j].mask)
		}
		for _, s := range one.classes[:one.kinds] {
			if !r.count(s.index, s.bits+gap) {
				return
			}
			gap = 0
		}
	}
	r.keep(b)
}
