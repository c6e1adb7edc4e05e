package e2e_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A loop over objects, clients, records or systems may stop at any of them.
func TestIteratorsMayStopEarly(t *testing.T) {
	var records *netloop.PerClient[int]
	w := open(t, func(r *netloop.Room) { records = netloop.NewPerClient[int](r) })
	a := play(t, w, perfect)
	play(t, w, perfect)
	w.Tick(func(tick *netloop.Tick) {
		for range 3 {
			things.Spawn(tick, thing{})
			things.Spawn(tick, thing{}, netloop.OwnedBy(a.ID()))
		}
		looked := 0
		for range things.All(tick) {
			looked++
			break
		}
		for _, by := range []netloop.ClientID{0, a.ID()} {
			for range things.Owned(tick, by) {
				looked++
				break
			}
		}
		for range tick.Clients() {
			looked++
			break
		}
		for range records.All(tick) {
			looked++
			break
		}
		for range tick.Room().Loop().All() {
			looked++
			break
		}
		if looked != 6 {
			t.Errorf("iterated over %d things, want one of each kind", looked)
		}
	})
}

// A grid and a Reply belong to one room.
func TestHandlesOfAnotherRoomAreRefused(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	c := play(t, w, perfect)
	grid := m.grid
	openRoom(t, w, table("a")) // The game's grid belongs to this room now.
	w.Tick(func(tick *netloop.Tick) {
		if text := said(func() { m.grid.SetView(tick, server(t, tick, c)) }); !strings.Contains(text, "the grid belongs to another room") {
			t.Errorf("recovered %q", text)
		}
		grid.SetView(tick, server(t, tick, c))
	})

	var d deferredReplies
	w = d.open(t)
	openRoom(t, w, table("a"))
	asked(play(t, w, perfect), add)
	w.Until(60, func() bool { return len(d.kept) == 1 })
	w.Room("a").Tick(func(tick *netloop.Tick) {
		for want, fn := range map[string]func(){
			`Reply.Send: the call "add" was asked in another room`:    func() { d.kept[0].Send(tick, sum{}, nil) },
			`Reply.Waiting: the call "add" was asked in another room`: func() { d.kept[0].Waiting(tick) },
			`Reply.Waiting: the zero Reply has no call`:               func() { (netloop.Reply[sum]{}).Waiting(tick) },
			`Reply.Send: the zero Reply has no call`:                  func() { (netloop.Reply[sum]{}).Send(tick, sum{}, nil) },
		} {
			plainWords(t, said(fn), want)
		}
	})
	w.Tick(func(tick *netloop.Tick) { d.kept[0].Send(tick, sum{}, nil) })
}

// Everyone as a target allocates no memory.
func TestEveryoneAllocatesNoTarget(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	w.Tick(func(tick *netloop.Tick) {
		o, all := things.Spawn(tick, thing{}), netloop.Everyone()
		if n := testing.AllocsPerRun(10, func() { o.SetVisible(tick, all) }); n != 0 {
			t.Errorf("VisibleTo with Everyone allocates %v times", n)
		}
	})
}

// Between two ticks a replay exposes its state and its notes.
func TestAReplayExposesStateAndNotes(t *testing.T) {
	g := script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{}) })
		r.On(netloop.Update, "count", func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				o.Edit(tick).N++
			}
		})
	})
	var file bytes.Buffer
	s, err := netloop.New(netloop.Config{Record: &file, RecordNotes: map[string]string{"map": "hills"}, Room: netloop.RoomSpec{Rate: netloop.Hz(100)}}, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := netloop.NewReplay(netloop.Config{}, g, bytes.NewReader(file.Bytes()))
	if err != nil || p.Notes()["map"] != "hills" {
		t.Fatalf("the notes are lost: %v", err)
	}
	file.Reset()
	w := netlooptest.New(t, g, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(100)}))
	w.Step(5)
	w.Drain(0)
	if p, err = netloop.NewReplay(netloop.Config{}, g, &file); err != nil {
		t.Fatal(err)
	}
	for n := range int32(3) {
		if tick, err := p.Step(); err != nil || tick.Tick != uint64(1+n) {
			t.Fatalf("tick %d: %v", tick.Tick, err)
		}
		looked := 0
		err := p.Look(func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				looked++
				if o.State().N != 1+n {
					t.Errorf("after tick %d the count is %d", 1+n, o.State().N)
				}
			}
		})
		if err != nil || looked != 1 || p.GameTime() != time.Duration(1+n)*10*time.Millisecond {
			t.Errorf("read %d things at %v: %v", looked, p.GameTime(), err)
		}
	}
}

