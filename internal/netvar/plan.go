package netvar

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
)

// For a client without objects, all objects are pending, and it takes many snapshots to send them.
// The never-sent slots are ranked once, in a plan, and the next snapshots take slots from its top:
//
//	many never-sent slots    ──▶  plan      by weight × ticks, rounded, and then by slot
//	top of the plan     ──▶  runs      neighbours of the same rank and level, encoded together
//	runs, other changes ──▶  byPriority    by weight × ticks, exactly
//
// So the cost of a snapshot depends on its own records, and not on the number of never-sent slots.
// Changes of never-sent objects do not affect the plan: a full record carries the newest values.
// The plan is rebuilt after all of its slots are sent, and every planTicks, because priorities grow
// with waiting time at different rates.

const (
	// farBehind is the least number of never-sent objects for a plan. Fewer objects are ranked
	// individually.
	farBehind = 1024
	// planTicks is the number of ticks after which a plan is rebuilt. If an object in the plan
	// becomes overdue, it is rebuilt earlier, but not before minPlanTicks.
	planTicks    = 32
	minPlanTicks = 4
)

// plan is the order in which the never-sent slots of a client are sent.
type plan struct {
	list    []planned
	next    int    // all entries before it are sent
	until   uint64 // tick at which the plan is rebuilt; 0: there is no plan
	reached uint64 // the least of the ticks up to which the client has the slots of the plan
	why     Why    // reason why the rest of the plan was not sent
	ranked  int    // objects ranked since the last turn
}

// planned is a set of slots in one block of 64 with the same rank and level.
type planned struct {
	mask  uint64
	block uint32
	level uint16
	rank  rank
}

// PlanFrom sets the least number of never-sent objects for a plan, in place of farBehind, so that a
// test reaches plans with few objects. Call it before the first tick.
func (w *World) PlanFrom(n int) { w.farBehind = n }

// farBehind reports whether the client has enough never-sent slots for a plan. If it has fewer, the
// plan and its turn end.
func (c *cutter) farBehind() bool {
	p := c.p
	if len(p.neverSent) == 0 {
		return false
	}
	n := p.neverSent.Count()
	if n < p.w.farBehind {
		p.giveUpTurn()
		p.plan, p.turns = plan{}, turns{}
	}
	if n == 0 {
		p.neverSent = p.neverSent[:0]
	}
	return n >= p.w.farBehind && !p.atOnce
}

// makePlan ranks the never-sent slots.
func (c *cutter) makePlan() {
	p, pl, tick := c.p, &c.p.plan, c.header.Tick
	pl.list, pl.next = pl.list[:0], 0
	pl.until, pl.reached = tick+planTicks, math.MaxUint64
	for k, word := range p.neverSent {
		start := len(pl.list)
		for ; word != 0; word &= word - 1 {
			slot := k<<6 + bits.TrailingZeros64(word)
			c.planOne(slot, start)
		}
	}
	slices.SortFunc(pl.list, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.level, a.level), cmp.Compare(a.block, b.block))
	})
	pl.ranked += p.neverSent.Count()
	p.w.stats.Planned++
}

// planOne ranks a slot, and adds it to the plan's entry of the same block, rank and level. The
// entries of the block begin at index start.
func (c *cutter) planOne(slot, start int) {
	p, pl, tick := c.p, &c.p.plan, c.header.Tick
	e, own := &p.entries[slot], priority{rank: rankPending}
	c.weighOne(&candidate{slot: uint32(slot), rank: rankPending}, &own)
	pl.reached = min(pl.reached, e.reached(tick))
	every, age := p.w.kinds[p.w.objects.Slots[slot].WireClass().Index()].every, e.age(tick)
	if own.rank == rankPending && every > 0 {
		pl.until = min(pl.until, tick+max(every-min(age, every), minPlanTicks))
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

// levelOf rounds an amount to a level: two amounts with the same level differ by less than an
// eighth.
func levelOf(amount uint64) uint16 {
	const digits = 3
	n := bits.Len64(amount)
	if n <= digits+1 {
		return uint16(amount)
	}
	return uint16(n-digits-1)<<digits + uint16(amount>>(n-digits-1))
}

// gatherByPlan lists, sorted by slot, the changes of objects that the client has, and as much of
// the plan as the snapshot can carry.
func (c *cutter) gatherByPlan() {
	p := c.p
	c.list, c.runBits, c.behind = c.list[:0], 0, 0
	c.taken = append(c.taken[:0], make(bitset.Set, len(p.pending))...)
	c.covered = append(c.covered[:0], c.taken...)
	shedding := p.w.shed > 0 && !c.header.HasDigest
	for k := range p.pending {
		// no second copies, because the plan needs the space
		due := c.isDue(k) &^ p.neverSent.Word(k) &^ p.sentOnce.Word(k)
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

// takePlanned lists slots from the top of the plan, as many as the snapshot has space for. It makes
// a new plan if there is none, or if the old plan has expired or is sent completely.
func (c *cutter) takePlanned() {
	p, pl := c.p, &c.p.plan
	for pl.next < len(pl.list) && pl.list[pl.next].mask&p.neverSent.Word(int(pl.list[pl.next].block)) == 0 {
		pl.next++
	}
	if pl.until <= c.header.Tick || pl.next == len(pl.list) {
		c.makePlan()
	}
	most, records := min(c.lim.Packets*c.room, c.left), packet.MaxSlots
	if p.turns.queue == slowQueue {
		records = slowTurn
	}
	for i := pl.next; i < len(pl.list) && c.runBits < most && records > 0; i++ {
		one := &pl.list[i]
		k := int(one.block)
		one.mask &= p.neverSent.Word(k)
		// Skip slots with a record of a previous object in flight on the stream.
		if ready := one.mask &^ p.large.slots.Word(k); ready != 0 {
			records -= bits.OnesCount64(ready)
			c.addPlanned(k, ready)
		}
	}
}

// addPlanned lists never-sent slots of a block. The records of a packet are in slot order, so no
// other candidate may be inside the range of a run. Slots that overlap the range of another run
// wait for the next snapshot. Slots with candidates between them are listed individually.
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

// leavePlanned ends the turn, and records why the never-sent slots that are not in this snapshot
// wait.
func (c *cutter) leavePlanned() {
	p, pl := c.p, &c.p.plan
	rest := p.neverSent.Count()
	for i := range c.list {
		if n := &c.list[i]; n.run != nil && n.packet != unplaced {
			rest -= n.run.records
		}
	}
	if c.serves {
		p.tookTurn(uint64(p.neverSent.Count() - rest + pl.ranked/rankShare))
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
