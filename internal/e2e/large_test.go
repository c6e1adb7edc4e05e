package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A game with values larger than a packet: each ledger is a list of up to 12 kB.
var (
	largeSchema = netloop.NewSchema("large", 1, 0)
	ledgers     = netloop.NewClass[ledger](largeSchema, "ledger")
	entered     = netloop.NewRPC[entry](largeSchema, "entered")
	ballasts    = netloop.NewRPC[parcel](largeSchema, "ballast")
)

type ledger struct {
	N     uint32
	Lines []line `net:"max=1200"`
}

type line struct {
	ID    uint32
	Count int16
}

type entry struct{ Ledger netloop.Ref[ledger] }

func (l ledger) equal(o ledger) bool { return l.N == o.N && slices.Equal(l.Lines, o.Lines) }

func lines(rng *rand.Rand, n int) []line {
	list := make([]line, n)
	for i := range list {
		list[i] = line{1<<24 + rng.Uint32N(1<<24), int16(rng.IntN(4000))}
	}
	return list
}

// books makes random edits of ledgers and keeps the test's own copy.
type books struct {
	rng  *rand.Rand
	list []*netloop.Object[ledger]
	want map[netloop.Ref[ledger]]ledger
}

func newBooks(seed uint64) *books {
	return &books{rng: rand.New(rand.NewPCG(seed, 9)), want: map[netloop.Ref[ledger]]ledger{}}
}

// change makes one random change, mostly a small one of a large value.
func (b *books) change(t *netloop.Tick) {
	k := b.rng.IntN(20)
	if len(b.list) == 0 || k == 0 && len(b.list) < 8 {
		l := ledger{Lines: lines(b.rng, b.rng.IntN(1200))}
		// A ledger survives its owner, so the copy needs no owners.
		o := ledgers.Spawn(t, l, netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
		b.list, b.want[o.Ref()] = append(b.list, o), l
		return
	}
	i := b.rng.IntN(len(b.list))
	o := b.list[i]
	switch k {
	case 1:
		o.Despawn(t)
		delete(b.want, o.Ref())
		b.list = slices.Delete(b.list, i, i+1)
		return
	case 2:
		o.SetOwner(t, netloop.ClientID(b.rng.IntN(3)))
	case 3: // hidden for some ticks, or for good once changes have ended
		o.SetVisible(t, netloop.To())
	case 4, 5, 6:
		o.SetVisible(t, netloop.Everyone())
	case 7:
		o.Edit(t).Lines = lines(b.rng, b.rng.IntN(1200))
	default:
		e := o.Edit(t)
		e.N++
		if len(e.Lines) > 0 {
			e.Lines[b.rng.IntN(len(e.Lines))].Count++
		}
	}
	s := o.State()
	b.want[o.Ref()] = ledger{s.N, slices.Clone(s.Lines)}
}

// differs returns the first difference between a client and the books.
func (b *books) differs(w *netlooptest.World, c *client.Client) (err error) {
	w.Look(c, func(t *netloop.Tick) {
		n := 0
		for o := range ledgers.All(t) {
			n++
			if want, ok := b.want[o.Ref()]; !ok || !want.equal(o.State()) {
				err = fmt.Errorf("a ledger of %d lines at %d, want %d at %d", len(o.State().Lines), o.State().N, len(want.Lines), want.N)
			}
		}
		if n != len(b.want) {
			err = fmt.Errorf("%d ledgers, want %d", n, len(b.want))
		}
	})
	return err
}

// A joiner is loading until the last of its large values has arrived.
func TestAJoinerLoadsUntilItsLargeValuesArrive(t *testing.T) {
	w := netlooptest.New(t, game{schema: largeSchema})
	b := newBooks(1)
	for range 5 {
		w.Tick(func(t *netloop.Tick) {
			l := ledger{Lines: lines(b.rng, 800)}
			b.want[ledgers.Spawn(t, l).Ref()] = l
		})
	}
	w.Step(1)
	c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.05})
	c.OnState(func(s client.State) {
		if s.Phase == client.Playing {
			if err := b.differs(w, c); err != nil {
				t.Error("playing with", err)
			}
		}
	})
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
}

// A message WithState runs once the large object that it refers to has arrived.
func TestMessageWithStateWaitsForALargeObject(t *testing.T) {
	var o *netloop.Object[ledger]
	w := netlooptest.New(t, game{schema: largeSchema})
	c := w.Join("", nil, bad)
	found := 0
	client.Handle(c, entered, func(tick *netloop.Tick, m entry) {
		if it, ok := m.Ledger.Get(tick); ok && it.State().equal(o.State()) {
			found++
		} else {
			t.Error("the message ran before its object")
		}
	})
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	rng := rand.New(rand.NewPCG(4, 4))
	for range 5 {
		w.Tick(func(tick *netloop.Tick) {
			o = ledgers.Spawn(tick, ledger{Lines: lines(rng, 900)})
			entered.Send(tick, netloop.Everyone(), entry{o.Ref()}, netloop.WithState())
		})
		before := found
		w.Until(100, func() bool { return found == before+1 })
	}
}

