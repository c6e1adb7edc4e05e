package netvar

import (
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/netvar/state"
)

// If the pending records of a client exceed its budget or the limits of the snapshot, they are sent
// by priority:
//
//	despawns     a dead object that is still shown misleads most, and its record is tiny
//	overdue      older than the class allows, the longest overdue first
//	pending      by weight × weight of the field × ticks since the last record
//	copies       second copies, in the same order
//
// The weight of the field is the largest weight of the fields whose newest value the client lacks:
// see ChangedWeight. In a lasting shortage an object is sent in proportion to its weight, because
// it is sent when its weight × ticks is the largest. No object waits for ever, because the priority
// grows with the waiting time; a minimum rate bounds the wait.

// maxFactor bounds the factors of SetFactor.
const maxFactor = 1 << 10

// kind is the world's settings of a class.
type kind struct {
	weight uint32
	every  uint64 // the most ticks that a change should wait; 0: no limit
	factor func(*Peer, *state.Object) float64
	rounds bool // see SetRounded
}

// SetClassWeight sets the weight of the class's objects that are spawned from now on, from
// MinWeight to MaxWeight. A pending object is overdue once its last record is every ticks old; if
// every is 0, it never is.
func (w *World) SetClassWeight(c *state.Class, weight float64, every uint64) {
	w.kinds[c.Index()].weight, w.kinds[c.Index()].every = state.FixedWeight(weight), every
}

// SetFactor sets a function that returns the factor, from 0 to 1 024, of an object's weight for a
// client. It is called only for pending objects and only if not all fit. It must not change any
// state.
func (w *World) SetFactor(c *state.Class, fn func(*Peer, *state.Object) float64) {
	w.kinds[c.Index()].factor = fn
}

// Shed limits updates of objects with a weight below 1 to the minimum rate of their class, or to
// one update per every ticks if it has none. Objects that a client lacks are still sent to it. 0
// ends shedding.
func (w *World) Shed(every uint64) { w.shed = every }

// sheds reports whether a pending object is left out because the server is overloaded. An object
// that the client does not have yet is always sent: without it the client's world would be
// incomplete.
func (c *cutter) sheds(o *state.Object, e *entry) bool {
	w := c.p.w
	if o.Weight >= state.WeightOne || e.sent == 0 {
		return false
	}
	every := w.kinds[o.WireClass().Index()].every
	if every == 0 {
		every = w.shed
	}
	return e.age(c.header.Tick) < every
}

// maxMisfits bounds the records that are encoded but do not fit, when a snapshot is nearly full.
// The next snapshot tries the object with the highest priority first, in an empty packet.
const maxMisfits = 32

// byPriority chooses records by priority, and writes them in slot order.
func (c *cutter) byPriority() {
	c.priorities = c.priorities[:0]
	if c.budget > 0 { // without budget no record may be sent
		c.weigh()
	}
	c.close() // keep the buffer for the next snapshot, because it may have grown
	c.packets = c.packets[:c.from]
	c.header.HasBehind = true
	c.next()
	c.left, c.largeRoom, c.waitedLarge = c.budget, MaxOutstanding-c.p.large.bytes, 0
	c.choose(c.room - c.open.Len())
	for list := c.chosen; len(list) > 0; {
		n := 1
		for n < len(list) && c.list[list[n]].packet == c.list[list[0]].packet {
			n++
		}
		if int(c.list[list[0]].packet) != len(c.packets)-c.from-1 {
			c.next()
		}
		slices.Sort(list[:n])
		c.fill(list[:n])
		list = list[n:]
	}
}

