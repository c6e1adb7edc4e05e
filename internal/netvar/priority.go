package netvar

import (
	"math"
	"math/bits"
	"slices"
)

// When not everything that is owed to a client fits its snapshot, its budget or its packets,
// the most needed goes first:
//
//	despawns     an object that is gone is the worst lie, and the record is tiny
//	overdue      what waits for longer than its class allows, the longest overdue first
//	owed         the largest of weight × weight of the field × ticks since it was last sent
//	copies       second copies, in the same order
//
// The weight of the field is the largest of the fields that the client lacks (fieldweight.go).
// Under a shortage that lasts, an object is sent as often as its weight is large: it goes when
// weight × ticks reaches what all others wait for. None starves, since waiting alone makes it the
// most needed; a minimum rate says how long that may take.

// Weights are fixed-point numbers, so that the order is the same on every machine.
const (
	weightOne = 1 << 10
	maxFactor = 1 << 10

	// MinWeight and MaxWeight bound the weight of an object. The weight of what says nothing is 1.
	MinWeight, MaxWeight = 1.0 / 64, 64
)

// kind is what a world knows of a class beyond its shape.
type kind struct {
	weight uint32
	every  uint64 // ticks that a change may wait, 0 = any number
	factor func(*Peer, *Object) float64
	rounds bool // see SetRounded
}

// fixed makes a fixed-point number of a weight. NaN is the least.
func fixed(weight float64) uint32 {
	if !(weight > MinWeight) {
		weight = MinWeight
	}
	return uint32(min(weight, MaxWeight) * weightOne)
}

// SetClassWeight says how much the objects of a class that are spawned from now on weigh, from
// MinWeight to MaxWeight, and after how many ticks an owed one goes before all that are not
// overdue; 0 is never.
func (w *World) SetClassWeight(c *Class, weight float64, every uint64) {
	w.kinds[c.index].weight, w.kinds[c.index].every = fixed(weight), every
}

// SetFactor makes fn say by what the weight of an object is multiplied for a client, from 0 to
// 1 024. It is asked only for what is owed while not all of it fits, and must change nothing.
func (w *World) SetFactor(c *Class, fn func(*Peer, *Object) float64) { w.kinds[c.index].factor = fn }

// SetWeight gives one object a weight of its own.
func (w *World) SetWeight(o *Object, weight float64) { o.weight = fixed(weight) }

// Shed makes objects that weigh less than 1 go to clients that have them at their minimum rate
// only, or every so many ticks if they have none; 0 sheds nothing.
func (w *World) Shed(every uint64) { w.shed = every }

// sheds reports whether an owed object has to wait because the server is overloaded. What a
// client does not have yet is not shed: it would play in a world with holes.
func (c *cutter) sheds(o *Object, e *entry) bool {
	w := c.p.w
	if o.weight >= weightOne || e.sent == 0 {
		return false
	}
	every := w.kinds[o.class.index].every
	if every == 0 {
		every = w.shed
	}
	return e.age(c.header.Tick) < every
}

// maxMisfits is after how many records that no longer fit a full snapshot is left alone. Each
// has cost an encoding; the most needed goes first next time, into an empty packet.
const maxMisfits = 32

// byNeed chooses what goes, the most needed first, and writes that in slot order.
func (c *cutter) byNeed() {
	c.needs = c.needs[:0]
	if c.budget > 0 { // or nothing may start
		c.weigh()
	}
	c.close() // it may have grown: keep it for the next time
	c.packets = c.packets[:c.from]
	c.header.HasBehind = true
	c.next()
	c.left, c.largeRoom, c.crowded = c.budget, MaxOutstanding-c.p.large.bytes, 0
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

// choose places what goes, packet by packet of so many bits. What the head of a record takes
// depends on what else is in the packet, so it is estimated: what goes on the stream alone has its
// size already.
func (c *cutter) choose(room int) {
	packet, used, count, misfits, tried := 0, 0, 0, 0, uint32(0)
	exact := c.left
	c.chosen = c.chosen[:0]
	rest := c.needs
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
				rest = slices.DeleteFunc(rest, func(n need) bool { return !n.large })
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

// measure returns the bits of a record right behind its neighbour.
func (c *cutter) measure(n *candidate) int {
	m, before := c.open.Mark(), c.open.Len()
	c.context.prev = int(n.slot) - 1
	c.record(n)
	n.size = uint32(c.open.Len() - before)
	c.open.Rewind(m)
	return int(n.size)
}

// gaps is about what the gaps of n records in one packet take beyond that.
func (c *cutter) gaps(n int) int { return n * (2*bits.Len(uint(len(c.p.entries)/n)) - 2) }

// fill writes the records into the open packet. If the estimate was too low the least needed of
// them wait.
func (c *cutter) fill(list []uint32) {
	start, left := c.open.Mark(), c.left
	for {
		c.context.begin(c.header.Tick, c.origin)
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

// weigh says how much each candidate is needed.
func (c *cutter) weigh() {
	c.needs = slices.Grow(c.needs, len(c.list))[:len(c.list)]
	for i := range c.list {
		n := &c.list[i]
		n.packet, n.why = unplaced, 0 // or it has got its place in the order of slots
		c.needs[i] = need{index: uint32(i), rank: n.rank, large: n.large}
		if n.rank != rankDespawn {
			c.weighOne(n, &c.needs[i])
		}
	}
}

// weighOne says how much a living object is needed.
func (c *cutter) weighOne(n *candidate, own *need) {
	p, o, e := c.p, c.p.w.slots[n.slot], &c.p.entries[n.slot]
	k := &p.w.kinds[o.class.index]
	age := max(e.age(c.header.Tick), 1) // 0 in the tick in which it became visible
	if n.rank == rankOwed && k.every > 0 && age >= k.every {
		own.rank, own.amount = rankOverdue, age-k.every
		return
	}
	weight, field := uint64(o.weight), uint64(weightOne)
	if k.factor != nil {
		weight = scale(weight, k.factor(p, o))
	}
	if o.class.fieldWeights != nil {
		field = uint64(o.changedWeight(e.base, p.view(int(n.slot)).withheld))
	}
	own.amount = product(age, weight*field)
}

// product is a·b, or the most that there is.
func product(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// scale multiplies a weight by a factor. The least is not 0: waiting has to count.
func scale(weight uint64, factor float64) uint64 {
	if !(factor > 0) {
		return 1
	}
	return max(1, uint64(float64(weight)*min(factor, maxFactor)))
}
