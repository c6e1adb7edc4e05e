package e2e_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

func TestEachJoinHasOneLeave(t *testing.T) {
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
				t.Errorf("in OnLeave the client owns %d objects, not 1", owned)
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
	w.Step(60 * 30) // Longer than the silence limit plus the reserved time.

	if len(joined) != 5 || len(left) != 4 {
		t.Errorf("%d joined and %d left", len(joined), len(left))
	}
	for id, n := range joined {
		if n != 1 || left[id] > 1 {
			t.Errorf("client %d joined %d times and left %d times", id, n, left[id])
		}
	}
	slices.Sort(reasons)
	want := []netloop.Code{netloop.CodeLeft, netloop.CodeTimeout, netloop.CodeGame, netloop.CodeGame + 1}
	slices.Sort(want)
	if !slices.Equal(reasons, want) {
		t.Errorf("they left because of %v, want %v", reasons, want)
	}
	if c := kicked.Closed(); c == nil || c.Code != netloop.CodeGame || c.Text != "enough" {
		t.Errorf("the kicked client was closed with %v", c)
	}
	if c := refused.Closed(); c == nil || c.Code != netloop.CodeGame+1 || c.Text != "not today" {
		t.Errorf("the refused client was closed with %v", c)
	}
	if n := len(look(w, stays, things)); n != 1 {
		t.Errorf("the remaining client has %d objects, not its own alone", n)
	}
}

func TestObjectsMayOutliveTheirOwner(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(c.ID()), netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
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

func TestARefusedClientReceivesTheReason(t *testing.T) {
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
			t.Errorf("token %q got %q, not %q", token, got, want)
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
		t.Errorf("the third was closed with %v", third.Closed())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(5)
	play(t, w, perfect)
}

func TestPerClientRecordsExistFromBeforeJoinToAfterLeave(t *testing.T) {
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
				t.Error("the record is deleted before OnLeave")
			}
			for other, n := range count.All(tick) {
				if other != c || *n != 7 {
					t.Error("All iterates over something else")
				}
			}
			calls = append(calls, "leave")
		})
	})
	for range 2 { // A second client gets a new record.
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

// TestAJoinerReportsItsProgress: 2 000 objects take many snapshots. The client reports the
// received number, and plays as soon as it has all of them.
func TestAJoinerReportsItsProgress(t *testing.T) {
	seeds.OneGoroutine(t)
	for name, link := range map[string]netlooptest.Link{"perfect": perfect, "bad": bad} {
		w := netlooptest.New(t, ballGame{balls: 2000}, netlooptest.Room(netloop.RoomSpec{Budget: 1000}))
		w.Step(10)
		c := w.Join("", nil, link)
		var states []client.State
		c.OnState(func(s client.State) { states = append(states, s) })
		count := func() (n int) {
			w.Look(c, func(t *netloop.Tick) {
				for range balls.All(t) {
					n++
				}
			})
			return n
		}
		w.Until(1200, func() bool {
			if n := count(); c.State().Phase == client.Playing && n != 2000 {
				t.Fatalf("%s: playing with %d of 2000 objects", name, n)
			} else if s := c.State(); s.Phase == client.Loading && (s.Loaded > n || s.Loaded > s.Objects) {
				t.Fatalf("%s: %+v with %d objects", name, s, n)
			}
			return c.State().Phase == client.Playing
		})
		loading := 0
		for i, s := range states {
			if s.Phase == client.Loading && s.Objects > 0 {
				loading++
				if s.Objects != 2000 || s.Progress() < states[i-1].Progress() || s.Progress() > 1 {
					t.Errorf("%s: %+v after %+v", name, s, states[i-1])
				}
			}
		}
		if last := states[len(states)-1]; loading < 5 || last != (client.State{Phase: client.Playing}) || last.Progress() != 1 {
			t.Errorf("%s: %d states with progress, and then %+v", name, loading, last)
		}
	}
}

// TestGoexitInOnAdmitRefusesTheClient calls runtime.Goexit in OnAdmit, as FailNow of a test does,
// more often than there are seats. The room has few seats and a low rate, because handshakes are
// slow on a busy machine, and an overloaded room refuses every client.
func TestGoexitInOnAdmitRefusesTheClient(t *testing.T) {
	const seats = 8
	asked := 0
	s, _ := serveAs(t, script(func(r *netloop.Room) {
		r.OnAdmit(func(context.Context, *netloop.Join) error {
			if asked++; asked <= 2*seats {
				runtime.Goexit()
			}
			return nil
		})
	}), netloop.Config{Room: netloop.RoomSpec{MaxClients: seats, Rate: netloop.Hz(10)}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range 2 * seats {
		if _, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema}); err == nil {
			t.Fatal("a client was admitted")
		}
	}
	connect(t, s.Addr().String())
}

// Parameters of a join reach the game; a value of another type is an error.
func TestParamsReachTheGame(t *testing.T) {
	var good struct{ Team string }
	var bad struct{ Team int }
	var goodErr, badErr error
	w := open(t, func(r *netloop.Room) {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			goodErr, badErr = c.Join().Params(&good), c.Join().Params(&bad)
			return nil
		})
	})
	c := w.Join("", struct{ Team string }{"red"}, perfect)
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	if goodErr != nil || good.Team != "red" {
		t.Errorf("%v, %+v", goodErr, good)
	}
	if badErr == nil || !strings.Contains(badErr.Error(), "join parameters") {
		t.Errorf("a text for a number: %v", badErr)
	}
}
