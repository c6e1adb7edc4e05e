package e2e_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// TestAWatcherIsCalledOncePerObject adds a watcher between two frames, while a packet with
// another object is queued for the next one.
func TestAWatcherIsCalledOncePerObject(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: 1}) })
	})
	c := play(t, w, perfect)
	w.Tick(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: 2}) })
	var told []int32
	client.Watch(c, things, client.Watcher[thing]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) { told = append(told, o.State().N) },
	})
	w.Step(5)
	if !slices.Equal(told, []int32{1, 2}) {
		t.Errorf("got %v", told)
	}
}

// TestAPanicOfACallbackDoesNotAffectOtherCallbacks panics in the callback of one answer, with
// other answers and a message in the same frame.
func TestAPanicOfACallbackDoesNotAffectOtherCallbacks(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		add.Handle(r, func(tick *netloop.Tick, from *netloop.Client, q pair) (sum, error) {
			told.Send(tick, netloop.To(from.ID()), text{N: uint64(q.A)})
			return sum{q.A + q.B}, nil
		})
	}, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	var heard []uint64
	client.Handle(c, told, func(_ *netloop.Tick, m text) { heard = append(heard, m.N) })
	var sums []int64
	for n := range int64(3) {
		client.Call(c, add, pair{A: n}, func(_ *netloop.Tick, s sum, err error) {
			if n == 0 {
				panic("a bad callback")
			}
			sums = append(sums, s.Sum)
		})
	}
	w.Step(5)
	if !slices.Equal(sums, []int64{1, 2}) || !slices.Equal(heard, []uint64{0, 1, 2}) {
		t.Errorf("answered %v, got %v", sums, heard)
	}
}

// TestCloseFailsPendingCallsAndVerifications: the callbacks of pending calls get a valid tick,
// and a pending Verify gets an error.
func TestCloseFailsPendingCallsAndVerifications(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		add.Handle(r, func(*netloop.Tick, *netloop.Client, pair) (sum, error) { return sum{}, nil })
	})
	c := play(t, w, perfect)
	w.Step(2) // In its first frame a client may not know the tick yet.
	var tick uint64
	var verified error
	client.Call(c, add, pair{}, func(t *netloop.Tick, _ sum, _ error) { tick = t.Number() })
	c.Verify(func(err error) { verified = err })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var closed *netloop.Closed
	if tick == 0 || !errors.As(verified, &closed) {
		t.Errorf("the call failed in tick %d, the verification got %v", tick, verified)
	}
}

// TestRepeatedVerifyIsAnsweredInTime starts a new Verify in each callback, also over a bad link:
// no request waits much longer than the server's second.
func TestRepeatedVerifyIsAnsweredInTime(t *testing.T) {
	for _, link := range []netlooptest.Link{perfect, bad} {
		w := open(t, func(r *netloop.Room) {
			r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: 1}) })
			r.On(netloop.Update, "count", func(tick *netloop.Tick) {
				for o := range things.All(tick) {
					o.Edit(tick).N++
				}
			})
		})
		c := play(t, w, link)
		equal := 0
		var again func(error)
		again = func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			equal++
			c.Verify(again)
		}
		c.Verify(again)
		w.Step(600)
		if equal < 8 || equal > 40 {
			t.Errorf("over %+v %d answers in ten seconds", link, equal)
		}
	}
}

// TestHeldBackSnapshotsAreDistinguishedFromLostOnes: the client's statistics distinguish lost
// snapshots from snapshots that were never sent, because the link or the server's send queue was
// full.
func TestHeldBackSnapshotsAreDistinguishedFromLostOnes(t *testing.T) {
	seeds.OneGoroutine(t)
	const ticks = 600
	run := func(l netlooptest.Link, every int, meanwhile func(w *netlooptest.World, c *client.Client, n int)) client.Stats {
		w := netlooptest.New(t, game{explainSchema, func(r *netloop.Room) {
			var all []*netloop.Object[dialState]
			r.OnStart(func(t *netloop.Tick) {
				for range 20 {
					all = append(all, dials.Spawn(t, dialState{}))
				}
			})
			r.On(netloop.Update, "test.turn", func(t *netloop.Tick) {
				for _, o := range all {
					d := o.Edit(t)
					d.Pos.X++
					d.Pad[t.Number()%100]++
				}
			})
		}}, netlooptest.Room(netloop.RoomSpec{SendEvery: every}))
		c := w.Join("", nil, l)
		w.Until(600, func() bool { return c.State().Phase == client.Playing })
		for n := range ticks {
			if meanwhile != nil {
				meanwhile(w, c, n)
			}
			w.Step(1)
		}
		return c.Stats()
	}
	delay := 20 * time.Millisecond
	if s := run(netlooptest.Link{Delay: delay}, 1, nil); s.Lost != 0 || s.HeldBack != 0 || s.Snapshots < ticks {
		t.Errorf("a good link: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
	}
	if s := run(netlooptest.Link{Delay: delay}, 3, nil); s.Lost != 0 || s.HeldBack != 0 || s.Snapshots < ticks/3 {
		t.Errorf("every third tick: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
	}
	s := run(netlooptest.Link{Delay: delay, Loss: 0.1}, 1, nil)
	if share := float64(s.Lost) / float64(s.Lost+s.Packets+s.Stale); share < 0.06 || share > 0.14 || s.HeldBack > s.Lost/10 {
		t.Errorf("a link that loses a tenth: %d of %d lost, %d held back", s.Lost, s.Lost+s.Packets, s.HeldBack)
	}
	s = run(netlooptest.Link{Delay: delay, Bandwidth: 250_000, Buffer: time.Second}, 1, nil)
	if s.Lost != 0 || s.HeldBack < ticks/4 || s.HeldBack+s.Snapshots < ticks*9/10 {
		t.Errorf("a narrow link: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
	}
	s = run(perfect, 1, func(w *netlooptest.World, c *client.Client, n int) { w.Stall(c, n%100 < 40) })
	if s.Lost != 0 || s.HeldBack < ticks/4 {
		t.Errorf("a server that cannot send: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
	}
}
