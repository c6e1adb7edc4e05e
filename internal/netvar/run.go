package netvar

import (
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// run holds the encoded records of neighbouring slots, without the gap before the first record. It
// is the same for all clients with the same due slots, the same origin and the same views.
type run struct {
	note        sentRecord // the slots, in the form that packets store
	records     int        // number of records
	first, last int        // the first and the last slot
	bits        []byte
	size        uint32   // number of bits; 0 if the records do not fit one run
	ends        []uint16 // end of each record, in bits: for patchFrom
	kinds       int      // number of classes
	classes     [maxKinds]classBits
	whole       *run    // source of all bits except those of the patches; usually nil
	patches     []patch // by slot
}

// classBits is the number of bits in a run's records of one class.
type classBits struct{ index, bits uint32 }

// runKey identifies a run of a block: due slots, origin, and withheld rules.
type runKey struct {
	mask uint64
	packet.Origin
	views [interest.MaxViews]interest.Masked
}

const (
	// maxShare is the number of runs of the largest size that fit a packet. A run is not split
	// between packets, so the end of a packet may remain empty.
	maxShare = 2
	// maxKinds bounds the classes in a run, because the bytes of a run are counted by class.
	maxKinds = 4
	// widthTicks is the interval, in ticks, at which blocks with shortened runs try the full
	// length again.
	widthTicks = 64
	// maxRuns bounds the cached runs of a block in a tick: enough for a few sets of due slots for
	// each of a dozen acked ticks.
	maxRuns = 48
)

// blockRuns is the cache of runs of one block of 64 slots, since the last capture.
type blockRuns struct {
	epoch uint64
	width int // largest number of slots that a run spans: smaller if records are large
	// Largest number of slots that a run of full records spans.
	fullWidth int
	places
	keys [maxRuns]runKey
	// by index of a run: the views for which a run was last derived from it, see askedAgain
	lastViews [maxRuns][interest.MaxViews]interest.Masked
	runs      [maxRuns]run
}

// maxRunBits returns the size limit of a run, in bits, in packets of room bits. For runs of fewer
// than 64 slots the limit is half as large, because with smaller runs less of a packet remains
// empty.
func maxRunBits(room, width int) int {
	if width < 64 {
		return (room - 8*packet.MaxHeader) / maxShare / 2
	}
	return (room - 8*packet.MaxHeader) / maxShare
}

// addRuns lists due slots of a block as one run, or as several smaller runs if that run is too
// large. All slots must have derived baselines and must not be missing as of the origin.
func (c *cutter) addRuns(k int, due uint64) {
	w := c.p.w
	full := c.runBits > min(c.lim.Packets*c.room, c.left) // gatherSingly replaces the list then
	if full || w.tick != c.header.Tick {
		c.addDerived(k, due)
		return
	}
	width := w.runsOf(k).width
	for ; due != 0; due &^= neighbours(due, width) {
		c.addRunOrHalves(k, due&neighbours(due, width), width)
	}
}

// neighbours returns the mask of the aligned group of width slots, a power of two, that includes
// the first slot of a mask.
func neighbours(mask uint64, width int) uint64 {
	return ^uint64(0) >> (64 - width) << (bits.TrailingZeros64(mask) &^ (width - 1))
}

// addRunOrHalves lists the due slots within a group of width slots as one run, or, if that run is
// too large, each half of the group in the same way.
func (c *cutter) addRunOrHalves(k int, due uint64, width int) {
	r := c.findRun(k, due, width)
	switch half := width / 2; {
	case r.size > 0 && int(r.size) <= maxRunBits(c.room, width):
		c.addRun(r)
	case half == 1: // a run of one record has no advantage
		c.addDerived(k, due)
	default:
		if s := c.p.w.runs[k]; r.size == 0 { // such a run is too large for every client
			s.width = min(s.width, half)
		}
		for ; due != 0; due &^= neighbours(due, half) {
			c.addRunOrHalves(k, due&neighbours(due, half), half)
		}
	}
}

// findRun returns a run of masked slots: a cached or a new one. If there is a cached run that
// differs only in its views, a run for one client refers to it; otherwise the run is encoded.
func (c *cutter) findRun(k int, mask uint64, width int) *run {
	w := c.p.w
	s := w.runsOf(k)
	views, few := c.p.Among(k, mask)
	key, donor, others := runKey{mask: mask, Origin: c.origin, views: views}, -1, false
	for i := range s.by {
		if s.keys[i].Origin != key.Origin {
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
		place = s.add(maxRuns, w.stats.Snapshots)
	}
	var r *run
	if place < 0 {
		r = w.unsharedRun()
	} else {
		r, s.keys[place], s.lastViews[place] = &s.runs[place], key, [interest.MaxViews]interest.Masked{}
	}
	r.begin(k, mask)
	most := maxRunBits(8*packet.MaxSize, width)
	if donor < 0 || place >= 0 {
		c.encodeRun(r, mask, most, others)
		return r
	}
	// If the records do not fit a run with the donor's views, they do not fit this one either.
	if from := &s.runs[donor]; from.size > 0 {
		s.ask(donor, w.stats.Snapshots)
		c.patchFrom(r, from, mask, c.p.Others(k, s.keys[donor].mask, &s.keys[donor].views), most)
	}
	return r
}

// runsOf returns the run cache of a block, emptied if it is older than the last capture.
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

// askedAgain reports whether the previous run that was derived from the donor had the same views.
// If not, it stores the views for the next call, and the run is not cached: usually such a run has
// fields that only one client may read, such as those of its own objects, so no other client needs
// it.
func (s *blockRuns) askedAgain(donor int, views *[interest.MaxViews]interest.Masked) bool {
	if s.lastViews[donor] == *views {
		return true
	}
	s.lastViews[donor] = *views
	return false
}

// begin resets the run to the masked slots of a block.
func (r *run) begin(k int, mask uint64) {
	*r = run{bits: r.bits[:0], ends: r.ends[:0], patches: r.patches[:0]}
	r.note = sentRecord{version: newestThen, mask: mask, block: uint32(k)}
	r.records = bits.OnesCount64(mask)
	r.first, r.last = k<<6+bits.TrailingZeros64(mask), k<<6+bits.Len64(mask)-1
}

// encodeRun encodes a run. With keep, each delta is encoded separately and cached for other runs
// with the same origin. If there are no other such runs, the cache would only take memory.
func (c *cutter) encodeRun(r *run, mask uint64, most int, keep bool) {
	w := c.p.w
	b, x := &w.runBits, packet.Context{Tick: w.tick, Prev: -1}
	b.Reset(b.Bytes()[:0])
	var d delta
	for m := mask; m != 0; m &= m - 1 {
		slot := r.first&^63 + bits.TrailingZeros64(m)
		o, start := w.objects.Slots[slot], b.Len()
		from := basisOf(c.origin, c.p.Withheld(slot))
		putNext(&x, b, o, from)
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
			o.Plan().PutDelta(b, &d.now, &d.then, &d.trend)
			w.stats.Encoded++
		}
		r.ends = append(r.ends, uint16(b.Len()))
		if !r.addBits(uint32(o.WireClass().Index()), uint32(b.Len()-start)) || b.Len() > most {
			return // the record fits no packet
		}
	}
	r.finish(b)
}

// putNext writes the head of the next record of a run.
func putNext(x *packet.Context, b *wire.BitWriter, o *state.Object, from basis) {
	head := packet.Head{Kind: packet.Delta, Slot: o.Slot(), Version: state.View{Withheld: from.withheld}.Version(o)}
	if x.Prev < 0 { // the gap before the first record depends on the packet
		x.Prev = head.Slot
		x.PutKind(b, &head)
	} else {
		x.PutHead(b, &head)
	}
}

// finish copies the encoded bits from the writer into the run.
func (r *run) finish(b *wire.BitWriter) {
	r.size = uint32(b.Len())
	b.Flush()
	// 8 spare bytes, because a BitWriter copies eight bytes at once.
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

// putRun writes a run into the open packet, or leaves the packet unchanged if it does not fit.
func (c *cutter) putRun(n *candidate) bool {
	r := n.run
	start, before := c.open.Mark(), c.open.Len()
	packet.PutGap(&c.open, r.first-c.context.Prev-1)
	if c.open.Len()+int(r.size) > c.room || int(r.size) > c.left {
		c.open.Rewind(start)
		return false
	}
	gap := c.open.Len() - before
	r.put(&c.open)
	c.context.Prev = r.last
	n.size = uint32(gap) + r.size
	c.left -= int(n.size)
	return true
}

// commitRun records that a run was sent.
func (c *cutter) commitRun(n *candidate) {
	p, r := c.p, n.run
	st := &p.w.stats
	st.Records += uint64(r.records)
	st.Deltas += uint64(r.records)
	st.InRuns += uint64(r.records)
	k, mask := int(r.note.block), r.note.mask
	p.sentTwice.AddWord(k, mask&p.sentOnce.Word(k))
	p.sentOnce.AddWord(k, mask)
	s := p.flight.packet(c.first + uint64(n.packet))
	s.records = append(s.records, r.note)
	c.spendRun(n)
}

// spendRun counts the bits of a run by class and object, and samples one of the run's records if a
// sample is due.
func (c *cutter) spendRun(n *candidate) {
	r, spent := n.run, &c.p.w.spent
	if c.p.w.costs != nil {
		c.p.w.costs.addRun(n)
	}
	spent.classes[r.classes[0].index] += uint64(n.size-r.size) + uint64(r.classes[0].bits)
	for _, s := range r.classes[1:r.kinds] {
		spent.classes[s.index] += uint64(s.bits)
	}
	if spent.gap > uint32(r.records) {
		spent.gap -= uint32(r.records)
		return
	}
	c.sample(&candidate{slot: uint32(r.slot(int(spent.gap) - 1)), rank: rankPending, derived: !n.full, full: n.full})
}

// slot returns the slot of record n.
func (r *run) slot(n int) int {
	m := r.note.mask
	for range n {
		m &= m - 1
	}
	return int(r.note.block)<<6 + bits.TrailingZeros64(m)
}
