package netvar

import (
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/wire"
)

// run is the records of some neighbours as bits, without the gap before the first of them. They are
// the same for every client to whom the same of these slots are due and who leads from the same
// marks.
type run struct {
	note        sentRecord // the slots, as packets note them
	records     int        // how many there are
	first, last int        // the first and the last slot
	bits        []byte
	size        uint32   // how many bits there are; 0 if the records are too many for one run
	ends        []uint16 // where each record ends, in bits: for splice
	kinds       int      // how many classes there are
	classes     [maxKinds]classBits
	whole       *run    // of which it is copied but for the patches, whose bits it has; mostly nil
	patches     []patch // in the order of their slots
}

// classBits is how many bits the records of one class take.
type classBits struct{ index, bits uint32 }

// runKey tells the runs of 64 slots from each other: by what is due, by what the records lead from,
// and by what may not be read.
type runKey struct {
	mask uint64
	origin
	views [maxViews]masked
}

const (
	// maxShare is how many of the largest runs fit into a packet. A run goes into one packet, and
	// what is left of the packet before it stays empty.
	maxShare = 2
	// maxKinds is how many classes a run may have, because bytes are counted by class.
	maxKinds = 4
	// widthTicks is after how many ticks longer runs are tried again where records were large.
	widthTicks = 64
	// maxRuns is how many runs of 64 slots are kept in a tick: a few sets of what is due for each
	// of a dozen marks.
	maxRuns = 48
)

// blockRuns are the runs of 64 slots that clients have asked for since the last capture.
type blockRuns struct {
	epoch uint64
	width int // over how many slots a run may extend: over fewer where records are large
	// The same of runs of full records.
	fullWidth int
	places
	keys      [maxRuns]runKey
	lastViews [maxRuns][maxViews]masked // with what views each run was spliced last: see askedAgain
	runs      [maxRuns]run
}

// mostBits returns how many bits a run may have in packets of so many bits. A run of fewer than 64
// slots may have half as many: the smaller runs are, the less of a packet stays empty.
func mostBits(room, width int) int {
	if width < 64 {
		return (room - 8*maxHeader) / maxShare / 2
	}
	return (room - 8*maxHeader) / maxShare
}

// addRuns lists some of 64 slots that are due. All of them are steady, and none of them is missing.
// It lists one run, or halves of it where the run is too large, or halves of these.
func (c *cutter) addRuns(k int, due uint64) {
	w := c.p.w
	full := c.runBits > min(c.lim.Packets*c.room, c.left) // then everything is gathered singly
	if full || w.tick != c.header.Tick {
		c.addSteady(k, due)
		return
	}
	width := w.runsOf(k).width
	for ; due != 0; due &^= neighbours(due, width) {
		c.addRunOrHalves(k, due&neighbours(due, width), width)
	}
}

// neighbours returns the mask of width slots, a power of two, among which the first slot of a mask
// is.
func neighbours(mask uint64, width int) uint64 {
	return ^uint64(0) >> (64 - width) << (bits.TrailingZeros64(mask) &^ (width - 1))
}

// addRunOrHalves lists what is due of width slots.
func (c *cutter) addRunOrHalves(k int, due uint64, width int) {
	r := c.findRun(k, due, width)
	switch half := width / 2; {
	case r.size > 0 && int(r.size) <= mostBits(c.room, width):
		c.addRun(r)
	case half == 1: // a run of one record would be no better
		c.addSteady(k, due)
	default:
		if s := c.p.w.runs[k]; r.size == 0 { // it is too large for every client
			s.width = min(s.width, half)
		}
		for ; due != 0; due &^= neighbours(due, half) {
			c.addRunOrHalves(k, due&neighbours(due, half), half)
		}
	}
}

