package rpcqueue

import (
	"math/bits"
	"time"
)

// The limits of prices, and the price of an unmeasured method: the time of a handler that iterates
// over some thousand objects.
const (
	MinPrice     = 250 * time.Nanosecond
	MaxPrice     = time.Second
	InitialPrice = 50 * time.Microsecond
)

// Price is the assumed cost of one message of a method.
type Price struct {
	Method uint32
	Cost   time.Duration
}

// SetPrices changes prices, from the next drain on. Prices decide which messages run, so they are
// an input of the tick: call it before the first stage. Methods that are not in the table are
// ignored, and prices out of range are clamped.
func (q *Queue[C]) SetPrices(prices []Price) {
	for _, p := range prices {
		if int64(p.Method) < int64(len(q.prices)) {
			q.prices[p.Method] = min(max(p.Cost, MinPrice), MaxPrice)
		}
	}
}

// Tariff measures the cost of messages, and derives the prices. It is not part of a queue's state:
// a queue passes measured times to it, and gets its prices only through SetPrices. Only one
// goroutine may use it.
type Tariff struct {
	clock   func() time.Duration
	spent   map[uint64]spent // by sender, of the running tick
	last    time.Duration    // start of the running message
	methods []estimate       // by id
	changed []uint32         // ids with new samples
}

// estimate is the measured cost of one method.
type estimate struct {
	sample
	mean  time.Duration // of one message; 0 before the first measurement
	price time.Duration // last price that Changes returned
}

// sample is the cost of a method's messages since the last call of judge.
type sample struct {
	count    int
	sum, max time.Duration
	listed   bool // the method is in changed
}

// NewTariff returns a tariff for the methods of a table, with a monotonic clock.
func NewTariff(t *Table, clock func() time.Duration) *Tariff {
	f := &Tariff{clock: clock, methods: make([]estimate, len(t.byID)), spent: map[uint64]spent{}}
	for i := range f.methods {
		f.methods[i].price = InitialPrice
	}
	return f
}

// begin records the start of the first message of a batch.
func (f *Tariff) begin() {
	if f != nil {
		f.last = f.clock()
	}
}

// ran records that a message has run. It reads the clock once, because the end of a message is also
// the start of the next message.
func (f *Tariff) ran(m *Method, from uint64) {
	if f == nil {
		return
	}
	now := f.clock()
	cost := now - f.last
	f.last = now
	f.charge(from, m, cost)
	e := &f.methods[m.ID]
	e.count++
	e.sum += cost
	e.max = max(e.max, cost)
	if !e.listed {
		e.listed = true
		f.changed = append(f.changed, m.ID)
	}
}

// Spender is the sender whose messages have taken the most time of a tick, and the method of its
// slowest message.
type Spender struct {
	From   uint64
	Method *Method // nil: no message has run
	Cost   time.Duration
}

// spent is the time that the messages of one sender took in the running tick.
type spent struct {
	total, most time.Duration
	method      *Method // method of the slowest message
}

// charge adds the time of a message to the time of its sender.
func (f *Tariff) charge(from uint64, m *Method, cost time.Duration) {
	s := f.spent[from]
	if s.total += cost; cost >= s.most {
		s.most, s.method = cost, m
	}
	f.spent[from] = s
}

// TakeSpender returns the spender of the messages since the last call.
func (f *Tariff) TakeSpender() (top Spender) {
	for from, s := range f.spent {
		if s.total > top.Cost || top.Method == nil || s.total == top.Cost && from < top.From {
			top = Spender{from, s.method, s.total}
		}
	}
	clear(f.spent)
	return top
}

// Changes appends the prices that the measurements since the last call have changed. Call it
// between two ticks.
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
	// enough is the least number of messages in a sample; only the first sample of a method may
	// have fewer. The most expensive message of a sample is left out, because the operating system
	// may have taken its time.
	enough = 4
	// maxClimb is the largest factor by which a sample raises the estimate. So a short stop of
	// the machine has no lasting effect, and a cost that grew a hundredfold is reached after four
	// ticks.
	maxClimb = 4
	// decay divides the difference by which a cheaper sample lowers the estimate: so a method with
	// messages of varying cost has the price of the expensive messages.
	decay = 16
)

// judge updates the estimate from the sample, and reports whether there is a new price.
func (e *estimate) judge() bool {
	cost := e.sum / time.Duration(e.count)
	if e.count >= enough {
		cost = (e.sum - e.max) / time.Duration(e.count-1)
	}
	switch {
	case e.mean == 0:
		e.mean = min(cost, maxClimb*InitialPrice)
	case cost > e.mean:
		e.mean = min(cost, maxClimb*e.mean)
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
