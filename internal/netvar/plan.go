package netvar

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A client that has nothing yet is owed everything at once, and takes many snapshots to get it.
// What is blank for it is ranked once, in a plan, and the next snapshots take from its top:
//
//	blank, and many     ──▶  plan      by weight × ticks, about, and then by slot
//	top of the plan     ──▶  runs      neighbours that are needed as much, encoded together
//	runs, other changes ──▶  byNeed    by weight × ticks, exactly
//
// So what a snapshot costs depends on what it carries, and not on what the client lacks. What of
// blank objects changes meanwhile makes no difference to the plan: a full record carries the newest
// values. The plan is made anew from time to time, since waiting makes one object overtake another.

const (
	// farBehind is from how many blank objects on there is a plan. Fewer are ranked one by one.
	farBehind = 1024
	// planTicks is after how many ticks a plan is made anew, and leastPlanTicks after how many if
	// something in it becomes overdue.
	planTicks      = 32
	leastPlanTicks = 4
)

// plan is the order in which a client gets what is blank.
type plan struct {
	list    []planned
	next    int    // all of the list before it is sent
	until   uint64 // tick from which on it is made anew; 0: there is none
	reached uint64 // the least tick that the client has reached in something of it
	why     Why    // what is left of it had to wait
	ranked  int    // objects that were ranked since the last turn
}

// planned is some of 64 slots that are needed about as much.
type planned struct {
	mask  uint64
	block uint32
	level uint16
	rank  rank
}

// farBehind reports whether so much is blank that the client gets it by a plan.
func (c *cutter) farBehind() bool {
	p := c.p
	if len(p.blank) == 0 {
		return false
	}
	n := p.blank.count()
	if n < p.w.farBehind {
		p.giveUpTurn()
		p.plan, p.turns = plan{}, turns{}
	}
	if n == 0 {
		p.blank = p.blank[:0]
	}
	return n >= p.w.farBehind && !p.atOnce
}

// makePlan ranks what is blank.
func (c *cutter) makePlan() {
	p, pl, tick := c.p, &c.p.plan, c.header.Tick
	pl.list, pl.next = pl.list[:0], 0
	pl.until, pl.reached = tick+planTicks, math.MaxUint64
	for k, word := range p.blank {
		start := len(pl.list)
		for ; word != 0; word &= word - 1 {
			slot := k<<6 + bits.TrailingZeros64(word)
			c.planOne(slot, start)
		}
	}
	slices.SortFunc(pl.list, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.level, a.level), cmp.Compare(a.block, b.block))
	})
	pl.ranked += p.blank.count()
	p.w.stats.Planned++
}

// planOne adds a slot to what the plan has of its block, from start on.
func (c *cutter) planOne(slot, start int) {
	p, pl, tick := c.p, &c.p.plan, c.header.Tick
	e, own := &p.entries[slot], need{rank: rankOwed}
	c.weighOne(&candidate{slot: uint32(slot), rank: rankOwed}, &own)
	pl.reached = min(pl.reached, e.reached(tick))
	every, age := p.w.kinds[p.w.slots[slot].class.index].every, e.age(tick)
	if own.rank == rankOwed && every > 0 {
		pl.until = min(pl.until, tick+max(every-min(age, every), leastPlanTicks))
	}
	level, bit := levelOf(own.amount), uint64(1)<<(slot&63)
	for i := start; i < len(pl.list); i++ {
		if one := &pl.list[i]; one.rank == own.rank && one.level == level {
			one.mask |= bit
			return
		}
	}
	pl.list = append(pl.list, planned{mask: bit, block: uint32(slot >> 6), level: level, rank: own.rank})
}

// levelOf rounds an amount: two of one level differ by less than an eighth.
func levelOf(amount uint64) uint16 {
	const digits = 3
	n := bits.Len64(amount)
	if n <= digits+1 {
		return uint16(amount)
	}
	return uint16(n-digits-1)<<digits + uint16(amount>>(n-digits-1))
}

// gatherByPlan lists, in slot order, what has changed of what the client has, and as much from the
// top of the plan as the snapshot may take.
func (c *cutter) gatherByPlan() {
	p := c.p
	c.list, c.runBits, c.behind = c.list[:0], 0, 0
	c.taken = append(c.taken[:0], make(bitset, len(p.owed))...)
	c.covered = append(c.covered[:0], c.taken...)
	shedding := p.w.shed > 0 && !c.header.HasDigest
	for k := range p.owed {
		// There is no room for second copies.
		due := c.isDue(k) &^ p.blank.word(k) &^ p.sentOnce.word(k)
		c.taken[k] = due
		for ; due != 0; due &= due - 1 {
			c.gatherOne(k<<6+bits.TrailingZeros64(due), shedding)
		}
	}
	if c.serves = c.mayLoad(); c.serves {
		c.takePlanned()
	}
	slices.SortFunc(c.list, func(a, b candidate) int { return cmp.Compare(a.slot, b.slot) })
}

// takePlanned lists the top of the plan.
func (c *cutter) takePlanned() {
	p, pl := c.p, &c.p.plan
	if pl.until <= c.header.Tick {
		c.makePlan()
	}
	most, records := min(c.lim.Packets*c.room, c.left), MaxSlots
	if p.turns.lane == slowLane {
		records = slowTurn
	}
	for i := pl.next; i < len(pl.list) && c.runBits < most && records > 0; i++ {
		one := &pl.list[i]
		k := int(one.block)
		one.mask &= p.blank.word(k)
		// A slot may have a record of the object before on the stream.
		if ready := one.mask &^ p.large.slots.word(k); ready != 0 {
			records -= bits.OnesCount64(ready)
			c.addPlanned(k, ready)
		} else if one.mask == 0 && i == pl.next {
			pl.next++
		}
	}
}

// addPlanned lists some blank slots of a block. A packet has its records in slot order, so a run
// may have no other candidate in its midst: what is in that of another run waits for the next
// snapshot, and slots that lie among others go one by one.
func (c *cutter) addPlanned(k int, mask uint64) {
	first, last := bits.TrailingZeros64(mask), bits.Len64(mask)-1
	midst := uint64(2)<<last - 1<<first
	if c.covered[k]&midst != 0 {
		return
	}
	width := c.p.w.runsOf(k).fullWidth
	if c.taken[k]&midst != 0 || 2*bits.OnesCount64(mask) < last-first+1 {
		width = 1
		c.taken[k] |= mask
	} else {
		c.covered[k] |= midst
	}
	for rest := mask; rest != 0; {
		some := rest & neighbours(rest, width)
		c.addFullRun(k, some, width)
		rest &^= some
	}
}

// leavePlanned notes that the rest of the plan waits.
func (c *cutter) leavePlanned() {
	p, pl := c.p, &c.p.plan
	rest := p.blank.count()
	for i := range c.list {
		if n := &c.list[i]; n.run != nil && n.packet != unplaced {
			rest -= n.run.records
		}
	}
	if c.serves {
		p.tookTurn(uint64(p.blank.count() - rest + pl.ranked/rankShare))
		pl.ranked = 0
	}
	if rest == 0 {
		return
	}
	p.w.stats.Waited += uint64(rest)
	pl.why = WhyPackets
	if c.budget <= 0 || c.serves && c.short {
		pl.why = WhyBudget
		p.w.stats.OverBudget += uint64(rest)
	}
	c.behind = max(c.behind, c.header.Tick-pl.reached)
}
