package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// reconnectWorld is a world with a server that records joins and leaves, and with three things;
// one of them moves.
type reconnectWorld struct {
	*netlooptest.World
	events []string // of the server
	told   []string // watcher calls of the client
}

// home returns the game of the world, with the systems of more.
func (r *reconnectWorld) home(more script) script {
	return func(room *netloop.Room) {
		note := func(what string) func(*netloop.Tick, *netloop.Client) {
			return func(_ *netloop.Tick, c *netloop.Client) { r.events = append(r.events, fmt.Sprint(what, " ", c.ID())) }
		}
		join, leave := note("join"), note("leave")
		room.OnJoin(func(t *netloop.Tick, c *netloop.Client) error { join(t, c); return nil })
		room.OnDrop(note("drop"))
		room.OnResume(note("resume"))
		room.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { leave(t, c) })
		var moves *netloop.Object[thing]
		room.OnStart(func(t *netloop.Tick) {
			for n := range 3 {
				moves = things.Spawn(t, thing{N: int32(n)})
			}
		})
		room.On(netloop.Update, "moves", func(t *netloop.Tick) { moves.Edit(t).X++ })
		if more != nil {
			more(room)
		}
	}
}

func (r *reconnectWorld) watch(c *client.Client) {
	client.Watch(c, things, client.Watcher[thing]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) {
			r.told = append(r.told, fmt.Sprint("spawn ", o.State().N))
		},
		Despawn: func(_ *netloop.Tick, _ *netloop.Object[thing], last thing) {
			r.told = append(r.told, fmt.Sprint("despawn ", last.N))
		},
	})
}

// newReconnectWorld makes a world with one playing client.
func newReconnectWorld(t *testing.T, l netlooptest.Link, more script) (*reconnectWorld, *client.Client) {
	t.Helper()
	r := new(reconnectWorld)
	r.World = open(t, r.home(more))
	c := play(t, r.World, l)
	r.watch(c)
	r.Step(60) // A client that never sent data is not reserved a seat.
	return r, c
}

// wait steps until the client is in a phase, for a minute at most, and returns the time.
func (r *reconnectWorld) wait(c *client.Client, p client.Phase) time.Duration {
	from := r.Now()
	r.Until(60*60, func() bool { return c.State().Phase == p })
	return r.Now() - from
}

// agrees compares the state of a client with the server's.
func (r *reconnectWorld) agrees(t *testing.T, c *client.Client) {
	t.Helper()
	verified := errors.New("not asked")
	c.Verify(func(err error) { verified = err })
	r.Until(700, func() bool { return verified == nil })
	if s := c.Stats(); s.Malformed+s.Unequal+s.FullStates > 0 {
		t.Errorf("%+v", s)
	}
}

// spawns are the watcher calls for the world's things, ends those of their despawn.
var (
	spawns = []string{"spawn 0", "spawn 1", "spawn 2"}
	ends   = []string{"despawn 0", "despawn 1", "despawn 2"}
)

// The server resumes the seat before the limit of the client's attempt, but the welcome arrives
// after it: the client's next attempt resumes the seat.
func TestAWelcomeAfterTheLimitOfAnAttempt(t *testing.T) {
	r, c := newReconnectWorld(t, netlooptest.Link{Delay: 300 * time.Millisecond}, nil)
	r.Break(c)
	r.wait(c, client.Reconnecting)
	r.wait(c, client.Playing)
	if c.ID() != 1 || c.Stats().Resumes != 1 {
		t.Errorf("client %d has resumed %d times, want client 1 once; the server had %q", c.ID(), c.Stats().Resumes, r.events)
	}
	r.agrees(t, c)
}

