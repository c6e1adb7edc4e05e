package e2e_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestObserversAreExact: a message to an object's observers reaches no other client, even if the
// observers changed in the tick of sending.
func TestObserversAreExact(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	a, b := play(t, w, perfect), play(t, w, perfect)
	got := map[netloop.ClientID]string{}
	for _, c := range []*client.Client{a, b} {
		client.Handle(c, told, func(_ *netloop.Tick, m text) { got[c.ID()] += m.S })
	}
	var o *netloop.Object[thing]
	tell := func(tick *netloop.Tick, s string) { told.Send(tick, netloop.Observers(o), text{S: s}) }
	w.Tick(func(tick *netloop.Tick) {
		o = things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.To(a.ID())))
		tell(tick, "1")
	})
	w.Step(2)
	w.Tick(func(tick *netloop.Tick) {
		tell(tick, "2")
		o.SetVisible(tick, netloop.To(b.ID()))
		tell(tick, "3")
	})
	w.Step(2)
	w.Tick(func(tick *netloop.Tick) {
		tell(tick, "4")
		o.Despawn(tick)
		tell(tick, "5")
	})
	w.Step(2)
	if got[a.ID()] != "12" || got[b.ID()] != "34" {
		t.Errorf("a got %q, b %q", got[a.ID()], got[b.ID()])
	}
}

// TestObserversIncludeObjectsOfTheSameTick: an object of this tick has all its viewers as
// observers, and a client of this tick observes all existing visible objects.
func TestObserversIncludeObjectsOfTheSameTick(t *testing.T) {
	var old *netloop.Object[thing]
	got := 0
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { old = things.Spawn(tick, thing{}) })
		r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error {
			told.Send(tick, netloop.Observers(old), text{S: "old"})
			told.Send(tick, netloop.Observers(things.Spawn(tick, thing{})), text{S: "new"})
			return nil
		})
	})
	c := w.Join("", nil, perfect)
	client.Handle(c, told, func(*netloop.Tick, text) { got++ })
	w.Step(5)
	if got != 2 {
		t.Errorf("%d of 2 messages arrived", got)
	}
}

// TestObserversOfAnObjectOnAGrid: the clients to which the grid shows it.
func TestObserversOfAnObjectOnAGrid(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	c := play(t, w, perfect)
	var near, far *netloop.Object[body]
	w.Tick(func(tick *netloop.Tick) {
		near, far = bodies.Spawn(tick, body{N: 100}), bodies.Spawn(tick, body{N: 101, X: 500})
		for n, o := range []*netloop.Object[body]{near, far} { // in the tick of their spawn
			signs.Spawn(tick, sign{int32(n)}, netloop.VisibleTo(netloop.Observers(o)))
		}
	})
	w.Step(3)
	want := func(n int32) {
		t.Helper()
		var got []int32
		w.Look(c, func(tick *netloop.Tick) {
			for o := range signs.All(tick) {
				got = append(got, o.State().N)
			}
		})
		if len(got) != 1 || got[0] != n {
			t.Errorf("the client has the signs %v, want that of %d", got, n)
		}
	}
	want(0)
	w.Tick(func(tick *netloop.Tick) { near.Edit(tick).X, far.Edit(tick).X = 500, 0 })
	w.Step(2)
	w.Tick(func(tick *netloop.Tick) {
		for o := range signs.All(tick) {
			o.Invalidate(tick)
		}
	})
	w.Step(2)
	want(1)
}
