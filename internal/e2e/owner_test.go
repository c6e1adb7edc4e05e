package e2e_test

import (
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// Both sides iterate over a class by owner, in id order.
func TestOwnedIteratesOneClientsObjectsOnBothSides(t *testing.T) {
	var mine netloop.ClientID
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			mine = c.ID()
			for i := range int32(5) {
				things.Spawn(tick, thing{N: i})
				things.Spawn(tick, thing{N: 10 + i}, netloop.OwnedBy(c.ID()))
				notes.Spawn(tick, note{}, netloop.OwnedBy(c.ID()))
			}
			return nil
		})
	})
	c := play(t, w, perfect)
	walk := func(by netloop.ClientID) (both [2][]int32) {
		for side, look := range []func(func(*netloop.Tick)){w.Tick, func(fn func(*netloop.Tick)) { w.Look(c, fn) }} {
			look(func(tick *netloop.Tick) {
				for o := range things.Owned(tick, by) {
					both[side] = append(both[side], o.State().N)
				}
			})
		}
		return both
	}
	check := func(by netloop.ClientID, want ...int32) {
		t.Helper()
		for side, got := range walk(by) {
			if !slices.Equal(got, want) {
				t.Errorf("side %d iterates over %v of client %d, want %v", side, got, by, want)
			}
		}
	}
	check(mine, 10, 11, 12, 13, 14)
	check(0, 0, 1, 2, 3, 4)
	check(mine + 1)

	w.Tick(func(tick *netloop.Tick) {
		for o := range things.Owned(tick, mine) {
			if o.State().N%2 == 0 {
				o.SetOwner(tick, 0)
			}
		}
	})
	w.Step(2)
	check(mine, 11, 13)
}

// Both sides count a class and find an object by its id.
func TestLenAndGetOnBothSides(t *testing.T) {
	var kept netloop.Ref[thing]
	elsewhere := netloop.NewClass[thing](netloop.NewSchema("elsewhere", 1, 0), "thing")
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for i := range int32(70) {
				kept = things.Spawn(tick, thing{N: i}).Ref()
			}
			things.Spawn(tick, thing{}, netloop.VisibleTo(netloop.To()))
		})
	})
	c := play(t, w, perfect)
	check := func(want [2]int, there bool) {
		t.Helper()
		for side, look := range []func(func(*netloop.Tick)){w.Tick, func(fn func(*netloop.Tick)) { w.Look(c, fn) }} {
			look(func(tick *netloop.Tick) {
				if n, m := things.Len(tick), notes.Len(tick); n != want[side] || m != 0 || elsewhere.Len(tick) != 0 {
					t.Errorf("side %d has %d things and %d notes, want %d and none", side, n, m, want[side])
				}
				if o, ok := kept.Get(tick); ok != there || ok && o.State().N != 69 {
					t.Errorf("side %d finds %v", side, ok)
				}
			})
		}
	}
	check([2]int{71, 70}, true)
	w.Tick(func(tick *netloop.Tick) {
		o, _ := kept.Get(tick)
		o.Despawn(tick)
	})
	w.Step(2)
	check([2]int{70, 69}, false)
}

// A client that has left owns no objects: an object assigned to it later gets the state that its
// leave would have given it.
func TestAClientThatHasLeftCannotOwnObjects(t *testing.T) {
	var gone netloop.ClientID
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { gone = c.ID(); return nil })
	})
	leaver := play(t, w, perfect)
	if err := leaver.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(10)
	given := gone
	stays := play(t, w, perfect)

	var dead, kept, passed, passedKept *netloop.Object[thing]
	w.Tick(func(tick *netloop.Tick) {
		dead = things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(given))
		kept = things.Spawn(tick, thing{N: 2}, netloop.OwnedBy(given), netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
		passed = things.Spawn(tick, thing{N: 3}, netloop.OwnedBy(gone))
		passedKept = things.Spawn(tick, thing{N: 4}, netloop.OwnedBy(gone), netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
	})
	w.Step(2)
	if dead.Alive() || !kept.Alive() || kept.Owner() != 0 {
		t.Errorf("despawning: alive %v; kept: alive %v, owner %d", dead.Alive(), kept.Alive(), kept.Owner())
	}
	if n := len(look(w, stays, things)); n != 3 {
		t.Errorf("the client sees %d objects, want 3", n)
	}
	w.Tick(func(tick *netloop.Tick) {
		passed.SetOwner(tick, given)
		passedKept.SetOwner(tick, given)
		dead.SetOwner(tick, given) // no effect on a despawned object
		dead.SetVisible(tick, netloop.To(gone))
	})
	w.Step(2)
	if passed.Alive() || !passedKept.Alive() || passedKept.Owner() != 0 {
		t.Errorf("given away: alive %v; kept: alive %v, owner %d", passed.Alive(), passedKept.Alive(), passedKept.Owner())
	}
	if n := len(look(w, stays, things)); n != 2 {
		t.Errorf("the client sees %d objects, want 2", n)
	}
}

// Objects that OnLeave spawns for the leaver are treated like its others.
func TestObjectsSpawnedInOnLeaveLeaveWithTheirOwner(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnLeave(func(tick *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
			things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(c.ID()))
			things.Spawn(tick, thing{N: 2}, netloop.OwnedBy(c.ID()), netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
		})
	})
	leaver, stays := play(t, w, perfect), play(t, w, netlooptest.Link{})
	if err := leaver.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(10)
	if got := look(w, stays, things); len(got) != 1 {
		t.Errorf("the client sees %v, want the kept one alone", got)
	}
}
