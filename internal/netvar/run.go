package netvar

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// A run is the records of some neighbours, bit by bit, without the gap before the first: what they are for every
// client that has the same marks, and of which these are due.
type run struct {
	notes       []sentRecord // the slots, as packets note them
	records     int
	first, last int // slots
	bits        []byte
	n           uint32 // of them; 0: there is no such run
	kinds       int
	classes     [maxKinds]classBits // the first kinds of them
}

// classBits are the bits of the records of one class.
type classBits struct{ index, bits uint32 }

// runKey says which run it is: what is due, and the marks that it leads from.
type runKey struct {
	mask uint64
	origin
}

const (
	// maxShare bounds a run to a part of a packet: it goes into one, and what is left of the packet before stays empty.
	maxShare = 2
	// maxKinds is how many classes a run may have, for the counts by class.
	maxKinds = 4
	// maxRuns bounds the runs of 64 slots in a tick: marks, and a few sets of what is due.
	maxRuns = 48
)

// runs are those of 64 slots that this capture has needed.
type runs struct {
	epoch uint64
	shares
	keys [maxRuns]runKey
	runs [maxRuns]run
}

// run returns the records of the steady objects of a mask, or nil when there is none for them together.
func (c *cutter) run(k int, mask uint64) *run {
	w := c.p.w
	if w.tick != c.header.Tick || mask&c.p.marks.lackedBy(c.origin, k) != 0 {
		return nil
	}
	for len(w.runs) <= k {
		w.runs = append(w.runs, nil)
	}
	if w.runs[k] == nil {
		w.runs[k] = new(runs)
	}
	s := w.runs[k]
	if s.epoch != w.tick {
		s.epoch = w.tick
		s.reset()
	}
	key, others := runKey{mask, c.origin}, false
	for i := range s.list {
		if s.keys[i] == key {
			s.ask(i, w.stats.Snapshots)
			return s.runs[i].unless(c.room / maxShare)
		}
		others = others || s.keys[i].origin == key.origin
	}
	var r *run
	if i := s.admit(maxRuns, w.crowds.of(c.origin), w.stats.Snapshots); i >= 0 {
		r, s.keys[i] = &s.runs[i], key
	} else {
		r = w.lone()
	}
	r.begin()
	r.add(k, mask)
	w.fillRun(r, key, others)
	return r.unless(c.room / maxShare)
}

// begin empties a run.
func (r *run) begin() { *r = run{notes: r.notes[:0], bits: r.bits[:0]} }

// add adds slots behind those that it has.
func (r *run) add(k int, mask uint64) {
	if len(r.notes) == 0 {
		r.first = k<<6 + bits.TrailingZeros64(mask)
	}
	r.notes = append(r.notes, sentRecord{version: newestThen, mask: mask, block: uint32(k)})
	r.records += bits.OnesCount64(mask)
	r.last = k<<6 + bits.Len64(mask) - 1
}

// unless returns the run if there is one that has at most so many bits.
func (r *run) unless(most int) *run {
	if r.n == 0 || int(r.n) > most {
		return nil
	}
	return r
}

// fillRun encodes a run. Where several sets of the same objects are due, each object is encoded by itself
// and kept; where one is due to all, that would only take memory.
func (w *World) fillRun(r *run, key runKey, keep bool) {
	b, x := &w.runBits, context{tick: w.tick, prev: -1}
	b.Reset(b.Bytes()[:0])
	from := basis{at: key.at, from: key.from}
	var d delta
	for m := key.mask; m != 0; m &= m - 1 {
		slot := r.first&^63 + bits.TrailingZeros64(m)
		o, start := w.slots[slot], b.Len()
		head := recordHead{Kind: recordDelta, Slot: slot, Version: o.changed}
		if x.prev < 0 { // the gap depends on what is before it in the packet
			x.prev = slot
			x.putKind(b, &head)
		} else {
			x.putHead(b, &head)
		}
		if keep {
			one := w.residual(o, from)
			if one == nil {
				return
			}
			b.PutBits(w.bitsOf(one))
		} else {
			if !d.find(w, o, from) {
				return
			}
			o.class.plan.PutDelta(b, &d.now, &d.then, &d.trend)
			w.stats.Encoded++
		}
		if !r.count(uint32(o.class.index), uint32(b.Len()-start)) || b.Len() > 8*MaxPacket/maxShare {
			return // it would go nowhere
		}
	}
	r.keep(b)
}

// keep makes what was put together the run.
func (r *run) keep(b *wire.BitWriter) {
	r.n = uint32(b.Len())
	b.Flush()
	if cap(r.bits) == 0 {
		r.bits = make([]byte, 0, MaxPacket/maxShare+8) // what any run may take
	}
	r.bits = append(r.bits, b.Bytes()...)
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

// putRun writes a run into the open packet if it fits. If not, nothing has changed.
func (c *cutter) putRun(n *candidate) bool {
	r := n.run
	start, at := c.open.Mark(), c.open.Len()
	c.open.PutRice(uint64(r.first-c.context.prev-1), gapRice)
	if c.open.Len()+int(r.n) > c.room || int(r.n) > c.left {
		c.open.Rewind(start)
		return false
	}
	gap := c.open.Len() - at
	c.open.PutBits(r.bits, int(r.n))
	c.context.prev = r.last
	n.size = uint32(gap) + r.n
	c.left -= int(n.size)
	return true
}

// commitRun remembers that a run was sent.
func (c *cutter) commitRun(n *candidate) {
	p, r := c.p, n.run
	st, spent := &p.w.stats, &p.w.spent
	st.Records += uint64(r.records)
	st.Deltas += uint64(r.records)
	st.InRuns += uint64(r.records)
	spent.classes[r.classes[0].index] += uint64(n.size-r.n) + uint64(r.classes[0].bits)
	for i := 1; i < r.kinds; i++ {
		spent.classes[r.classes[i].index] += uint64(r.classes[i].bits)
	}
	for i := range r.notes {
		k, mask := int(r.notes[i].block), r.notes[i].mask
		p.waiting.add(k, mask&p.once.word(k))
		p.once.add(k, mask)
	}
	s := p.flight.at(c.first + uint64(n.packet))
	s.records = append(s.records, r.notes...)
	if spent.gap > uint32(r.records) {
		spent.gap -= uint32(r.records)
		return
	}
	c.sample(&candidate{slot: uint32(r.slot(int(spent.gap) - 1)), rank: rankOwed, steady: true})
}

// slot returns the slot of the n-th record.
func (r *run) slot(n int) int {
	for i := range r.notes {
		m := r.notes[i].mask
		if some := bits.OnesCount64(m); n >= some {
			n -= some
			continue
		}
		for range n {
			m &= m - 1
		}
		return int(r.notes[i].block)<<6 + bits.TrailingZeros64(m)
	}
	return r.last
}