// choose assigns candidates, in order of priority, to packets with room bits each. The size of a
// record's head depends on the other records in the packet, so it is estimated. Sizes of records on
// the stream are exact.
func (c *cutter) choose(room int) {
	packet, used, count, misfits, tried := 0, 0, 0, 0, uint32(0)
	exact := c.left
	c.chosen = c.chosen[:0]
	rest := c.priorities
	for rest.order(); len(rest) > 0 && c.left > 0 && (misfits < maxMisfits || c.largeRoom > 0); tried++ {
		i := rest.pop().index
		n := &c.list[i]
		n.order, n.why = tried, WhyPackets
		if n.large {
			if c.takeLarge(n) {
				exact -= int(n.size)
			}
			continue
		}
		size := c.measure(n)
		if size > room || used+size+c.gaps(count+1) > room && packet+1 == c.lim.Packets {
			if misfits++; misfits == maxMisfits {
				rest = slices.DeleteFunc(rest, func(n priority) bool { return !n.large })
				rest.order()
			}
			continue
		}
		used += size
		if count++; used+c.gaps(count) > room {
			packet, used, count = packet+1, size, 1
		}
		n.packet = uint8(packet)
		c.left -= size
		c.chosen = append(c.chosen, i)
	}
	c.p.w.stats.Ranked += uint64(tried)
	c.short, c.left = c.left <= 0, exact
}

// measure returns the size, in bits, of a record that follows the record of the previous slot.
func (c *cutter) measure(n *candidate) int {
	m, before := c.open.Mark(), c.open.Len()
	c.context.Prev = int(n.slot) - 1
	c.record(n)
	n.size = uint32(c.open.Len() - before)
	c.open.Rewind(m)
	return int(n.size)
}

// gaps estimates the additional bits for the gaps of n records in one packet.
func (c *cutter) gaps(n int) int { return n * (2*bits.Len(uint(len(c.p.entries)/n)) - 2) }

// fill writes the records into the open packet. If the estimate was too low, the records with the
// lowest priority wait.
func (c *cutter) fill(list []uint32) {
	start, left := c.open.Mark(), c.left
	for {
		c.context.Begin(c.header.Tick, c.origin)
		for _, i := range list {
			if n := &c.list[i]; n.packet != unplaced {
				before := c.open.Len()
				c.record(n)
				n.size = uint32(c.open.Len() - before)
				c.left -= int(n.size)
			}
		}
		over := c.open.Len() - c.room
		if over <= 0 {
			return
		}
		c.open.Rewind(start)
		c.left = left
		for over > 0 {
			least := (*candidate)(nil)
			for _, i := range list {
				if n := &c.list[i]; n.packet != unplaced && (least == nil || n.order > least.order) {
					least = n
				}
			}
			least.packet = unplaced
			over -= int(least.size)
		}
	}
}

// weigh computes the priority of each candidate.
func (c *cutter) weigh() {
	c.priorities = slices.Grow(c.priorities, len(c.list))[:len(c.list)]
	for i := range c.list {
		n := &c.list[i]
		n.packet, n.why = unplaced, 0 // inOrder may have placed the record
		c.priorities[i] = priority{index: uint32(i), rank: n.rank, large: n.large}
		if n.rank != rankDespawn {
			c.weighOne(n, &c.priorities[i])
		}
	}
}

// weighOne computes the priority of a living object.
func (c *cutter) weighOne(n *candidate, own *priority) {
	p, o, e := c.p, c.p.w.objects.Slots[n.slot], &c.p.entries[n.slot]
	k := &p.w.kinds[o.WireClass().Index()]
	age := max(e.age(c.header.Tick), 1) // 0 in the tick in which the object became visible
	if n.rank == rankPending && k.every > 0 && age >= k.every {
		own.rank, own.amount = rankOverdue, age-k.every
		return
	}
	weight, field := uint64(o.Weight), uint64(state.WeightOne)
	if k.factor != nil {
		weight = scale(weight, k.factor(p, o))
	}
	if o.WireClass().HasFieldWeights() {
		field = uint64(o.ChangedWeight(e.base, p.View(int(n.slot)).Withheld))
	}
	own.amount = product(age, weight*field)
}

// product returns a·b, or the largest number on overflow.
func product(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// scale multiplies a weight by a factor. The result is at least 1, so that waiting counts.
func scale(weight uint64, factor float64) uint64 {
	if !(factor > 0) {
		return 1
	}
	return max(1, uint64(float64(weight)*min(factor, maxFactor)))
}