// A client resumes after a black hole that is shorter than the reserved time of its seat. After a
// longer one it joins anew, and its watchers get the despawns of its objects.
func TestAClientResumesAfterABlackHole(t *testing.T) {
	for _, x := range []struct {
		lasts  time.Duration
		link   netlooptest.Link
		events []string
		told   []string
		id     netloop.ClientID
	}{
		{6 * time.Second, perfect, []string{"join 1", "drop 1", "resume 1"}, spawns, 1},
		{6 * time.Second, bad, []string{"join 1", "drop 1", "resume 1"}, spawns, 1},
		{38 * time.Second, bad, []string{"join 1", "drop 1", "leave 1", "join 2"}, slices.Concat(spawns, ends, spawns), 2},
	} {
		r, c := newReconnectWorld(t, x.link, nil)
		r.Cut(c)
		if took := r.wait(c, client.Reconnecting); took < 4900*time.Millisecond || took > 5200*time.Millisecond {
			t.Errorf("it noticed the break after %v", took)
		}
		left := c.State().Left
		r.Step(60)
		if now := c.State().Left; left < 19*time.Second || left > 20*time.Second || left-now < 990*time.Millisecond || left-now > 1010*time.Millisecond {
			t.Errorf("%v were left, and a second later %v", left, now)
		}
		r.Step(60*int(x.lasts/time.Second) - 60*6)
		r.Heal(c)
		// A dial and its back-off may be running.
		if took := r.wait(c, client.Playing); took > 11*time.Second {
			t.Errorf("it reconnected after %v", took)
		}
		r.Step(60)
		r.agrees(t, c)
		slices.Sort(r.told[len(r.told)-3:]) // New objects arrive in any order.
		if !slices.Equal(r.events, x.events) || !slices.Equal(r.told, x.told) || c.ID() != x.id {
			t.Errorf("after %v client %d got %q; the server: %q", x.lasts, c.ID(), r.told, r.events)
		}
		if s := c.Stats(); s.Drops != 1 || s.Resumes != uint64(2-x.id) {
			t.Errorf("after %v: %d drops, %d resumes", x.lasts, s.Drops, s.Resumes)
		}
	}
}

// Whatever connections break at any time, each reliable message arrives once and in order, in
// both directions, and each call gets one answer.
func TestMessagesSurviveReconnects(t *testing.T) {
	var heard []uint64
	var player *netloop.Client
	sent, watcherCall := uint64(0), false
	r, c := newReconnectWorld(t, bad, func(room *netloop.Room) {
		room.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { player = c; return nil })
		echo.Handle(room, func(_ *netloop.Tick, _ *netloop.Client, m text) error { heard = append(heard, m.N); return nil })
		add.Handle(room, func(_ *netloop.Tick, _ *netloop.Client, q pair) (sum, error) { return sum{q.A + q.B}, nil })
		room.On(netloop.Update, "tells", func(t *netloop.Tick) {
			if t.Number()%3 == 0 && sent < 300 && watcherCall {
				sent++
				told.Send(t, netloop.To(player.ID()), text{N: sent})
			}
		})
	})
	var got []uint64
	answers := map[int64]int{}
	client.Handle(c, told, func(_ *netloop.Tick, m text) { got = append(got, m.N) })
	watcherCall = true
	n := uint64(0)
	for i := range 1200 {
		if i%4 == 0 {
			n++
			if err := client.Send(c, echo, text{N: n}); err != nil {
				t.Fatal(err)
			}
		}
		if i%10 == 0 {
			client.Call(c, add, pair{int64(i), 1}, func(_ *netloop.Tick, s sum, err error) {
				if answers[int64(i)]++; err != nil || s.Sum != int64(i)+1 {
					t.Errorf("%d + 1 = %d, %v", i, s.Sum, err)
				}
			})
		}
		if i%97 == 50 {
			r.Break(c)
		}
		r.Step(1)
	}
	r.Step(300)
	var want []uint64
	for i := range uint64(300) {
		want = append(want, i+1)
	}
	if !slices.Equal(heard, want) || !slices.Equal(got, want) {
		t.Errorf("the server got %v\nthe client %v", heard, got)
	}
	if len(answers) != 120 || slices.Max(slices.Collect(maps.Values(answers))) != 1 {
		t.Errorf("of 120 calls %d were answered: %v", len(answers), answers)
	}
	if s := c.Stats(); s.Drops != 12 || s.Resumes != 12 || c.ID() != 1 || len(r.told) != 3 {
		t.Errorf("%d drops, %d resumes, got %q", s.Drops, s.Resumes, r.told)
	}
	r.agrees(t, c)
}

