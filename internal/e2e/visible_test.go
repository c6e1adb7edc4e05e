package e2e_test

import (
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// watcherCounts counts a client's watcher calls for things, by their N.
type watcherCounts map[int32]string

func watchThings(c *client.Client) watcherCounts {
	s := watcherCounts{}
	client.Watch(c, things, client.Watcher[thing]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[thing]) { s[o.State().N] += "+" },
		Despawn: func(_ *netloop.Tick, _ *netloop.Object[thing], last thing) { s[last.N] += "-" },
	})
	return s
}

func (s watcherCounts) want(t *testing.T, who string, n int32, told string) {
	t.Helper()
	if s[n] != told {
		t.Errorf("%s: thing %d: got %q, want %q", who, n, s[n], told)
	}
}

// server returns the server's record of a client.
func server(t *testing.T, tick *netloop.Tick, c *client.Client) *netloop.Client {
	t.Helper()
	s, ok := tick.Client(c.ID())
	if !ok {
		t.Fatalf("client %d is not in the room", c.ID())
	}
	return s
}

func TestVisibleToShowsAndHides(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	a, b := play(t, w, perfect), play(t, w, perfect)
	sa, sb := watchThings(a), watchThings(b)
	var o *netloop.Object[thing]
	w.Tick(func(tick *netloop.Tick) {
		o = things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.To(a.ID())))
		things.Spawn(tick, thing{N: 2}, netloop.VisibleTo(netloop.Target{}))
		things.Spawn(tick, thing{N: 3}, netloop.VisibleTo(netloop.Everyone()))
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) { // Hiding and showing in one tick has no effect.
		o.SetVisible(tick, netloop.To())
		o.SetVisible(tick, netloop.To(a.ID()))
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) { o.SetVisible(tick, netloop.Except(a.ID())) })
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) { o.SetVisible(tick, netloop.Everyone()) })
	w.Step(3)
	sa.want(t, "a", 1, "+-+")
	sb.want(t, "b", 1, "+")
	sa.want(t, "a", 2, "")
	sa.want(t, "a", 3, "+")
	sb.want(t, "b", 3, "+")
	agreed := 0
	for _, c := range []*client.Client{a, b} {
		c.Verify(func(err error) {
			if err != nil {
				t.Error(err)
			}
			agreed++
		})
	}
	w.Until(60, func() bool { return agreed == 2 })
}

// TestTargetFunctionsRunForJoiners: after OnJoin, so a function may use the game's data of the
// client.
func TestTargetFunctionsRunForJoiners(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		red := netloop.NewPerClient[bool](r)
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			*red.Of(c) = c.Join().Token == "red"
			return nil
		})
		r.OnStart(func(tick *netloop.Tick) {
			isRed := netloop.Where(func(c *netloop.Client) bool { return *red.Of(c) })
			things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(isRed))
		})
	})
	a, b := w.Join("red", nil, perfect), w.Join("blue", nil, perfect)
	sa, sb := watchThings(a), watchThings(b)
	w.Step(5)
	sa.want(t, "red", 1, "+")
	sb.want(t, "blue", 1, "")
}

// TestTargetFunctionsDoNotRunForLeavers: no function gets a client that has left.
func TestTargetFunctionsDoNotRunForLeavers(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	stays, leaves := play(t, w, perfect), play(t, w, perfect)
	if err := leaves.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(60)
	var asked []netloop.ClientID
	w.Tick(func(tick *netloop.Tick) {
		things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.Where(func(c *netloop.Client) bool {
			asked = append(asked, c.ID())
			return true
		})))
	})
	w.Step(3)
	if !slices.Equal(asked, []netloop.ClientID{stays.ID()}) {
		t.Errorf("called for %v, and only %d is in the room", asked, stays.ID())
	}
}

