package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// delayed is a room whose spectators see it two seconds, and so 60 ticks, later.
var delayed = netloop.RoomSpec{Rate: netloop.Hz(30), MaxSpectators: 4, SpectatorDelay: 2 * time.Second}

const delayedTicks = 60

// watch lets a spectator in.
func watch(w *netlooptest.World, l netlooptest.Link) *client.Client {
	return w.JoinAs(client.Config{Spectate: true}, l)
}

// witness is what a client has had: of each tick that it has whole, all that it sees.
type witness map[uint64]string

func (d witness) note(w *netlooptest.World, c *client.Client) {
	if c.State().Phase != client.Playing {
		return
	}
	w.Look(c, func(t *netloop.Tick) {
		var b strings.Builder
		tick := uint64(0)
		for o := range things.All(t) {
			if s := o.State(); tick == 0 { // The first one says the tick.
				tick = uint64(s.N)
			}
			fmt.Fprintf(&b, "%v owner=%d %+v\n", o.Ref(), o.Owner(), o.State())
		}
		for o := range notes.All(t) {
			fmt.Fprintf(&b, "%v %+v\n", o.Ref(), o.State())
		}
		d[tick] = b.String()
	})
}

// restless is a game in which things come, change and go at random. The first says the tick.
func restless(seed uint64) script {
	return func(r *netloop.Room) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var first *netloop.Object[thing]
		var all []*netloop.Object[thing]
		var said *netloop.Object[note]
		r.OnStart(func(t *netloop.Tick) {
			first, said = things.Spawn(t, thing{}), notes.Spawn(t, note{})
		})
		r.On(netloop.Update, "test.play", func(t *netloop.Tick) {
			first.Edit(t).N = int32(t.Number())
			said.Edit(t).Text = fmt.Sprint("of tick ", t.Number())
			for range rng.IntN(3) {
				all = append(all, things.Spawn(t, thing{X: float32(rng.IntN(99))}, netloop.OwnedBy(netloop.ClientID(rng.IntN(3)))))
			}
			for range min(rng.IntN(4), len(all)) {
				all[rng.IntN(len(all))].Edit(t).Tags[0]++
			}
			if len(all) > 20 {
				i := rng.IntN(len(all))
				all[i].Despawn(t)
				all = slices.Delete(all, i, i+1)
			}
			told.Send(t, netloop.Everyone(), text{N: t.Number()}, netloop.WithState())
		})
	}
}

