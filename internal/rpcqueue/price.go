package rpcqueue

import (
	"math/bits"
	"time"
)

// The bounds of prices, and the price of a method of which nothing is known: what a handler
// takes that walks over some thousand objects.
const (
	MinPrice     = 250 * time.Nanosecond
	MaxPrice     = time.Second
	InitialPrice = 50 * time.Microsecond
)

// Price is what one message of a method is taken to cost.
type Price struct {
	Method uint32
	Cost   time.Duration
}

// SetPrices changes prices, from the next drain on. What they are decides what runs, so they
// are an input of the tick: they belong before its first stage. Methods that are not in the
// table are ignored, and prices out of bounds are brought to the nearest.
func (q *Queue[C]) SetPrices(prices []Price) {
	for _, p := range prices {
		if int64(p.Method) < int64(len(q.prices)) {
			q.prices[p.Method] = min(max(p.Cost, MinPrice), MaxPrice)
		}
	}
}

// Tariff measures what messages cost, and keeps the prices that follow. It is no part of a
// queue's state: a queue tells it what its messages have taken, and what it makes of that
// reaches a queue as SetPrices alone. One goroutine owns it.
type Tariff struct {
	clock   func() time.Duration
	last    time.Duration // when the running message began
	methods []estimate    // by id
	changed []uint32      // ids with new samples
}

// estimate is what is known of one method.
type estimate struct {
	sample
	mean  time.Duration // what a message costs; 0 is not known yet
	price time.Duration // what was last told
}

// sample is what the messages since the last judgement have cost.
type sample struct {
	count    int
	sum, max time.Duration
	listed   bool // among the changed
}

// NewTariff returns one for the methods of a table, with a monotonic clock.
func NewTariff(t *Table, clock func() time.Duration) *Tariff {
	f := &Tariff{clock: clock, methods: make([]estimate, len(t.byID))}
	for i := range f.methods {
		f.methods[i].price = InitialPrice
	}
	return f
}

// begin notes that messages run from now on.
func (f *Tariff) begin() {
	if f != nil {
		f.last = f.clock()
	}
}

// ran notes that a message has run. It reads the clock once: its end is the next one's
// beginning.
func (f *Tariff) ran(m *Method) {
	if f == nil {
		return
	}
	now := f.clock()
	cost := now - f.last
	f.last = now
	e := &f.methods[m.ID]
	e.count++
	e.sum += cost
	e.max = max(e.max, cost)
	if !e.listed {
		e.listed = true
		f.changed = append(f.changed, m.ID)
	}
}

// Changes appends the prices that follow from what was measured since the last call and differ
// from those told before. It belongs between two ticks.
func (f *Tariff) Changes(dst []Price) []Price {
	waiting := f.changed[:0]
	for _, id := range f.changed {
		e := &f.methods[id]
		if e.count < enough && e.mean > 0 {
			waiting = append(waiting, id)
			continue
		}
		if e.judge() {
			dst = append(dst, Price{id, e.price})
		}
	}
	f.changed = waiting
	return dst
}

const (
	// enough is how many messages a sample has at least, but for the first: of so many
	// the dearest is left out, because the machine itself may have taken the time.
	enough = 4
	// climbAtMost is by how much a sample raises the estimate at most. A machine that stands
	// still for a moment does no lasting harm, and what became a hundred times as dear is
	// known after four ticks.
	climbAtMost = 4
	// decay is the part by which a cheaper sample lowers the estimate: a method whose messages
	// cost now this and now that has the price of the dear ones.
	decay = 16
)

// judge takes the sample into the estimate, and reports whether there is a new price.
func (e *estimate) judge() bool {
	cost := e.sum / time.Duration(e.count)
	if e.count >= enough {
		cost = (e.sum - e.max) / time.Duration(e.count-1)
	}
	switch {
	case e.mean == 0:
		e.mean = min(cost, climbAtMost*InitialPrice)
	case cost > e.mean:
		e.mean = min(cost, climbAtMost*e.mean)
	default:
		e.mean -= (e.mean - cost) / decay
	}
	e.mean = min(max(e.mean, MinPrice), MaxPrice)
	e.sample = sample{}
	if price := rung(e.mean); price > e.price || 2*price < e.price {
		e.price = price
		return true
	}
	return false
}

// rung rounds a cost up to one of four steps per doubling, so that prices change rarely.
func rung(cost time.Duration) time.Duration {
	step := int64(1) << max(bits.Len64(uint64(cost))-3, 0)
	return time.Duration((int64(cost) + step - 1) / step * step)
}
