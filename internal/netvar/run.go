package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// run is the records of a block, bit by bit, without the gap before the first: what they are for every
// client that knows the same of all of them.
type run struct {
	mask        uint64
	basis       basis  // of all
	base, older uint64 // the versions that each of them leads from
	off         uint32 // in the arena, in bytes
	n           uint32 // bits; 0: the members lead from several versions
	kinds       int
	classes     [maxKinds]classBits // the first kinds of them
}

// classBits are the bits of the records of one class.
type classBits struct{ index, bits uint32 }

const (
	// maxKinds is how many classes a run may have, for the counts by class.
	maxKinds = 4
	// maxRuns bounds the runs of one block in a tick: baselines, and a few sets of members.
	maxRuns = 48
)

// runs are those of one block that this capture has needed.
type runs struct {
	epoch uint64
	n     int
	list  [maxRuns]run
}

// run returns the records of the objects of a mask, all of which have a version of this tick, from one basis. It returns nil when
// there is none for them together.
func (w *World) run(k int, mask uint64, from basis) *run {
	for len(w.runs) <= k {
		w.runs = append(w.runs, nil)
	}
	if w.runs[k] == nil {
		w.runs[k] = new(runs)
	}
	c := w.runs[k]
	if c.epoch != w.tick {
		c.epoch, c.n = w.tick, 0
	}
	for i := range c.n {
		if r := &c.list[i]; r.mask == mask && r.basis == from {
			if r.n == 0 {
				return nil
			}
			return r
		}
	}
	if c.n == maxRuns {
		return nil
	}
	r := &c.list[c.n]
	*r = run{mask: mask, basis: from}
	c.n++
	if !w.fillRun(r, k, from) {
		r.n = 0
		return nil
	}
	return r
}

// fillRun encodes a run, or reports that there is none.
func (w *World) fillRun(r *run, k int, from basis) bool {
	r.off = uint32(len(w.arena))
	w.bits.Reset(w.arena)
	head := recordHead{Kind: recordDelta, Version: w.tick}
	if from.exact {
		head.Base = from.at
	}
	var kind wire.BitWriter // the same for all
	x := context{tick: w.tick}
	x.putKind(&kind, &head)
	code, size := kind.Few()
	var d delta
	last := -1
	for m := r.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		o, start := w.slots[k<<6+i], w.bits.Len()
		if !d.find(w, o, from) || last >= 0 && (d.base != r.base || d.older != r.older) {
			return false
		}
		r.base, r.older = d.base, d.older
		if last >= 0 {
			w.bits.PutRice(uint64(i-last-1), gapRice)
		}
		last = i
		w.bits.Put(code, size)
		o.class.plan.PutDelta(&w.bits, &d.now, &d.then, &d.trend)
		if !r.count(uint32(o.class.index), uint32(w.bits.Len()-start)) {
			return false
		}
		w.stats.Encoded++
		if w.bits.Len()-int(8*r.off) > 8*MaxPacket/maxShare {
			return false // it would go nowhere, and fill the arena with large values
		}
	}
	r.n = uint32(w.bits.Len()) - 8*r.off
	w.bits.Flush()
	w.arena = w.bits.Bytes()
	return true
}

// count adds the bits of a record, or reports that there are too many classes.
func (r *run) count(class, n uint32) bool {
	for i := range r.kinds {
		if r.classes[i].index == class {
			r.classes[i].bits += n
			return true
		}
	}
	if r.kinds == maxKinds {
		return false
	}
	r.classes[r.kinds] = classBits{class, n}
	r.kinds++
	return true
}
