package netvar

import (
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/wire"
)

// A run is the records of some neighbours, bit by bit, without the gap before the first: what they are for every
// client that has the same marks, and of which these are due.
type run struct {
	notes       []sentRecord // the slots, as packets note them
	records     int
	first, last int // slots
	bits        []byte
	n           uint32   // of them; 0: there is no such run
	ends        []uint16 // of the records, in bits: for splice
	kinds       int
	classes     [maxKinds]classBits // the first kinds of them
}

// classBits are the bits of the records of one class.
type classBits struct{ index, bits uint32 }

// runKey says which run it is: what is due, the marks that it leads from, and what of it may not be read.
type runKey struct {
	mask uint64
	origin
	views [maxViews]masked
}

const (
	// maxShare is how many of the largest runs fit into a packet: each goes into one, and what is left of the packet before stays empty.
	maxShare = 2
	// maxKinds is how many classes a run may have, for the counts by class.
	maxKinds = 4
	// widthTicks is after how many ticks at most records that were large are tried in longer runs again.
	widthTicks = 64
	// maxRuns bounds the runs of 64 slots in a tick: marks, and a few sets of what is due.
	maxRuns = 48
)

// runs are those of 64 slots that this capture has needed.
type runs struct {
	epoch uint64
	width int // how many slots in a row a run may have: fewer where records are large
	shares
	keys    [maxRuns]runKey
	refused [maxRuns][maxViews]masked // the views that were last made out of each: see wanted
	runs    [maxRuns]run
}

// mostBits is how many a run may have in packets of so many bits. Of parts more go into a packet: less of it stays empty.
func mostBits(room, width int) int {
	if width < 64 {
		return (room - 8*maxHeader) / maxShare / 2
	}
	return (room - 8*maxHeader) / maxShare
}

// addRuns lists what is due of 64 slots, all of it steady: as one run, or as halves of it, and halves of these, where it is too large.
func (c *cutter) addRuns(k int, due uint64) {
	w := c.p.w
	full := c.long > min(c.lim.Packets*c.room, c.left) // then all are gathered anew: see apart
	if full || w.tick != c.header.Tick || due&c.p.marks.missingIn(c.origin, k) != 0 {
		c.addSteady(k, due)
		return
	}
	width := w.runsOf(k).width
	for ; due != 0; due &^= neighbours(due, width) {
		c.addPart(k, due&neighbours(due, width), width)
	}
}

// neighbours are so many slots in a row, a power of two, among which the first of a mask is.
func neighbours(mask uint64, width int) uint64 {
	return ^uint64(0) >> (64 - width) << (bits.TrailingZeros64(mask) &^ (width - 1))
}

// addPart lists what is due of so many slots in a row.
func (c *cutter) addPart(k int, due uint64, width int) {
	r := c.run(k, due, width)
	switch half := width / 2; {
	case r.n > 0 && int(r.n) <= mostBits(c.room, width):
		c.addRun(r)
	case half == 1: // a run of one would be no better
		c.addSteady(k, due)
	default:
		if s := c.p.w.runs[k]; r.n == 0 { // for any client
			s.width = min(s.width, half)
		}
		for ; due != 0; due &^= neighbours(due, half) {
			c.addPart(k, due&neighbours(due, half), half)
		}
	}
}

// run returns the records of the steady objects of a mask, which is empty if they are too many for one run.
func (c *cutter) run(k int, mask uint64, width int) *run {
	w := c.p.w
	s := w.runsOf(k)
	views, few := c.p.views.among(k, mask)
	key, donor, others := runKey{mask, c.origin, views}, -1, false
	for i := range s.list {
		if s.keys[i].origin != key.origin {
			continue
		}
		if s.keys[i].mask == mask {
			if few && s.keys[i].views == views {
				s.ask(i, w.stats.Snapshots)
				return &s.runs[i]
			}
			donor = i
		}
		others = true
	}
	i := -1
	if few && (donor < 0 || s.wanted(donor, &views)) {
		i = s.admit(maxRuns, w.crowds.sharing(c.origin), w.stats.Snapshots)
	}
	r := w.lone()
	if i >= 0 {
		w.loners--
		r, s.keys[i], s.refused[i] = &s.runs[i], key, [maxViews]masked{}
	}
	if donor == i {
		donor = -1 // it has made room
	}
	r.begin()
	r.add(k, mask)
	switch {
	case donor < 0:
		c.fillRun(r, mask, mostBits(8*MaxPacket, width), others)
	case s.runs[donor].n > 0: // or there is none with other views either
		c.splice(r, &s.runs[donor], &s.keys[donor], mostBits(8*MaxPacket, width))
	}
	return r
}

