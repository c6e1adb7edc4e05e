package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

func TestExplainNotDue(t *testing.T) {
	a := newAsker(t, perfect, netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	for range 6 {
		a.move()
		a.Step(1)
		x := a.ask("Pos.X")
		if want := x.Tick%3 == 0; want != (x.Reason == netloop.ReasonSent) || !want && x.Reason != netloop.ReasonNotDue {
			t.Error(x)
		}
	}
}

func TestExplainSlotBusy(t *testing.T) {
	a := newAsker(t, perfect)
	a.Stall(a.c, true)
	a.Step(2) // the first snapshot takes the slot
	a.move()
	a.Step(1)
	a.want("Pos.X", netloop.ReasonSlotBusy)
	a.Stall(a.c, false)
	a.Step(1)
	a.want("Pos.X", netloop.ReasonSent)
}

func TestExplainWindowClosed(t *testing.T) {
	a := newAsker(t, perfect)
	a.Cut(a.c)
	a.Step(20)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Pad[0], d.Pad[40] = 1, 2 })
	for range 60 { // Probes leave sometimes; this one is too large.
		a.Step(1)
		a.want("Pad", netloop.ReasonWindowClosed)
	}
}

func TestExplainShed(t *testing.T) {
	var load time.Duration
	var a *asker
	var o *netloop.Object[lamp]
	a = askerOf(t, game{explainSchema, func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { o = lamps.Spawn(t, lamp{}) })
		r.On(netloop.Update, "test.load", func(*netloop.Tick) {
			if load > 0 {
				a.Spend(load)
			}
		})
	}}, perfect)
	load = 20 * time.Millisecond
	a.Until(2000, func() bool { return a.c.Overload() >= netloop.OverloadShedding })
	a.Tick(func(tick *netloop.Tick) { o.Edit(tick).On = 7 })
	a.Step(1)
	a.Until(4, func() bool { return explain(a, o, "On").Reason != netloop.ReasonNotDue })
	if x := explain(a, o, "On"); x.Reason != netloop.ReasonShed {
		t.Error(x)
	}
}

// spawnMoving spawns n dials and changes them all in each tick.
func (a *asker) spawnMoving(n, budget int) (all []*netloop.Object[dialState]) {
	a.Tick(func(tick *netloop.Tick) {
		for range n {
			var d dialState
			d.Pos.X, d.Pos.Y = int32(tick.Rand().Uint32()), int32(tick.Rand().Uint32())
			all = append(all, dials.Spawn(tick, d))
		}
		c, _ := tick.Client(a.c.ID())
		c.SetBudget(tick, budget)
	})
	return all
}

func (a *asker) reasons(all []*netloop.Object[dialState]) map[netloop.Reason]int {
	n := map[netloop.Reason]int{}
	for _, o := range all {
		n[explain(a, o, "Pos.X").Reason]++
	}
	return n
}

func TestExplainBudget(t *testing.T) {
	a := newAsker(t, perfect)
	all := a.spawnMoving(40, 60)
	a.Step(1)
	if n := a.reasons(all); n[netloop.ReasonSent] == 0 || n[netloop.ReasonBudget] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonBudget] != 40 {
		t.Error(n)
	}
}

func TestExplainPackets(t *testing.T) {
	a := newAsker(t, perfect)
	all := a.spawnMoving(2000, 1<<20)
	a.Step(1)
	if n := a.reasons(all); n[netloop.ReasonSent] == 0 || n[netloop.ReasonPackets] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonPackets] != 2000 {
		t.Error(n)
	}
}

func TestExplainStreamAndStreamFull(t *testing.T) {
	a := newAsker(t, far)
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*netloop.Object[chart]
	a.Tick(func(tick *netloop.Tick) {
		for range 12 {
			all = append(all, charts.Spawn(tick, chart{lines(rng, 1200)}))
		}
		c, _ := tick.Client(a.c.ID())
		c.SetBudget(tick, 1<<20)
	})
	count := func() map[netloop.Reason]int {
		n := map[netloop.Reason]int{}
		for _, o := range all {
			n[explain(a, o, "").Reason]++
		}
		return n
	}
	a.Step(1)
	n := count()
	if n[netloop.ReasonSent] == 0 || n[netloop.ReasonStreamFull] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonStreamFull] != 12 {
		t.Error(n)
	}
	a.Step(1)
	if m := count(); m[netloop.ReasonStream] != n[netloop.ReasonSent] || m[netloop.ReasonStreamFull] != n[netloop.ReasonStreamFull] {
		t.Error(m, "after", n)
	}
	a.Until(200, func() bool { return count()[netloop.ReasonNotEdited] == 12 })
}

// Between poll and snapshot a change may be neither in flight nor deferred: its packet has just
// been counted as lost.
func TestExplainNext(t *testing.T) {
	seen := map[netloop.Reason]int{}
	var a *asker
	a = askerOf(t, game{explainSchema, func(r *netloop.Room) {
		r.On(netloop.Update, "test.ask", func(t *netloop.Tick) {
			for c := range t.Clients() {
				if a == nil || a.dial == nil {
					return
				}
				if x, err := a.dial.Explain(t, c, "Pos.X"); err == nil {
					seen[x.Reason]++
				}
			}
		})
	}}, netlooptest.Link{Delay: 50 * time.Millisecond, Loss: 0.4})
	for range 60 {
		a.move()
		a.Step(10)
	}
	if seen[netloop.ReasonNext] == 0 || seen[netloop.ReasonNext] > 60 || seen[netloop.ReasonInFlight] == 0 {
		t.Error(seen)
	}
}
