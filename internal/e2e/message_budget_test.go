package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A burst within the rate limits fits into the queues behind them.
func TestABurstWithinTheLimitsArrivesWhole(t *testing.T) {
	for _, limits := range []netloop.RPCLimits{{}, {Burst: 5000}} {
		const standard = 2000
		ran, burst := 0, max(limits.Burst, standard)
		w := open(t, func(r *netloop.Room) {
			echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { ran++; return nil })
		}, netlooptest.Limits(limits))
		c := play(t, w, perfect)
		for range 2 { // The second burst exceeds the rate.
			for range burst {
				client.Send(c, echo, text{})
			}
			w.Step(10)
		}
		if ran != 2*burst || c.Closed() != nil {
			t.Errorf("a burst of %d: %d ran of twice as many, closed: %v", burst, ran, c.Closed())
		}
	}
}

const period = time.Second / 60

// expensive is a room with handlers of 100 µs each.
type expensive struct {
	spend   func(time.Duration)
	now     func() time.Duration
	ran     []string // of the tick
	began   time.Duration
	longest time.Duration // longest time of all messages of a tick
	drained time.Duration // time of the messages of the last tick
}

func (d *expensive) game(r *netloop.Room) {
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		things.Spawn(t, thing{}, netloop.OwnedBy(c.ID()))
		return nil
	})
	echo.Handle(r, func(t *netloop.Tick, from *netloop.Client, m text) error {
		d.spend(100 * time.Microsecond)
		d.ran = append(d.ran, fmt.Sprint(m.S, m.N))
		for o := range things.All(t) {
			if o.Owner() == from.ID() {
				o.Edit(t).N++
			}
		}
		return nil
	})
	r.On(netloop.Initialization, "test.begin", func(*netloop.Tick) { d.began, d.ran = d.now(), d.ran[:0] })
	r.On(netloop.Update, "test.drained", func(*netloop.Tick) {
		d.drained = d.now() - d.began
		d.longest = max(d.longest, d.drained)
	}, netloop.After("rpc.drain"))
}

func newExpensive(t *testing.T, o ...netlooptest.Option) (*expensive, *netlooptest.World) {
	d := new(expensive)
	w := open(t, d.game, o...)
	d.spend, d.now = w.Spend, w.Now
	return d, w
}

// warmUp sends messages of one client until the room has measured their cost.
func (d *expensive) warmUp(w *netlooptest.World, c *client.Client) {
	for range 20 {
		client.Send(c, echo, text{})
		w.Step(1)
	}
	d.longest = 0
}

// One client's burst takes only its share of each tick, messages of other clients run in the tick
// of their arrival, and the whole burst runs in the end, in order.
func TestABurstOfExpensiveMessagesIsSpreadOverTicks(t *testing.T) {
	d, w := newExpensive(t)
	quiet, flooder := play(t, w, perfect), play(t, w, perfect)
	d.warmUp(w, quiet)
	const burst = 1000
	for n := range burst {
		client.Send(flooder, echo, text{S: "flood ", N: uint64(n)})
	}
	var flooded []string
	for n := range uint64(burst) {
		client.Send(quiet, echo, text{S: "quiet ", N: n})
		w.Step(1)
		if n > 0 && !slices.Contains(d.ran, fmt.Sprint("quiet ", n-1)) {
			t.Fatalf("tick %d: the quiet client's message waits", n)
		}
		for _, s := range d.ran {
			if s[0] == 'f' {
				flooded = append(flooded, s)
			}
		}
		if len(flooded) == burst {
			break
		}
	}
	if limit := period/20 + 100*time.Microsecond; d.longest > limit {
		t.Errorf("messages took %v of a tick, want at most %v", d.longest, limit)
	}
	if len(flooded) != burst {
		t.Errorf("of the burst, %d of %d ran", len(flooded), burst)
	}
	for n, s := range flooded {
		if s != fmt.Sprint("flood ", n) {
			t.Fatalf("%q ran at place %d", s, n)
		}
	}
}

// Bursts of many clients take half of a tick at most, and an early stage takes half of the budget
// that remains for it and later stages.
func TestManyBurstsTakeAtMostHalfOfATick(t *testing.T) {
	d, w := newExpensive(t)
	quiet := play(t, w, perfect)
	d.warmUp(w, quiet)
	var flooders []*client.Client
	for range 40 {
		flooders = append(flooders, play(t, w, perfect))
	}
	for n := range uint64(20) {
		for _, c := range flooders {
			for range 10 {
				client.Send(c, echo, text{S: "flood ", N: n}, netloop.RunAt(netloop.EarlyUpdate))
			}
		}
		client.Send(quiet, echo, text{S: "quiet ", N: n})
		w.Step(1)
		if n > 0 && !slices.Contains(d.ran, fmt.Sprint("quiet ", n-1)) {
			t.Fatalf("tick %d: the quiet client's message waits behind %d others", n, len(d.ran))
		}
	}
	if d.longest > period/2 || d.longest < period/5 {
		t.Errorf("messages took %v of a tick, want at most %v", d.longest, period/2)
	}
}

// A method that becomes expensive makes few ticks too long: its price follows its cost.
func TestPricesFollowTheCostOfMessages(t *testing.T) {
	d, w := newExpensive(t)
	flooder := play(t, w, perfect)
	cheap := d.spend
	d.spend = func(time.Duration) { cheap(time.Microsecond) }
	flood := func(ticks int) (tooLong int) {
		for range ticks {
			for range 100 {
				client.Send(flooder, echo, text{})
			}
			w.Step(1)
			if d.drained > period/10 {
				tooLong++
			}
		}
		return tooLong
	}
	flood(30)
	d.spend = func(time.Duration) { cheap(200 * time.Microsecond) }
	if n := flood(30); n == 0 || n > 4 {
		t.Errorf("%d ticks took too long until the price was known, want 1 to 4", n)
	}
}

// One message runs at any price, so no message waits forever.
func TestAMessageLongerThanATickRuns(t *testing.T) {
	d, w := newExpensive(t)
	c, other := play(t, w, perfect), play(t, w, perfect)
	spend := d.spend
	d.spend = func(time.Duration) { spend(12 * time.Millisecond) }
	d.warmUp(w, c)
	w.Step(1)
	for n := range uint64(3) {
		client.Send(c, echo, text{S: "c", N: n})
		client.Send(other, echo, text{S: "other", N: n})
	}
	var ran []string
	for range 8 {
		w.Step(1)
		ran = append(ran, d.ran...)
	}
	if want := []string{"other0", "c0", "other1", "c1", "other2", "c2"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// A replay uses the recorded prices, not the costs during the replay.
func TestPricesReplay(t *testing.T) {
	var file bytes.Buffer
	d, w := newExpensive(t, netlooptest.Record(&file))
	c := play(t, w, perfect)
	for range 200 {
		client.Send(c, echo, text{})
	}
	w.Step(60)
	d.spend, d.now = func(time.Duration) {}, func() time.Duration { return 0 }
	p, err := netloop.NewReplay(netloop.Config{}, script(d.game), &file)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