// Who watches with a delay has of each tick exactly what a player had of it, and over a link that
// loses packets all that it is said to have, whenever it comes. It gets every message once, in
// their order, and nothing before its time.
func TestSpectatorsSeeARoomAsItWas(t *testing.T) {
	seeds.Each(t, 5, func(t *testing.T, seed uint64) {
		w := netlooptest.New(t, restless(seed), netlooptest.Room(delayed), netlooptest.Seed(seed))
		player := w.Join("", nil, perfect)
		w.Step(30)
		watchers := []*client.Client{watch(w, perfect), watch(w, bad)}
		was, seen, verified := witness{}, witness{}, 0
		heard := make([][]uint64, 2)
		for i, c := range watchers {
			client.Handle(c, told, func(_ *netloop.Tick, m text) { heard[i] = append(heard[i], m.N) })
		}
		for n := range 300 {
			if n == 90 {
				w.Break(watchers[1])
			}
			w.Step(1)
			was.note(w, player)
			seen.note(w, watchers[0])
			if n%20 == 0 && watchers[1].State().Phase == client.Playing {
				watchers[1].Verify(func(err error) {
					if verified++; err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			if newest := uint64(30 + n + 1); len(heard[0]) > 0 && slices.Max(heard[0])+delayedTicks > newest || seen[newest-delayedTicks+1] != "" {
				t.Fatalf("seed %d: at tick %d it has heard up to %v", seed, newest, heard[0][len(heard[0])-1])
			}
		}
		compared := 0
		for tick, what := range seen {
			if then, ok := was[tick]; ok && tick > 0 {
				if compared++; then != what {
					t.Fatalf("seed %d: it sees of tick %d\n%swhere there was\n%s", seed, tick, what, then)
				}
			}
		}
		if compared < 200 || verified == 0 {
			t.Errorf("seed %d: %d ticks were compared, and %d digests", seed, compared, verified)
		}
		for i := range watchers {
			for k, n := range heard[i] {
				if n != heard[i][0]+uint64(k) {
					t.Fatalf("seed %d: watcher %d has heard %d after %d", seed, i, n, heard[i][k-1])
				}
			}
			if len(heard[i]) < 200 {
				t.Errorf("seed %d: watcher %d has heard %d messages", seed, i, len(heard[i]))
			}
		}
	})
}

// The game knows a camera and none of those who watch: it lets them in by OnAdmit, says by the
// camera what they see and hear, and is told nothing by them. They take no seat of a player's and
// no more seats than there are, with tickets or without, and come back to theirs.
func TestWhoWatchesWithADelayIsNobodyInTheRoom(t *testing.T) {
	joined, admitted, asked, cameras := 0, 0, 0, 0
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			if j.Spectator {
				admitted++
			}
			return nil
		})
		var hidden, shown *netloop.Object[thing]
		r.OnStart(func(t *netloop.Tick) {
			hidden, shown = things.Spawn(t, thing{N: 1}), things.Spawn(t, thing{N: 2})
			hidden.SetVisible(t, netloop.Where(func(c *netloop.Client) bool { return !c.Spectator() }))
			shown.SetVisible(t, netloop.Where(func(c *netloop.Client) bool { return c.Camera() }))
		})
		r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			if joined++; c.Camera() {
				cameras++
				if !c.Spectator() || !c.Join().Spectator || !c.Connected() || c.Link().Silent != 0 {
					return netloop.Refuse(netloop.CodeRefused, "this is no spectator")
				}
			}
			return nil
		})
		cheer.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { asked++; return nil })
		r.On(netloop.Update, "test.tell", func(t *netloop.Tick) {
			n := 0
			for c := range t.Clients() {
				if c.Camera() {
					echo.Send(t, netloop.To(c.ID()), text{S: "for those who watch"})
				}
				n++
			}
			shown.Edit(t).N = int32(n)
		})
	}), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), MaxClients: 1, MaxSpectators: 2, SpectatorDelay: time.Second}))
	player, one := joinRoom(w, ""), watch(w, perfect)
	two := joinBy(w, seats(t, w, "", netloop.Reservation{Spectator: true})[0])
	w.Step(90)
	third, second := watch(w, perfect), joinRoom(w, "")
	w.Step(60)
	wasRefused(t, "a third spectator", third, netloop.CodeFull)
	wasRefused(t, "a second player", second, netloop.CodeFull)
	heard := 0
	for what, c := range map[string]*client.Client{"a spectator": one, "one with a ticket": two} {
		plays(t, what, c, "")
		client.Handle(c, echo, func(*netloop.Tick, text) { heard++ })
		client.Send(c, cheer, text{})
		w.Look(c, func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				if o.State().N != 2 { // A player and the camera.
					t.Errorf("%s sees %+v", what, o.State())
				}
			}
			if n := things.Len(tick); n != 1 {
				t.Errorf("%s sees %d objects", what, n)
			}
		})
	}
	plays(t, "the player", player, "")
	id := one.ID()
	w.Break(one)
	w.Step(90)
	plays(t, "a spectator that was away", one, "")
	if joined != 2 || cameras != 1 || admitted != 2 || asked != 0 || heard == 0 || one.ID() != id {
		t.Errorf("%d joined, %d cameras, %d spectators admitted, %d of their messages handled, %d of theirs heard, id %d and then %d",
			joined, cameras, admitted, asked, heard, id, one.ID())
	}
	w.Tick(func(tick *netloop.Tick) {
		for info := range tick.Room().Server().Rooms() {
			if info.Clients != 3 || info.Spectators != 2 || info.Reserved != 0 {
				t.Errorf("the room is listed as %+v", info)
			}
		}
	})
}

// A room that ends is seen to its end by those who watch, and then they are told what the players
// were told. Its name is free before that.
func TestSpectatorsSeeTheEndOfTheirRoom(t *testing.T) {
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		if r.Spec().Name == "" {
			return
		}
		var clock *netloop.Object[thing]
		r.OnStart(func(t *netloop.Tick) { clock = things.Spawn(t, thing{}) })
		r.On(netloop.Update, "test.count", func(t *netloop.Tick) {
			if clock.Edit(t).N = int32(t.Number()); t.Number() == 100 {
				r.Close(t, netloop.CodeGame, "the match is over")
			}
		})
		r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
			if c.Camera() {
				echo.Send(t, netloop.Everyone(), text{S: "goodbye"})
			}
		})
	}))
	spec := delayed
	spec.Name = "match"
	openRoom(t, w, spec)
	player := joinRoom(w, "match")
	watcher := w.JoinAs(client.Config{Room: "match", Spectate: true}, perfect)
	goodbye, last := false, int32(0)
	client.Handle(watcher, echo, func(_ *netloop.Tick, m text) { goodbye = m.S == "goodbye" })
	w.Until(300, func() bool { return player.Closed() != nil })
	if r := w.Room("match").Ended(); r == nil || watcher.Closed() != nil {
		t.Fatalf("the room has ended with %v, the spectator with %v", r, watcher.Closed())
	}
	openRoom(t, w, table("match"))
	for n := 0; watcher.Closed() == nil && n < 300; n++ {
		w.Step(1)
		w.Look(watcher, func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				last = o.State().N
			}
		})
	}
	if text := wasRefused(t, "the spectator", watcher, netloop.CodeGame); text != "the match is over" || last != 100 || !goodbye {
		t.Errorf("it has seen tick %d, heard of the end: %t, and was told %q", last, goodbye, text)
	}
}