// TestTargetFunctionsRunOnlyAfterInvalidate: not in each tick.
func TestTargetFunctionsRunOnlyAfterInvalidate(t *testing.T) {
	open, asked := false, 0
	var o *netloop.Object[thing]
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			o = things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.Where(func(*netloop.Client) bool {
				asked++
				return open
			})))
		})
	}))
	a := play(t, w, perfect)
	s := watchThings(a)
	before := asked
	open = true
	w.Tick(func(tick *netloop.Tick) { o.Edit(tick).X++ })
	w.Step(5)
	s.want(t, "a", 1, "")
	if asked != before {
		t.Errorf("called %d times without a reason", asked-before)
	}
	w.Tick(func(tick *netloop.Tick) { o.Invalidate(tick) })
	w.Step(5)
	s.want(t, "a", 1, "+")
	if asked != before+1 {
		t.Errorf("asked %d times, want once", asked-before)
	}
}

func TestOwnerOfFollowsTheOwner(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	a, b := play(t, w, perfect), play(t, w, perfect)
	sa, sb := watchThings(a), watchThings(b)
	var o *netloop.Object[thing]
	w.Tick(func(tick *netloop.Tick) {
		o = things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(a.ID()))
		o.SetVisible(tick, netloop.OwnerOf(o))
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) { o.SetOwner(tick, b.ID()) })
	w.Step(3)
	sa.want(t, "a", 1, "+-")
	sb.want(t, "b", 1, "+")
}

func TestGroupsShowAndHideTheirObjects(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	team, otherTeam := netloop.NewClientGroup(), netloop.NewClientGroup()
	a, b := play(t, w, perfect), play(t, w, perfect)
	sa, sb := watchThings(a), watchThings(b)
	got := map[netloop.ClientID]int{}
	for _, c := range []*client.Client{a, b} {
		client.Handle(c, told, func(*netloop.Tick, text) { got[c.ID()]++ })
	}
	w.Tick(func(tick *netloop.Tick) {
		team.Add(tick, server(t, tick, a))
		team.Add(tick, server(t, tick, a)) // once is enough
		things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.InGroup(team)))
		things.Spawn(tick, thing{N: 2}, netloop.VisibleTo(netloop.InGroup(team).And(netloop.InGroup(otherTeam))))
		things.Spawn(tick, thing{N: 3}, netloop.VisibleTo(netloop.To(b.ID()).Or(netloop.InGroup(otherTeam)).Except(b.ID())))
		told.Send(tick, netloop.InGroup(team), text{})
	})
	w.Step(3)
	sa.want(t, "a", 1, "+")
	sb.want(t, "b", 1, "")
	if got[a.ID()] != 1 || got[b.ID()] != 0 {
		t.Errorf("the group's message reached %v", got)
	}
	w.Tick(func(tick *netloop.Tick) {
		otherTeam.Add(tick, server(t, tick, a))
		otherTeam.Add(tick, server(t, tick, b))
		team.Add(tick, server(t, tick, b))
		team.Remove(tick, server(t, tick, b)) // within one tick: no effect
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) {
		team.Remove(tick, server(t, tick, a))
		team.Remove(tick, server(t, tick, a))
		team.Add(tick, server(t, tick, b))
		if !team.Has(server(t, tick, b)) || team.Has(server(t, tick, a)) {
			t.Error("the group lacks its members")
		}
	})
	w.Step(3)
	for _, x := range []struct {
		n        int32
		toA, toB string
	}{{1, "+-", "+"}, {2, "+-", "+"}, {3, "+", ""}} {
		sa.want(t, "a", x.n, x.toA)
		sb.want(t, "b", x.n, x.toB)
	}
}

// A client added twice is in the group once, and leaves it with the first Remove.
func TestAMemberIsInItsGroupOnce(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	a := play(t, w, perfect)
	w.Tick(func(tick *netloop.Tick) {
		team, c := netloop.NewClientGroup(), server(t, tick, a)
		team.Add(tick, c)
		team.Add(tick, c)
		if team.Remove(tick, c); team.Has(c) {
			t.Error("it is still in the group")
		}
	})
}