// runsOf returns what this capture has needed of 64 slots so far.
func (w *World) runsOf(k int) *runs {
	for len(w.runs) <= k {
		w.runs = append(w.runs, nil)
	}
	if w.runs[k] == nil {
		w.runs[k] = new(runs)
	}
	s := w.runs[k]
	if s.epoch != w.tick {
		if s.width == 0 || w.tick%widthTicks == 0 {
			s.width = 64
		}
		s.epoch = w.tick
		s.reset()
	}
	return s
}

// wanted reports whether the last client that had to make its run out of another one, which differs from its own in what may be read, had the same
// views as this one. What only one client may read, such as what it owns, thus takes no place.
func (s *runs) wanted(donor int, views *[maxViews]masked) bool {
	if s.refused[donor] == *views {
		return true
	}
	s.refused[donor] = *views
	return false
}

// begin empties a run.
func (r *run) begin() { *r = run{notes: r.notes[:0], bits: r.bits[:0], ends: r.ends[:0]} }

// add adds slots behind those that it has.
func (r *run) add(k int, mask uint64) {
	if len(r.notes) == 0 {
		r.first = k<<6 + bits.TrailingZeros64(mask)
	}
	r.notes = append(r.notes, sentRecord{version: newestThen, mask: mask, block: uint32(k)})
	r.records += bits.OnesCount64(mask)
	r.last = k<<6 + bits.Len64(mask) - 1
}

// fillRun encodes a run. Where several sets of the same objects are due, each object is encoded by itself
// and kept; where one is due to all, that would only take memory.
func (c *cutter) fillRun(r *run, mask uint64, most int, keep bool) {
	w := c.p.w
	b, x := &w.runBits, context{tick: w.tick, prev: -1}
	b.Reset(b.Bytes()[:0])
	var d delta
	for m := mask; m != 0; m &= m - 1 {
		slot := r.first&^63 + bits.TrailingZeros64(m)
		o, start := w.slots[slot], b.Len()
		from := basis{asOf: c.origin.asOf, trendFrom: c.origin.trendFrom, withheld: c.p.views.withheld(slot)}
		x.putNext(b, o, from)
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
		r.ends = append(r.ends, uint16(b.Len()))
		if !r.count(uint32(o.class.index), uint32(b.Len()-start)) || b.Len() > most {
			return // it would go nowhere
		}
	}
	r.keep(b)
}

// putNext writes the head of the next record of a run.
func (x *context) putNext(b *wire.BitWriter, o *Object, from basis) {
	head := recordHead{Kind: recordDelta, Slot: o.id.slot(), Version: view{withheld: from.withheld}.version(o)}
	if x.prev < 0 { // the gap depends on what is before it in the packet
		x.prev = head.Slot
		x.putKind(b, &head)
	} else {
		x.putHead(b, &head)
	}
}

// keep makes what was put together the run.
func (r *run) keep(b *wire.BitWriter) {
	r.n = uint32(b.Len())
	b.Flush()
	r.bits = append(slices.Grow(r.bits, len(b.Bytes())+8), b.Bytes()...) // putRange reads eight at once
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
		p.sentTwice.add(k, mask&p.sentOnce.word(k))
		p.sentOnce.add(k, mask)
	}
	s := p.flight.packet(c.first + uint64(n.packet))
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
