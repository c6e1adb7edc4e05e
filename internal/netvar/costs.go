package netvar

import (
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/netvar/state"
)

const (
	// costParts and costPart are the number of parts of the time over which records are counted by
	// object, and the length of a part in seconds: together a minute.
	costParts = 6
	costPart  = 10
	// costKeep is the time in seconds for which counting continues after a call of Costliest.
	costKeep = 10
)

// costs counts the records of all clients by object while Costliest is called. Otherwise a World
// has none, and each record or run costs a comparison to nil.
type costs struct {
	second uint64 // in ticks
	began  uint64 // tick before the first counted one
	next   uint64 // tick with which the next part begins
	until  uint64 // tick with which counting ends
	at     int    // the running part
	bySlot []slotCost
}

// slotCost is the cost of the object in a slot: 64 bytes. A part overflows with 536 MB of one
// object in ten seconds.
type slotCost struct {
	bits    [costParts]uint32
	records [costParts]uint32
	sum     uint64 // of bits
	fulls   uint32 // records without a baseline, since counting began
}

// ObjectCost is the cost of an object.
type ObjectCost struct {
	Object  *state.Object
	Bytes   uint64 // of its records for all clients
	Records uint64
	Fulls   uint64 // full records, since counting began
}

// Costliest returns the n living objects with the most bytes of records in the last minute, the
// costliest first, the bytes of all living objects, and the number of ticks in which they were
// counted. The first call begins to count, and counting ends ten seconds after the last call.
// second is the number of ticks in a second.
func (w *World) Costliest(n int, second uint64) (list []ObjectCost, all, ticks uint64) {
	if w.costs == nil {
		w.costs = &costs{second: second, began: w.tick, next: w.tick + 1 + costPart*second}
		w.costs.grow(len(w.objects.Slots))
	}
	c := w.costs
	c.until = w.tick + costKeep*second
	least := uint64(0) // bits of the last listed object
	for slot := range c.bySlot {
		s := &c.bySlot[slot]
		if all += s.sum; s.sum <= least {
			continue
		}
		o := w.objects.At(slot)
		if o == nil || !o.Alive() {
			continue
		}
		cost := ObjectCost{Object: o, Bytes: s.sum, Fulls: uint64(s.fulls)}
		for _, r := range s.records {
			cost.Records += uint64(r)
		}
		i, _ := slices.BinarySearchFunc(list, s.sum, func(x ObjectCost, sum uint64) int {
			if x.Bytes >= sum {
				return -1
			}
			return 1
		})
		if list = slices.Insert(list, i, cost); len(list) > n {
			list = list[:n]
		}
		if len(list) == n {
			least = list[n-1].Bytes
		}
	}
	for i := range list {
		list[i].Bytes /= 8
	}
	span := costPart * second
	return list, all / 8, min(w.tick-c.began, w.tick-(c.next-1-span)+(costParts-1)*span)
}

// countCosts begins a tick of the costs.
func (w *World) countCosts() {
	c := w.costs
	if c == nil {
		return
	}
	if w.tick >= c.until {
		w.costs = nil
		return
	}
	for ; w.tick >= c.next; c.next += costPart * c.second {
		c.turn()
	}
	c.grow(len(w.objects.Slots))
}

func (c *costs) grow(slots int) {
	for len(c.bySlot) < slots {
		c.bySlot = append(c.bySlot, slotCost{})
	}
}

// turn begins another part, and drops the oldest.
func (c *costs) turn() {
	c.at = (c.at + 1) % costParts
	for i := range c.bySlot {
		s := &c.bySlot[i]
		s.sum -= uint64(s.bits[c.at])
		s.bits[c.at], s.records[c.at] = 0, 0
	}
}

// forget drops the costs of an ended object.
func (c *costs) forget(slot int) {
	if c != nil && slot < len(c.bySlot) {
		c.bySlot[slot] = slotCost{}
	}
}

// add counts a record.
func (c *costs) add(slot int, size uint32, full bool) {
	s := &c.bySlot[slot]
	s.bits[c.at] += size
	s.records[c.at]++
	s.sum += uint64(size)
	if full {
		s.fulls++
	}
}

// addRun counts the records of a run. The gap before the run counts to the first.
func (c *costs) addRun(n *candidate) {
	r := n.run
	ends, patches := r.ends, r.patches
	if r.whole != nil {
		ends = r.whole.ends
	}
	extra, done := n.size-r.size, uint16(0)
	for i, m := 0, r.note.mask; m != 0; i, m = i+1, m&(m-1) {
		size := r.size // a single record may be too long for ends
		if r.records > 1 {
			size = uint32(ends[i] - done)
			if len(patches) > 0 && patches[0].from == done {
				size, patches = uint32(patches[0].size), patches[1:]
			}
			done = ends[i]
		}
		c.add(int(r.note.block)<<6+bits.TrailingZeros64(m), size+extra, n.full)
		extra = 0
	}
}