func TestGroupsPerClientAreBounded(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	a := play(t, w, perfect)
	w.Tick(func(tick *netloop.Tick) {
		c := server(t, tick, a)
		for range netloop.MaxClientGroups {
			netloop.NewClientGroup().Add(tick, c)
		}
		defer func() {
			if recover() == nil {
				t.Error("one more group was accepted")
			}
		}()
		netloop.NewClientGroup().Add(tick, c)
	})
}

// TestAPanicOfATargetFunctionHidesTheObject: the room continues, and no client gets the object.
func TestAPanicOfATargetFunctionHidesTheObject(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.Where(func(*netloop.Client) bool { panic("no") })))
			things.Spawn(tick, thing{N: 2})
		})
	}, netlooptest.AllowPanics())
	c := w.Join("", nil, perfect)
	s := watchThings(c)
	w.Step(5)
	s.want(t, "a", 1, "")
	s.want(t, "a", 2, "+")
}

// Each value has the tick of its capture, on both sides.
func TestChangedIsTheServersTick(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	var at []uint64
	client.Watch(c, things, client.Watcher[thing]{
		Spawn:  func(_ *netloop.Tick, o *netloop.Object[thing]) { at = append(at, o.ChangedTick()) },
		Change: func(_ *netloop.Tick, o *netloop.Object[thing], _ thing) { at = append(at, o.ChangedTick()) },
	})
	var o *netloop.Object[thing]
	var want []uint64
	for n := range int32(3) {
		w.Tick(func(tick *netloop.Tick) {
			if want = append(want, tick.Number()+1); n == 0 { // captured in the next tick
				o = things.Spawn(tick, thing{})
			} else {
				o.Edit(tick).N = n
			}
		})
		w.Step(4)
		if o.ChangedTick() != want[n] {
			t.Errorf("the server's value is of tick %d, want %d", o.ChangedTick(), want[n])
		}
	}
	if !slices.Equal(at, want) {
		t.Errorf("the client's values are of the ticks %v, want %v", at, want)
	}
}

// TestAGroupChangeJudgesOnlyItsMember: a change of a group judges only the objects that use it,
// and only for the added or removed client. A group without objects costs no time.
func TestAGroupChangeJudgesOnlyItsMember(t *testing.T) {
	const objects, clients = 30, 8
	asked := map[netloop.ClientID]int{}
	count := netloop.Where(func(c *netloop.Client) bool { asked[c.ID()]++; return true })
	club, other := netloop.NewClientGroup(), netloop.NewClientGroup()
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for i := range objects {
				things.Spawn(tick, thing{N: int32(i)}, netloop.VisibleTo(count.And(netloop.InGroup(club))))
			}
		})
	}))
	var all []*client.Client
	for range clients {
		all = append(all, play(t, w, perfect))
	}
	s := watchThings(all[3])
	change := func(what string, times int, fn func(*netloop.Tick)) {
		t.Helper()
		clear(asked)
		w.Tick(fn)
		w.Step(3)
		for i, c := range all {
			if want := times * objects; i == 3 && asked[c.ID()] != want || i != 3 && asked[c.ID()] != 0 {
				t.Errorf("%s: client %d of %d was judged %d times, want %d of the fourth alone", what, i, clients, asked[c.ID()], want)
			}
		}
	}
	change("added", 1, func(tick *netloop.Tick) { club.Add(tick, server(t, tick, all[3])) })
	change("removed", 1, func(tick *netloop.Tick) { club.Remove(tick, server(t, tick, all[3])) })
	change("both at once", 1, func(tick *netloop.Tick) {
		club.Add(tick, server(t, tick, all[3]))
		club.Remove(tick, server(t, tick, all[3]))
	})
	change("another group", 0, func(tick *netloop.Tick) { other.Add(tick, server(t, tick, all[3])) })
	change("added again", 1, func(tick *netloop.Tick) { club.Add(tick, server(t, tick, all[3])) })
	s.want(t, "the group's new member", 0, "+-+")
}