// A room that sleeps is watched as it sleeps: who comes meanwhile sees it as it is, and what wakes
// it is seen so much later.
func TestSpectatorsWatchARoomThatSleeps(t *testing.T) {
	spec := delayed
	spec.Sleep = true
	ran := 0
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		var all *netloop.Object[thing]
		r.OnStart(func(t *netloop.Tick) { all = things.Spawn(t, thing{}) })
		r.On(netloop.Update, "test.count", func(*netloop.Tick) { ran++ })
		echo.Handle(r, func(t *netloop.Tick, _ *netloop.Client, m text) error {
			all.Edit(t).N = int32(m.N)
			return nil
		})
	}), netlooptest.Room(spec))
	player, early := joinRoom(w, ""), watch(w, perfect)
	w.Until(300, w.Room("").Asleep)
	w.Step(300)
	before := ran
	laterOn := watch(w, perfect)
	w.Step(300)
	sees := func(c *client.Client) (n int32) {
		w.Look(c, func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				n = o.State().N
			}
		})
		return n
	}
	plays(t, "who came early", early, "")
	plays(t, "who came later", laterOn, "")
	if ran != before {
		t.Errorf("who watches has kept the room awake for %d ticks", ran-before)
	}
	client.Send(player, echo, text{N: 7})
	w.Step(delayedTicks - 5)
	if n := sees(early) + sees(laterOn); n != 0 {
		t.Errorf("they see %d too early", n)
	}
	w.Step(20)
	if a, b := sees(early), sees(laterOn); a != 7 || b != 7 {
		t.Errorf("they see %d and %d", a, b)
	}
}

// What a camera is sent is part of a recording, and a replay sends it the same, for nobody.
func TestARoomWithACameraReplays(t *testing.T) {
	var file bytes.Buffer
	w := netlooptest.New(t, restless(1), netlooptest.Room(delayed), netlooptest.Record(&file))
	w.Join("", nil, bad)
	watch(w, bad)
	w.Step(200)
	p, err := netloop.NewReplay(netloop.Config{}, restless(1), bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || ticks != 201 {
		t.Errorf("tick %d: %v", ticks, err)
	}
}

// A server runs a screening beside its room, in real time, and ends it with itself: those who watch
// hold it up for no longer than its DrainTimeout, and nothing is left behind.
func TestAServerShowsItsRoomLater(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := netloop.Config{
		Offline: true, DrainTimeout: 50 * time.Millisecond,
		Room: netloop.RoomSpec{MaxSpectators: 1, SpectatorDelay: 300 * time.Millisecond},
	}
	s, done := supervised(ctx, t, cfg, restless(2))
	var plays atomic.Bool
	watcher, _ := joinLocal(t, client.Config{Local: s, Spectate: true}, func(c *client.Client) {
		c.OnState(func(s client.State) { plays.Store(plays.Load() || s.Phase == client.Playing) })
	})
	waitFor(t, plays.Load)
	cancel()
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if code := closedWith(t, watcher); code != netloop.CodeClosing {
		t.Errorf("the spectator was told %v", code)
	}
}

// A locked room lets in no spectator either that sees it later, and when it is open again it does.
func TestALockedRoomKeepsDelayedSpectatorsOut(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}), netlooptest.Room(delayed))
	w.Step(30)
	w.Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, true) })
	stranger := watch(w, perfect)
	w.Step(30)
	wasRefused(t, "a spectator of a locked room", stranger, netloop.CodeRefused)
	w.Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, false) })
	late := watch(w, perfect)
	w.Step(delayedTicks + 30)
	plays(t, "a spectator of a room that is open again", late, "")
}
