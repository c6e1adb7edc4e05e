package e2e_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestChokeIsToldApartFromLoss: a client knows whether what it lacks was lost on the way or was
// never sent, because its link or the server's end of it had no room.
func TestChokeIsToldApartFromLoss(t *testing.T) {
	const ticks = 600
	run := func(l netlooptest.Link, every int, meanwhile func(w *netlooptest.World, c *client.Client, n int)) client.Stats {
		w := netlooptest.New(t, panels(func(r *netloop.Room) {
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
		}), netlooptest.Room(netloop.RoomSpec{SendEvery: every}))
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
		t.Errorf("a sound link: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
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
		t.Errorf("a server that does not get to send: %d lost, %d held back, %d snapshots", s.Lost, s.HeldBack, s.Snapshots)
	}
}
