package rpcqueue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// metered is a queue with messages that take their own stated time.
type metered struct {
	*Queue[*[]string]
	methods []*Method
	now     time.Duration
	tick    uint64
}

type work struct {
	name string
	take time.Duration
}

func newMetered(t *testing.T, l Limits, methods ...*Method) *metered {
	t.Helper()
	table, err := NewTable(methods...)
	if err != nil {
		t.Fatal(err)
	}
	m := &metered{Queue: New[*[]string](table), methods: methods}
	m.Tariff = NewTariff(table, func() time.Duration { return m.now })
	if err := m.SetLimits(l); err != nil {
		t.Fatal(err)
	}
	for _, method := range methods {
		if err := m.Handle(method, m.work); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *metered) work(ran *[]string, it *Item) error {
	w := it.Msg.(work)
	m.now += w.take
	*ran = append(*ran, w.name)
	switch w.name {
	case "panic":
		panic("ouch")
	case "fail":
		return fmt.Errorf("no")
	}
	return nil
}

// send pushes n messages.
func (m *metered) send(method int, from uint64, n int, take time.Duration) {
	for range n {
		m.Push(Item{Method: m.methods[method], From: from, Msg: work{fmt.Sprint(from), take}})
	}
}

// drain runs a tick's drain of Update and returns the messages that ran.
func (m *metered) drain() (ran []string) {
	m.tick++
	m.Begin(m.tick, 0)
	m.Drain(loop.Update, &ran)
	return ran
}

func (m *metered) wantRan(t *testing.T, want ...string) {
	t.Helper()
	if got := m.drain(); !slices.Equal(got, want) {
		t.Errorf("tick %d ran %q, want %q", m.tick, got, want)
	}
}

func us(n int) time.Duration { return time.Duration(n) * time.Microsecond }

func TestADrainRunsMessagesWithinItsTime(t *testing.T) {
	m := newMetered(t, Limits{Time: us(100)}, method(0, "cheap"), method(1, "dear"))
	m.SetPrices([]Price{{0, us(10)}, {1, us(40)}, {7, us(1)}})
	m.send(0, 1, 10, 0)
	m.wantRan(t, "1", "1", "1", "1", "1", "1", "1", "1", "1", "1") // Exactly 100 µs.
	m.send(1, 1, 3, 0)
	m.send(0, 2, 3, 0)
	m.wantRan(t, "1", "2", "2", "2") // 30 µs and 40 µs; the next of 1 does not fit.
	if n := m.Waited(); n != 2 {
		t.Errorf("%d waited", n)
	}
	m.wantRan(t, "1", "1")
	if n := m.Waited(); n != 2 {
		t.Errorf("%d waited", n)
	}
}

func TestSendersGetEqualTime(t *testing.T) {
	m := newMetered(t, Limits{Time: us(100)}, method(0, "cheap"), method(1, "dear"))
	m.SetPrices([]Price{{0, us(10)}, {1, us(40)}})
	m.send(1, 1, 5, 0)
	m.send(0, 2, 20, 0)
	m.wantRan(t, "1", "2", "2", "2", "2", "2", "2") // 40 µs and 60 µs.
}

func TestASenderIsLimitedToItsPartOfTheTick(t *testing.T) {
	m := newMetered(t, Limits{Time: us(1000), SenderTime: us(30)}, method(0, "m", loop.Update, loop.PreUpdate))
	m.SetPrices([]Price{{0, us(10)}})
	m.send(0, 1, 5, 0)
	m.send(0, 2, 2, 0)
	m.send(0, 0, 5, 0) // Sender 0 has no share.
	m.wantRan(t, "1", "1", "1", "2", "2", "0", "0", "0", "0", "0")
	m.wantRan(t, "1", "1")

	// The share is per tick and not per stage; one message runs in each stage.
	var ran []string
	m.Begin(9, 0)
	for range 2 {
		m.Push(Item{Method: m.methods[0], From: 1, Stage: loop.PreUpdate, Msg: work{"pre", 0}})
	}
	m.send(0, 1, 3, 0)
	m.Drain(loop.PreUpdate, &ran)
	m.Drain(loop.Update, &ran)
	if want := []string{"pre", "pre", "1"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}

	// The cost of a shortened drain counts too.
	ran = nil
	m.Begin(10, 0)
	for range 4 {
		m.Push(Item{Method: m.methods[0], From: 1, Stage: loop.PreUpdate, Msg: work{"pre", 0}})
	}
	m.Drain(loop.PreUpdate, &ran)
	m.Drain(loop.Update, &ran)
	if want := []string{"pre", "pre", "pre", "1"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

func TestADrainLeavesHalfToLaterStages(t *testing.T) {
	m := newMetered(t, Limits{Time: us(100)}, method(0, "m", loop.Update, loop.PreUpdate))
	m.SetPrices([]Price{{0, us(10)}})
	early := func(n int) {
		for range n {
			m.Push(Item{Method: m.methods[0], From: 1, Stage: loop.PreUpdate, Msg: work{"pre", 0}})
		}
	}
	early(20)
	m.send(0, 2, 20, 0)
	var ran []string
	m.Begin(1, 0)
	if n := m.Drain(loop.PreUpdate, &ran); n != 5 {
		t.Errorf("PreUpdate ran %d, want half of 10", n)
	}
	if n := m.Drain(loop.Update, &ran); n != 5 {
		t.Errorf("Update ran %d, want the other half", n)
	}
	m.Begin(2, 0)
	m.Forget(2)
	if n := m.Drain(loop.PreUpdate, &ran); n != 10 {
		t.Errorf("without later messages PreUpdate ran %d, want 10", n)
	}
	m.send(0, 2, 2, 0)
	if n := m.Drain(loop.Update, &ran); n != 1 {
		t.Errorf("with no time left Update ran %d, want 1", n)
	}
}

// A message longer than the whole time runs alone and soon, although others are always waiting.
func TestAnExpensiveMessageIsNotOvertakenForever(t *testing.T) {
	m := newMetered(t, Limits{Time: us(100)}, method(0, "cheap"), method(1, "dear"))
	m.SetPrices([]Price{{0, us(10)}, {1, us(500)}})
	m.send(0, 1, 3, 0)
	m.send(1, 2, 2, 0)
	m.send(0, 3, 3, 0)
	m.wantRan(t, "1", "1", "1", "3", "3", "3")
	m.send(0, 1, 1, 0)
	m.send(0, 3, 1, 0)
	m.wantRan(t, "2")
	m.wantRan(t, "1", "3")
	m.wantRan(t, "2")
}

// observe gives the tariff messages of method 0 with these durations, and returns its new price,
// or 0.
func (m *metered) observe(takes ...time.Duration) time.Duration {
	for _, d := range takes {
		m.send(0, 0, 1, d)
	}
	m.drain()
	changes := m.Tariff.Changes(nil)
	m.SetPrices(changes)
	if len(changes) == 0 {
		return 0
	}
	return changes[0].Cost
}

func repeat(d time.Duration, n int) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// An unmeasured method has the tariff's initial price.
func TestAFirstPriceIsReportedIfItDiffers(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{us(20): 20480, us(40): 0, us(60): 65536} {
		m := newMetered(t, Limits{}, method(0, "m"))
		if m.prices[0] != us(50) {
			t.Errorf("the first price is %v, want 50 µs", m.prices[0])
		}
		if p := m.observe(takes); p != want {
			t.Errorf("a first message of %v makes a price of %v, want %v", takes, p, want)
		}
	}
}

func TestAPriceIsTheMeanRoundedUp(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	if p := m.observe(us(100)); p != 7<<14 { // In steps of a quarter of a power of two.
		t.Errorf("the first price is %v", p)
	}
	if p := m.observe(us(103), us(99), us(105), us(80)); p != 0 {
		t.Errorf("a similar cost changes the price: %v", p)
	}
	if p := m.observe(repeat(us(150), 8)...); p < us(150) || p > us(188) {
		t.Errorf("150 µs cost %v", p)
	}
}

func TestOneOutlierDoesNotChangeAPrice(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	m.observe(us(20))
	if p := m.observe(us(20), us(20), time.Second, us(20)); p != 0 {
		t.Errorf("an outlier among four makes a price of %v", p)
	}
	for range 3 { // Fewer than four are collected first.
		if p := m.observe(time.Second); p != 0 {
			t.Errorf("a sample of fewer than four makes a price of %v", p)
		}
	}
	if p := m.observe(us(20)); p < us(80) || p > us(100) {
		t.Errorf("one sample raises a price from 20 µs to %v, want four times as much", p)
	}
}

func TestPricesRiseFastAndFallSlowly(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	m.observe(us(10))
	ticks := 0
	for price := us(10); price < us(1000); ticks++ {
		if p := m.observe(repeat(us(1000), 8)...); p > 0 {
			price = p
		}
	}
	if ticks > 4 {
		t.Errorf("a hundred times the price took %d ticks", ticks)
	}
	told := 0
	for range 16 {
		if p := m.observe(repeat(us(10), 8)...); p > 0 {
			told++
			if p < us(250) {
				t.Errorf("after 16 ticks the price has fallen to %v", p)
			}
		}
	}
	for range 200 {
		if p := m.observe(repeat(us(10), 8)...); p > 0 {
			told++
		}
	}
	if p := m.prices[0]; p > us(25) || told > 10 {
		t.Errorf("in the end the price is %v, changed %d times", p, told)
	}
}

func TestFailedMessagesAreMeasured(t *testing.T) {
	for _, name := range []string{"fail", "panic"} {
		m := newMetered(t, Limits{}, method(0, "m"))
		m.OnPanic = func(*Item, any, []byte) { m.now += us(400) }
		m.OnError = func(*Item, error) { m.now += us(400) }
		for range 4 {
			m.Push(Item{Method: m.methods[0], Msg: work{name, us(100)}})
		}
		m.drain()
		// At most four times the initial price.
		if c := m.Tariff.Changes(nil); len(c) != 1 || c[0].Cost != 7<<15 {
			t.Errorf("%s: prices %v", name, c)
		}
	}
}

func TestPricesKeepTheirBounds(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	m.SetPrices([]Price{{0, 0}, {1 << 31, 5}, {0xffffffff, 5}})
	if m.prices[0] != 250*time.Nanosecond {
		t.Errorf("a price of 0 is %v", m.prices[0])
	}
	m.SetPrices([]Price{{0, time.Hour}})
	if m.prices[0] != time.Second {
		t.Errorf("a price of an hour is %v", m.prices[0])
	}
	m.now = time.Hour
	m.observe(-time.Hour) // A clock that moves back has no effect.
	for range 40 {
		if p := m.observe(repeat(time.Hour, 8)...); p > 2*MaxPrice {
			t.Errorf("messages of an hour make a price of %v", p)
		}
	}
	if p := m.prices[0]; p != MaxPrice {
		t.Errorf("messages of an hour cost %v", p)
	}
	for range 500 {
		if p := m.observe(repeat(0, 8)...); p > 0 && p < MinPrice {
			t.Errorf("messages without cost make a price of %v", p)
		}
	}
	if p := m.prices[0]; p > 2*MinPrice+MinPrice/4 {
		t.Errorf("messages without cost are measured as %v", p)
	}
}

func TestAPriceIsRoundedUpByAtMostAQuarter(t *testing.T) {
	for cost := time.Duration(1); cost < MaxPrice; cost += cost/7 + 1 {
		if p := rung(cost); p < cost || p > cost+cost/4 || rung(p) != p {
			t.Errorf("%d cost %d, and that %d", cost, p, rung(p))
		}
	}
}

// Time between two drains is not measured.
func TestTimeBetweenDrainsIsNotMeasured(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	m.now = time.Hour
	if p := m.observe(us(20)); p > us(25) {
		t.Errorf("a message of 20 µs costs %v", p)
	}
}

// Messages of somewhat less than half the cost lower the price in time, not at once.
func TestACheaperSampleCountsASixteenth(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"))
	for range 4 {
		m.observe(repeat(us(1000), 8)...)
	}
	ticks := 0
	for ; ticks < 200 && m.observe(repeat(us(450), 8)...) == 0; ticks++ {
	}
	if ticks < 40 || ticks > 90 { // 550 µs times (15/16)^n is the remaining difference.
		t.Errorf("the price fell after %d ticks", ticks)
	}
	e := estimate{mean: us(1600), sample: sample{count: 1, sum: us(800), max: us(800)}}
	if e.judge(); e.mean != us(1550) {
		t.Errorf("a sample of half the mean of 1.6 ms makes one of %v", e.mean)
	}
}

func TestATariffListsAMethodOnce(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "m"), method(1, "n"))
	m.observe(repeat(us(10), 8)...)
	if n := len(m.Tariff.changed); n != 0 {
		t.Errorf("%d methods have samples after all were judged", n)
	}
	m.send(0, 0, 3, 0)
	m.send(1, 0, 3, 0)
	m.drain()
	if n := len(m.Tariff.changed); n != 2 {
		t.Errorf("%d methods have samples, want 2", n)
	}
}

// The half is for all later stages together, however few their messages.
func TestOneMessageOfALaterStageKeepsItsHalf(t *testing.T) {
	m := newMetered(t, Limits{Time: us(100)}, method(0, "m", loop.Update, loop.PreUpdate, loop.PostLateUpdate))
	m.SetPrices([]Price{{0, us(10)}})
	for range 20 {
		m.Push(Item{Method: m.methods[0], From: 1, Stage: loop.PreUpdate, Msg: work{"pre", 0}})
	}
	m.send(0, 2, 1, 0)
	m.Push(Item{Method: m.methods[0], From: 2, Stage: loop.PostLateUpdate, Msg: work{"post", 0}})
	var ran []string
	m.Begin(1, 0)
	if n := m.Drain(loop.PreUpdate, &ran); n != 5 {
		t.Errorf("PreUpdate ran %d, want half of 10", n)
	}
}

// The spender of a tick is the sender with the most time of its messages together, and its method
// is that of its costliest message.
func TestTheSpenderOfATick(t *testing.T) {
	a, b := method(0, "a"), method(1, "b")
	m := newMetered(t, Limits{}, a, b)
	const us = time.Microsecond
	m.send(0, 7, 3, 20*us)
	m.send(1, 8, 1, 50*us)
	m.send(1, 7, 1, 5*us)
	m.drain()
	if got, want := m.Tariff.TakeSpender(), (Spender{7, a, 65 * us}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := m.Tariff.TakeSpender(); got != (Spender{}) {
		t.Errorf("without messages: %+v", got)
	}
	m.send(0, 9, 1, 30*us)
	m.send(1, 3, 1, 30*us)
	m.drain()
	if got := m.Tariff.TakeSpender(); got.From != 3 {
		t.Errorf("of two equal ones %d", got.From)
	}
}