// Tick and Closed have strings for logs and test failures.
func TestTickAndClosedHaveStrings(t *testing.T) {
	var text string
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.PreUpdate, "say", func(tick *netloop.Tick) { text = tick.String() })
	})
	w.Step(3)
	if text != "tick 3, PreUpdate" {
		t.Errorf("the text is %q", text)
	}
	game := netloop.CodeGame.String()
	for want, c := range map[string]*netloop.Closed{
		"netloop: closed: " + game: {Code: netloop.CodeGame, Text: game}, "netloop: closed: " + game + ": over": {Code: netloop.CodeGame, Text: "over"},
	} {
		if c.Error() != want {
			t.Errorf("the text is %q, want %q", c, want)
		}
	}
}

// Set returns an error for a changed tree that names an unknown system, whatever the change.
func TestTreeErrorsNameTheMissingSystem(t *testing.T) {
	w := open(t, func(r *netloop.Room) { r.On(netloop.Update, "there", func(*netloop.Tick) {}) })
	w.Tick(func(tick *netloop.Tick) {
		made := func() *netloop.System { return netloop.NewSystem(netloop.Update, "new", func(*netloop.Tick) {}) }
		for want, change := range map[string]func(*netloop.Loop){
			`insert before "x"`:       func(l *netloop.Loop) { l.InsertBefore("x", made()) },
			`insert after "x"`:        func(l *netloop.Loop) { l.InsertAfter("x", made()) },
			`replace "x"`:             func(l *netloop.Loop) { l.Replace("x", made()) },
			`remove "x"`:              func(l *netloop.Loop) { l.Remove("x") },
			`change "x"`:              func(l *netloop.Loop) { l.Change("x", netloop.Priority(1)) },
			`move "x"`:                func(l *netloop.Loop) { l.Move("x", netloop.Before("there")) },
			`move "there" beside "x"`: func(l *netloop.Loop) { l.Move("there", netloop.Before("x")) },
		} {
			tree := tick.Room().Loop()
			before := tree.String()
			change(tree)
			if err := tree.Set(); err == nil || !strings.Contains(err.Error(), want+": the loop has no such system") {
				t.Errorf("%s: %v", want, err)
			}
			if tree.String() != before {
				t.Errorf("%s: it changed the tree all the same", want)
			}
		}
		tree := tick.Room().Loop()
		tree.Move("there", netloop.Priority(5)) // No new place: the node stays in its group.
		if n, ok := tree.Find("there"); !ok || n.Priority != 5 || n.Group != "" {
			t.Errorf("moved without a place it is %+v", n)
		}
		if _, ok := tree.Find("x"); ok {
			t.Error("an unknown system is found")
		}
	})
}

// A closed room keeps its clients until its drain time is over; a negative one means at once.
func TestAClosedRoomDrains(t *testing.T) {
	for drain, lasts := range map[time.Duration]bool{2 * time.Second: true, 0: false, -time.Hour: false} {
		var left []time.Duration
		w := open(t, func(r *netloop.Room) {
			r.OnDrain(func(_ *netloop.Tick, d time.Duration) { left = append(left, d) })
		})
		r := openRoom(t, w, table("a"))
		c := joinRoom(w, "a")
		w.Step(30)
		if err := serverOf(w).CloseRoom("a", drain, netloop.CodeGame, "over"); err != nil {
			t.Fatal(err)
		}
		w.Step(60)
		if plays := c.State().Phase == client.Playing; plays != lasts || (r.Ended() == nil) != lasts {
			t.Errorf("a second into a drain of %v the client plays: %v, and the room has ended with %v", drain, plays, r.Ended())
		}
		w.Step(90)
		if limit := max(drain, 0); r.Ended() == nil || len(left) != 1 || left[0] > limit || left[0] < limit-50*time.Millisecond {
			t.Errorf("a drain of %v: OnDrain got %v, and the room has ended with %v", drain, left, r.Ended())
		}
	}
}