// While a client's stream lags, its large values wait and other data is sent.
func TestLargeValuesWaitForALaggingStream(t *testing.T) {
	var counter *netloop.Object[ledger]
	w := netlooptest.New(t, game{largeSchema, func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { counter = ledgers.Spawn(t, ledger{}) })
		r.On(netloop.Update, "test.count", func(t *netloop.Tick) { counter.Edit(t).N++ })
	}})
	slow := netlooptest.Link{Bandwidth: 400_000, Buffer: time.Second} // 50 kB/s
	c := w.Join("", nil, slow)
	client.Handle(c, ballasts, func(*netloop.Tick, parcel) {})
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	large := ledger{Lines: lines(rand.New(rand.NewPCG(1, 1)), 1000)}
	w.Tick(func(tick *netloop.Tick) {
		for range 8 { // 120 kB: more than half of the limit
			ballasts.Send(tick, netloop.Everyone(), parcel{B: make([]byte, 15_000)})
		}
	})
	w.Step(2)
	w.Tick(func(tick *netloop.Tick) { ledgers.Spawn(tick, large) })
	shown := func() (n uint32, has bool) {
		w.Look(c, func(tick *netloop.Tick) {
			for o := range ledgers.All(tick) {
				n, has = max(n, o.State().N), has || o.State().equal(large)
			}
		})
		return n, has
	}
	before, _ := shown()
	w.Step(60)
	if after, has := shown(); has || after < before+20 {
		t.Errorf("after a second the client has it: %v; it has counted from %d to %d", has, before, after)
	}
	w.Until(1200, func() bool { _, has := shown(); return has })
	if closed := c.Closed(); closed != nil {
		t.Errorf("the client was closed: %v", closed)
	}
}

func TestLargeStateReplays(t *testing.T) {
	var file bytes.Buffer
	b := newBooks(2)
	var change bool
	changing := func(b *books) game {
		return game{largeSchema, func(r *netloop.Room) {
			r.On(netloop.Update, "test.change", func(t *netloop.Tick) {
				if change = !change; change {
					b.change(t)
				}
			})
		}}
	}
	w := netlooptest.New(t, changing(b), netlooptest.Record(&file))
	w.Join("", nil, bad)
	w.Step(250)
	change = false
	p, err := netloop.NewReplay(netloop.Config{}, changing(newBooks(2)), bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for err == nil {
		if _, err = p.Step(); err == nil {
			ticks++
		}
	}
	if !errors.Is(err, io.EOF) || ticks != 250 {
		t.Errorf("%d ticks, %v", ticks, err)
	}
}

// A large list over real sockets.
func TestLargeListOverQUIC(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	list := lines(rng, 800)
	edit := make(chan struct{}, 1)
	s, _ := serve(t, game{largeSchema, func(r *netloop.Room) {
		var o *netloop.Object[ledger]
		r.OnStart(func(t *netloop.Tick) { o = ledgers.Spawn(t, ledger{Lines: list}) })
		r.On(netloop.Update, "test.edit", func(t *netloop.Tick) {
			select {
			case <-edit:
				o.Edit(t).N = 1
			default:
			}
		})
	}}, 60)
	whole, edited := make(chan int, 1), make(chan uint64, 1)
	start(t, connectTo(t, s.Addr().String(), largeSchema), func(cl *client.Client) {
		client.Watch(cl, ledgers, client.Watcher[ledger]{
			Spawn: func(_ *netloop.Tick, o *netloop.Object[ledger]) { whole <- len(o.State().Lines); edit <- struct{}{} },
			Change: func(_ *netloop.Tick, o *netloop.Object[ledger], _ ledger) {
				if !o.State().equal(ledger{1, list}) {
					t.Error("another value")
				}
				edited <- cl.Stats().Records
			},
		})
	})
	within := time.After(10 * time.Second)
	select {
	case n := <-whole:
		if n != 800 {
			t.Errorf("%d lines", n)
		}
	case <-within:
		t.Fatal("the list does not arrive")
	}
	select {
	case records := <-edited:
		if records != 1 {
			t.Errorf("%d large records", records)
		}
	case <-within:
		t.Fatal("the change does not arrive")
	}
}