// A client that hangs for a long time is dropped by its server, and resumes once it runs again,
// with no message lost.
func TestAHangingClientResumes(t *testing.T) {
	r, c := newReconnectWorld(t, perfect, nil)
	r.Freeze(c)
	r.Step(60 * 12)
	if !slices.Equal(r.events, []string{"join 1", "drop 1"}) {
		t.Errorf("meanwhile the server recorded %q", r.events)
	}
	r.Thaw(c)
	r.wait(c, client.Reconnecting)
	r.wait(c, client.Playing)
	r.agrees(t, c)
	if !slices.Equal(r.events, []string{"join 1", "drop 1", "resume 1"}) || !slices.Equal(r.told, spawns) {
		t.Errorf("got %q; the server: %q", r.told, r.events)
	}
}

// A restarted server has no seats. Its clients join anew: old objects despawn, calls fail once,
// and time is the new server's.
func TestClientsJoinARestartedServer(t *testing.T) {
	r, c := newReconnectWorld(t, bad, func(room *netloop.Room) {
		// It never answers.
		add.HandleLater(room, func(*netloop.Tick, *netloop.Client, pair, netloop.Reply[sum]) {})
	})
	older := netloop.NewSchema("test", 1, 0)
	netloop.NewClass[struct{ N int32 }](older, "thing")
	foreign := r.JoinAs(client.Config{Schema: older}, bad)
	r.wait(foreign, client.Playing)
	r.Step(600)
	failed := 0
	client.Call(c, add, pair{1, 2}, func(_ *netloop.Tick, _ sum, err error) {
		var closed *netloop.Closed
		if failed++; !errors.As(err, &closed) || closed.Code != netloop.CodeLost {
			t.Errorf("the pending call got %v", err)
		}
	})
	r.Step(10)
	r.events = nil
	r.Restart(r.home(nil))
	r.wait(c, client.Reconnecting)
	r.wait(c, client.Playing)
	r.wait(foreign, client.Playing)
	r.Step(120)
	if s := c.Stats(); s.ServerTick > 400 || s.Drops != 1 || s.Resumes != 0 || failed != 1 {
		t.Errorf("at tick %d, %d drops, %d resumes, %d calls failed", s.ServerTick, s.Drops, s.Resumes, failed)
	}
	slices.Sort(r.told[len(r.told)-3:])
	if want := slices.Concat(spawns, ends, spawns); !slices.Equal(r.told, want) || len(r.events) != 2 {
		t.Errorf("got %q; the server: %q", r.told, r.events)
	}
	r.agrees(t, c)
	r.agrees(t, foreign)
}

// A client whose connection the server closed does not reconnect, and a client with Reconnect.Off
// is closed by a break.
func TestClosedClientsDoNotReconnect(t *testing.T) {
	r, c := newReconnectWorld(t, perfect, nil)
	off := r.JoinAs(client.Config{Reconnect: client.Reconnect{Off: true}}, perfect)
	r.wait(off, client.Playing)
	r.Break(off)
	r.Drop(c)
	r.Step(60 * 30)
	if why := off.Closed(); why == nil || why.Code != netloop.CodeLost || off.Stats().Drops != 0 {
		t.Errorf("closed %v", why)
	}
	if want := []string{"join 1", "join 2", "drop 1", "leave 2", "leave 1"}; !slices.Equal(slices.Sorted(slices.Values(r.events)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the server recorded %q", r.events)
	}
}

// A client that gives up while its new connection waits for the game's admission ends that
// connection, or its seat would be taken for as long as its program runs.
func TestAClientThatGivesUpDuringItsAdmissionLeaves(t *testing.T) {
	left := false
	w := open(t, func(r *netloop.Room) {
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { left = true })
	}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(1)}))
	c := w.JoinAs(client.Config{Reconnect: client.Reconnect{GiveUp: time.Second}}, netlooptest.Link{Delay: 200 * time.Millisecond}, netlooptest.FPS(60))
	w.Until(10, func() bool { return c.State().Phase == client.Playing })
	w.Break(c)
	w.Step(3)
	if c.Closed() == nil || c.Stats().Drops != 1 || !left {
		t.Errorf("closed: %v, %d breaks, left: %v", c.Closed(), c.Stats().Drops, left)
	}
}
