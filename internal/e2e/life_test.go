package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

func TestJoinAndLeaveComeInPairs(t *testing.T) {
	joined, left := map[netloop.ClientID]int{}, map[netloop.ClientID]int{}
	var reasons []netloop.Code
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			joined[c.ID()]++
			things.Spawn(tick, thing{}, netloop.OwnedBy(c.ID()))
			if c.Join().Token == "kick" {
				tick.AfterFunc(500*time.Millisecond, func(tick *netloop.Tick) { c.Kick(tick, netloop.CodeGame, "enough") })
			}
			if c.Join().Token == "refuse" {
				return netloop.Refuse(netloop.CodeGame+1, "not today")
			}
			return nil
		})
		r.OnLeave(func(tick *netloop.Tick, c *netloop.Client, why *netloop.Closed) {
			left[c.ID()]++
			reasons = append(reasons, why.Code)
			owned := 0
			for range things.Owned(tick, c.ID()) {
				owned++
			}
			if owned != 1 {
				t.Errorf("while the leaver leaves it owns %d objects, not 1", owned)
			}
		})
	})
	leaver := play(t, w, perfect)
	kicked := w.Join("kick", nil, perfect)
	refused := w.Join("refuse", nil, perfect)
	lost := play(t, w, perfect)
	stays := play(t, w, bad)
	w.Step(60)
	if err := leaver.Close(); err != nil {
		t.Fatal(err)
	}
	w.Drop(lost)
	w.Step(60 * 15) // Longer than a connection may be silent.

	if len(joined) != 5 || len(left) != 4 {
		t.Errorf("%d joined and %d left", len(joined), len(left))
	}
	for id, n := range joined {
		if n != 1 || left[id] > 1 {
			t.Errorf("client %d joined %d times and left %d times", id, n, left[id])
		}
	}
	slices.Sort(reasons)
	want := []netloop.Code{netloop.CodeLeft, netloop.CodeLost, netloop.CodeGame, netloop.CodeGame + 1}
	slices.Sort(want)
	if !slices.Equal(reasons, want) {
		t.Errorf("they left because of %v, want %v", reasons, want)
	}
	if c := kicked.Closed(); c == nil || c.Code != netloop.CodeGame || c.Text != "enough" {
		t.Errorf("the kicked client was told %v", c)
	}
	if c := refused.Closed(); c == nil || c.Code != netloop.CodeGame+1 || c.Text != "not today" {
		t.Errorf("the refused client was told %v", c)
	}
	if n := len(look(w, stays, things)); n != 1 {
		t.Errorf("who stays sees %d objects, not its own alone", n)
	}
}

func TestObjectsMayOutliveTheirOwner(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(c.ID()), netloop.WhenOwnerLeaves(netloop.Keep))
			things.Spawn(tick, thing{N: 2}, netloop.OwnedBy(c.ID()))
			return nil
		})
	})
	c := play(t, w, perfect)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(5)
	w.Tick(func(tick *netloop.Tick) {
		var left []int32
		for o := range things.All(tick) {
			left = append(left, o.State().N)
			if o.Owner() != 0 {
				t.Errorf("its owner is %d", o.Owner())
			}
		}
		if !slices.Equal(left, []int32{1}) {
			t.Errorf("left are %v", left)
		}
	})
}

func TestAdmissionRefusesInWords(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			switch j.Token {
			case "secret":
				j.Subject = "ann"
				return nil
			case "broken":
				return errors.New("the database's password is hunter2")
			case "panic":
				panic("hunter2")
			}
			return netloop.Refuse(netloop.CodeRefused, "who are you?")
		})
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			if c.Join().Subject != "ann" {
				t.Errorf("%q joined", c.Join().Subject)
			}
			return nil
		})
	}, netlooptest.AllowPanics())
	for token, want := range map[string]string{"": "who are you?", "broken": "internal error", "panic": "internal error"} {
		c := w.Join(token, nil, perfect)
		w.Until(60, func() bool { return c.Closed() != nil })
		if got := c.Closed().Text; got != want {
			t.Errorf("token %q was told %q, not %q", token, got, want)
		}
	}
	c := w.Join("secret", nil, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
}