// findRun returns the run of some of 64 slots: one that is kept, or a new one. The new one is
// made out of a kept run that differs in its views alone, if there is one, and encoded otherwise.
func (c *cutter) findRun(k int, mask uint64, width int) *run {
	w := c.p.w
	s := w.runsOf(k)
	views, few := c.p.views.among(k, mask)
	key, donor, others := runKey{mask: mask, origin: c.origin, views: views}, -1, false
	for i := range s.by {
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
	place := -1
	if few && (donor < 0 || s.askedAgain(donor, &views)) {
		place = s.admit(maxRuns, w.stats.Snapshots)
	}
	if place == donor {
		donor = -1 // the donor has made room for the new run
	}
	var r *run
	if place < 0 {
		r = w.unsharedRun()
	} else {
		r, s.keys[place], s.lastViews[place] = &s.runs[place], key, [maxViews]masked{}
	}
	r.begin(k, mask)
	most := mostBits(8*MaxPacket, width)
	if donor < 0 {
		c.encodeRun(r, mask, most, others)
		return r
	}
	from, other := &s.runs[donor], c.p.views.others(k, &s.keys[donor])
	switch {
	case from.size == 0: // the records are too many with any views
	case place < 0:
		s.ask(donor, w.stats.Snapshots)
		c.patchFrom(r, from, mask, other, most)
	default:
		c.splice(r, from, mask, other, most)
	}
	return r
}

// runsOf returns the runs of 64 slots since the last capture.
func (w *World) runsOf(k int) *blockRuns {
	for len(w.runs) <= k {
		w.runs = append(w.runs, nil)
	}
	if w.runs[k] == nil {
		w.runs[k] = new(blockRuns)
	}
	s := w.runs[k]
	if s.epoch != w.tick {
		if s.width == 0 || w.tick%widthTicks == 0 {
			s.width, s.fullWidth = 64, 64
		}
		s.epoch = w.tick
		s.reset()
	}
	return s
}

// askedAgain reports whether the last run that was spliced out of a donor had these views too. What
// only one client may read, such as what it owns, thus takes no place.
func (s *blockRuns) askedAgain(donor int, views *[maxViews]masked) bool {
	if s.lastViews[donor] == *views {
		return true
	}
	s.lastViews[donor] = *views
	return false
}

// begin empties the run, for some of 64 slots.
func (r *run) begin(k int, mask uint64) {
	*r = run{bits: r.bits[:0], ends: r.ends[:0], patches: r.patches[:0]}
	r.note = sentRecord{version: newestThen, mask: mask, block: uint32(k)}
	r.records = bits.OnesCount64(mask)
	r.first, r.last = k<<6+bits.TrailingZeros64(mask), k<<6+bits.Len64(mask)-1
}

// encodeRun encodes a run. If there are other runs of the same origin, each object is encoded by
// itself and its bits are kept for them too. If there are none, keeping bits would only take
// memory.
func (c *cutter) encodeRun(r *run, mask uint64, most int, keep bool) {
	w := c.p.w
	b, x := &w.runBits, context{tick: w.tick, prev: -1}
	b.Reset(b.Bytes()[:0])
	var d delta
	for m := mask; m != 0; m &= m - 1 {
		slot := r.first&^63 + bits.TrailingZeros64(m)
		o, start := w.slots[slot], b.Len()
		from := c.origin.basis(c.p.views.withheld(slot))
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
		if !r.addBits(uint32(o.class.index), uint32(b.Len()-start)) || b.Len() > most {
			return // no packet would take it
		}
	}
	r.finish(b)
}

// putNext writes the head of the next record of a run.
func (x *context) putNext(b *wire.BitWriter, o *Object, from basis) {
	head := recordHead{Kind: recordDelta, Slot: o.id.slot(), Version: view{withheld: from.withheld}.version(o)}
	if x.prev < 0 { // the gap before it depends on the packet
		x.prev = head.Slot
		x.putKind(b, &head)
	} else {
		x.putHead(b, &head)
	}
}

// finish makes the bits that were put together the run.
func (r *run) finish(b *wire.BitWriter) {
	r.size = uint32(b.Len())
	b.Flush()
	// A writer takes eight at once.
	r.bits = append(slices.Grow(r.bits, len(b.Bytes())+8), b.Bytes()...)
}

// addBits counts the bits of a record by its class. It reports false if there are too many classes.
func (r *run) addBits(class, n uint32) bool {
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

// putRun writes a run into the open packet if it fits there, and changes nothing if it does not.
func (c *cutter) putRun(n *candidate) bool {
	r := n.run
	start, before := c.open.Mark(), c.open.Len()
	putGap(&c.open, r.first-c.context.prev-1)
	if c.open.Len()+int(r.size) > c.room || int(r.size) > c.left {
		c.open.Rewind(start)
		return false
	}
	gap := c.open.Len() - before
	r.put(&c.open)
	c.context.prev = r.last
	n.size = uint32(gap) + r.size
	c.left -= int(n.size)
	return true
}

// commitRun notes that a run was sent.
func (c *cutter) commitRun(n *candidate) {
	p, r := c.p, n.run
	st := &p.w.stats
	st.Records += uint64(r.records)
	st.Deltas += uint64(r.records)
	st.InRuns += uint64(r.records)
	k, mask := int(r.note.block), r.note.mask
	p.sentTwice.add(k, mask&p.sentOnce.word(k))
	p.sentOnce.add(k, mask)
	s := p.flight.packet(c.first + uint64(n.packet))
	s.records = append(s.records, r.note)
	c.spendRun(n)
}

// spendRun counts the bits of a run.
func (c *cutter) spendRun(n *candidate) {
	r, spent := n.run, &c.p.w.spent
	spent.classes[r.classes[0].index] += uint64(n.size-r.size) + uint64(r.classes[0].bits)
	for _, s := range r.classes[1:r.kinds] {
		spent.classes[s.index] += uint64(s.bits)
	}
	if spent.gap > uint32(r.records) {
		spent.gap -= uint32(r.records)
		return
	}
	c.sample(&candidate{slot: uint32(r.slot(int(spent.gap) - 1)), rank: rankOwed, steady: !n.full, full: n.full})
}

// slot returns the slot of the n-th record.
func (r *run) slot(n int) int {
	m := r.note.mask
	for range n {
		m &= m - 1
	}
	return int(r.note.block)<<6 + bits.TrailingZeros64(m)
}
