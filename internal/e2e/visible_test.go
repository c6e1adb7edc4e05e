package e2e_test

import (
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// sighting counts what a client is told of things, by their N.
type sighting map[int32]string

func sight(c *client.Client) sighting {
	s := sighting{}
	client.Watch(c, things, client.Watcher[thing]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[thing]) { s[o.State().N] += "+" },
		Despawn: func(_ *netloop.Tick, _ *netloop.Object[thing], last thing) { s[last.N] += "-" },
	})
	return s
}

func (s sighting) want(t *testing.T, who string, n int32, told string) {
	t.Helper()
	if s[n] != told {
		t.Errorf("%s: thing %d: told %q, want %q", who, n, s[n], told)
	}
}

// server looks up the server's record of a client.
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
	sa, sb := sight(a), sight(b)
	var o *netloop.Object[thing]
	w.Tick(func(tick *netloop.Tick) {
		o = things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.To(a.ID())))
		things.Spawn(tick, thing{N: 2}, netloop.VisibleTo(netloop.Target{}))
		things.Spawn(tick, thing{N: 3}, netloop.VisibleTo(netloop.Everyone()))
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) { // Hiding and showing in one tick is nothing.
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

// TestTargetsAreAskedForJoiners: after OnJoin has run, so that a function may read
// what the game knows of the client by then.
func TestTargetsAreAskedForJoiners(t *testing.T) {
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
	sa, sb := sight(a), sight(b)
	w.Step(5)
	sa.want(t, "red", 1, "+")
	sb.want(t, "blue", 1, "")
}

// TestTargetsAreNotAskedForLeavers: nothing of the room looks at a client that has gone.
func TestTargetsAreNotAskedForLeavers(t *testing.T) {
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
		t.Errorf("asked for %v, and %d alone is there", asked, stays.ID())
	}
}

// TestFunctionsAreAskedOnlyWhenTold: not each tick.
func TestFunctionsAreAskedOnlyWhenTold(t *testing.T) {
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
	s := sight(a)
	before := asked
	open = true
	w.Tick(func(tick *netloop.Tick) { o.Edit(tick).X++ })
	w.Step(5)
	s.want(t, "a", 1, "")
	if asked != before {
		t.Errorf("asked %d times without a reason", asked-before)
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
	sa, sb := sight(a), sight(b)
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
	team, spies := netloop.NewClientGroup(), netloop.NewClientGroup()
	a, b := play(t, w, perfect), play(t, w, perfect)
	sa, sb := sight(a), sight(b)
	got := map[netloop.ClientID]int{}
	for _, c := range []*client.Client{a, b} {
		client.Handle(c, told, func(*netloop.Tick, text) { got[c.ID()]++ })
	}
	w.Tick(func(tick *netloop.Tick) {
		team.Add(tick, server(t, tick, a))
		team.Add(tick, server(t, tick, a)) // once is enough
		things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.InGroup(team)))
		things.Spawn(tick, thing{N: 2}, netloop.VisibleTo(netloop.InGroup(team).And(netloop.InGroup(spies))))
		things.Spawn(tick, thing{N: 3}, netloop.VisibleTo(netloop.To(b.ID()).Or(netloop.InGroup(spies)).Except(b.ID())))
		told.Send(tick, netloop.InGroup(team), text{})
	})
	w.Step(3)
	sa.want(t, "a", 1, "+")
	sb.want(t, "b", 1, "")
	if got[a.ID()] != 1 || got[b.ID()] != 0 {
		t.Errorf("the group's message reached %v", got)
	}
	w.Tick(func(tick *netloop.Tick) {
		spies.Add(tick, server(t, tick, a))
		spies.Add(tick, server(t, tick, b))
		team.Add(tick, server(t, tick, b))
		team.Remove(tick, server(t, tick, b)) // within one tick: nothing
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) {
		team.Remove(tick, server(t, tick, a))
		team.Remove(tick, server(t, tick, a))
		team.Add(tick, server(t, tick, b))
		if !team.Has(server(t, tick, b)) || team.Has(server(t, tick, a)) {
			t.Error("the group does not know its members")
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

// Who was added twice is in the group once, and gone with the first Remove.
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

// TestTargetThatPanicsHides: the room goes on, and what nobody may judge nobody has.
func TestTargetThatPanicsHides(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			things.Spawn(tick, thing{N: 1}, netloop.VisibleTo(netloop.Where(func(*netloop.Client) bool { panic("no") })))
			things.Spawn(tick, thing{N: 2})
		})
	}, netlooptest.AllowPanics())
	c := w.Join("", nil, perfect)
	s := sight(c)
	w.Step(5)
	s.want(t, "a", 1, "")
	s.want(t, "a", 2, "+")
}

// Each value tells the tick of its capture, on both sides.
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
			if want = append(want, tick.Number()+1); n == 0 { // captured in the tick that comes
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

// TestOnlyWhoMovesIsJudged: a change of a group asks the objects that name it about the client
// that has come or gone, and about nobody else; the members of a group that nothing names cost
// nothing.
func TestOnlyWhoMovesIsJudged(t *testing.T) {
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
	s := sight(all[3])
	change := func(what string, times int, fn func(*netloop.Tick)) {
		t.Helper()
		clear(asked)
		w.Tick(fn)
		w.Step(3)
		for i, c := range all {
			if want := times * objects; i == 3 && asked[c.ID()] != want || i != 3 && asked[c.ID()] != 0 {
				t.Errorf("%s: client %d of %d is asked about %d times, want %d of the fourth alone", what, i, clients, asked[c.ID()], want)
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
	s.want(t, "who moved", 0, "+-+")
}