func TestFullRoomRefusesAndFreesSeats(t *testing.T) {
	w := open(t, func(*netloop.Room) {}, netlooptest.Room(netloop.RoomSpec{MaxClients: 2}))
	first, _ := play(t, w, perfect), play(t, w, perfect)
	third := w.Join("", nil, perfect)
	w.Until(60, func() bool { return third.Closed() != nil })
	if third.Closed().Code != netloop.CodeFull {
		t.Errorf("the third was told %v", third.Closed())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(5)
	play(t, w, perfect)
}

func TestOtherSchemasAreRefusedByName(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	other := func(name string, major int, declare func(*netloop.Schema)) *netloop.Schema {
		s := netloop.NewSchema(name, major, 0)
		declare(s)
		return s
	}
	type otherThing struct{ N int16 }
	for _, c := range []struct {
		schema *netloop.Schema
		want   string
	}{
		{other("elsewhere", 1, func(*netloop.Schema) {}), `"elsewhere"`},
		{other("test", 2, func(*netloop.Schema) {}), "major version 1"},
		{other("test", 1, func(s *netloop.Schema) { netloop.NewClass[otherThing](s, "thing") }), "field N"},
	} {
		refused := w.JoinAs(client.Config{Schema: c.schema}, perfect)
		w.Until(60, func() bool { return refused.Closed() != nil })
		if got := refused.Closed(); got.Code != netloop.CodeSchemaMismatch || !strings.Contains(got.Text, c.want) {
			t.Errorf("told %v, which does not say %s", got, c.want)
		}
	}
	lost := w.JoinAs(client.Config{Room: "attic"}, perfect)
	w.Until(60, func() bool { return lost.Closed() != nil })
	if lost.Closed().Code != netloop.CodeRoomUnknown {
		t.Errorf("told %v", lost.Closed())
	}
}

func TestTimersFollowGameTime(t *testing.T) {
	var fired []uint64
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { // Tick 1, 16.7 ms of game time.
			tick.AfterFunc(100*time.Millisecond, func(tick *netloop.Tick) { fired = append(fired, tick.Number()) })
			stopped := tick.AfterFunc(50*time.Millisecond, func(*netloop.Tick) { t.Error("a stopped timer fired") })
			if !stopped.Stop() || stopped.Stop() {
				t.Error("Stop does not say whether it was in time")
			}
			tick.AfterFunc(0, func(tick *netloop.Tick) {
				fired = append(fired, tick.Number())
				tick.AfterFunc(0, func(tick *netloop.Tick) { fired = append(fired, tick.Number()) })
			})
		})
	})
	w.Step(20)
	// 7 ticks are 116.67 ms, and timers were set at 16.67 ms.
	if want := []uint64{2, 3, 8}; !slices.Equal(fired, want) && !slices.Equal(fired, []uint64{2, 3, 7}) {
		t.Errorf("fired at ticks %v, want %v", fired, want)
	}
}

func TestDeadlineCountsDownOnBothSides(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.once", func(tick *netloop.Tick) {
			if tick.Number() == 120 {
				things.Spawn(tick, thing{Until: tick.In(2 * time.Second)})
			}
		})
	})
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond})
	w.Until(200, func() bool { return len(look(w, c, things)) == 1 })
	w.Step(30)
	var here, there time.Duration
	w.Tick(func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			here = o.State().Until.Left(tick)
		}
	})
	w.Look(c, func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			there = o.State().Until.Left(tick)
		}
	})
	if here == 0 || there-here > 40*time.Millisecond || here-there > 40*time.Millisecond {
		t.Errorf("left on the server %v, on the client %v", here, there)
	}
}

func TestPerClientLivesFromBeforeJoinToAfterLeave(t *testing.T) {
	var calls []string
	w := open(t, func(r *netloop.Room) {
		count := netloop.NewPerClient[int](r)
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			*count.Of(c) += 7
			calls = append(calls, "join")
			return nil
		})
		r.OnLeave(func(tick *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
			if *count.Of(c) != 7 {
				t.Error("the record is gone before OnLeave")
			}
			for other, n := range count.All(tick) {
				if other != c || *n != 7 {
					t.Error("All iterates over something else")
				}
			}
			calls = append(calls, "leave")
		})
	})
	for range 2 { // A second client starts with a fresh record.
		c := play(t, w, perfect)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.Step(3)
	}
	if got := strings.Join(calls, " "); got != "join leave join leave" {
		t.Error(got)
	}
}
