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

// delayed is a room with a spectator delay of two seconds, 60 ticks.
var delayed = netloop.RoomSpec{Rate: netloop.Hz(30), MaxSpectators: 4, SpectatorDelay: 2 * time.Second}

const delayedTicks = 60

// watch joins a spectator.
func watch(w *netlooptest.World, l netlooptest.Link) *client.Client {
	return w.JoinAs(client.Config{Spectate: true}, l)
}

// statesByTick has a client's state of each tick that it received completely.
type statesByTick map[uint64]string

func (d statesByTick) note(w *netlooptest.World, c *client.Client) {
	if c.State().Phase != client.Playing {
		return
	}
	w.Look(c, func(t *netloop.Tick) {
		var b strings.Builder
		tick := uint64(0)
		for o := range things.All(t) {
			if s := o.State(); tick == 0 { // The first one has the tick.
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

// randomGame is a game with random spawns, changes and despawns. The first object has the tick.
func randomGame(seed uint64) script {
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

// A delayed spectator on a perfect link has, for each tick, exactly the state that a player had,
// and none before the delay. One on a bad link, with a break, agrees with the digests of the
// server. Both get the messages once and in order.
func TestDelayedSpectatorsSeeTheRecordedStates(t *testing.T) {
	seeds.Each(t, 5, func(t *testing.T, seed uint64) {
		w := netlooptest.New(t, randomGame(seed), netlooptest.Room(delayed), netlooptest.Seed(seed))
		player := w.Join("", nil, perfect)
		w.Step(30)
		watchers := []*client.Client{watch(w, perfect), watch(w, bad)}
		was, seen, verified := statesByTick{}, statesByTick{}, 0
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
				t.Fatalf("seed %d: at tick %d it has messages up to %v", seed, newest, heard[0][len(heard[0])-1])
			}
		}
		compared := 0
		for tick, what := range seen {
			if then, ok := was[tick]; ok && tick > 0 {
				if compared++; then != what {
					t.Fatalf("seed %d: its state of tick %d is\n%swant\n%s", seed, tick, what, then)
				}
			}
		}
		if compared < 200 || verified == 0 {
			t.Errorf("seed %d: %d ticks were compared, and %d digests", seed, compared, verified)
		}
		for i := range watchers {
			for k, n := range heard[i] {
				if n != heard[i][0]+uint64(k) {
					t.Fatalf("seed %d: spectator %d got %d after %d", seed, i, n, heard[i][k-1])
				}
			}
			if len(heard[i]) < 200 {
				t.Errorf("seed %d: spectator %d got %d messages", seed, i, len(heard[i]))
			}
		}
	})
}

// The game has one client for all delayed spectators, the feed, and does not know the spectators:
// OnAdmit admits them, visibility and messages apply to the feed, and their messages are refused.
// Spectators take no players' seats and at most their own, with or without tickets, and resume in
// them.
func TestDelayedSpectatorsAreNoClientsOfTheRoom(t *testing.T) {
	joined, admitted, asked, feeds := 0, 0, 0, 0
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
			shown.SetVisible(t, netloop.Where(func(c *netloop.Client) bool { return c.SpectatorFeed() }))
		})
		r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			if joined++; c.SpectatorFeed() {
				feeds++
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
				if c.SpectatorFeed() {
					echo.Send(t, netloop.To(c.ID()), text{S: "for spectators"})
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
				if o.State().N != 2 { // A player and the feed.
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
	if joined != 2 || feeds != 1 || admitted != 2 || asked != 0 || heard == 0 || one.ID() != id {
		t.Errorf("%d joined, %d feeds, %d spectators admitted, %d of their messages handled, %d messages to them, id %d and then %d",
			joined, feeds, admitted, asked, heard, id, one.ID())
	}
	w.Tick(func(tick *netloop.Tick) {
		for info := range tick.Room().Server().Rooms() {
			if info.Clients != 3 || info.Spectators != 2 || info.Reserved != 0 {
				t.Errorf("the room is listed as %+v", info)
			}
		}
	})
}

// Delayed spectators see a room up to its end, and then get the close reason of the players. The
// room's name is free before that.
func TestDelayedSpectatorsSeeTheEndOfTheirRoom(t *testing.T) {
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
			if c.SpectatorFeed() {
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
		t.Errorf("it has tick %d, the announced end: %t, and the reason %q", last, goodbye, text)
	}
}

// A sleeping room has delayed spectators: new ones get its state, and later changes arrive after
// the delay.
func TestDelayedSpectatorsWatchASleepingRoom(t *testing.T) {
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
	plays(t, "an early spectator", early, "")
	plays(t, "a later spectator", laterOn, "")
	if ran != before {
		t.Errorf("the spectators kept the room awake for %d ticks", ran-before)
	}
	client.Send(player, echo, text{N: 7})
	w.Step(delayedTicks - 5)
	if n := sees(early) + sees(laterOn); n != 0 {
		t.Errorf("they have %d too early", n)
	}
	w.Step(20)
	if a, b := sees(early), sees(laterOn); a != 7 || b != 7 {
		t.Errorf("they see %d and %d", a, b)
	}
}

// The feed's snapshots are part of a recording, and a replay makes the same without spectators.
func TestARoomWithASpectatorFeedReplays(t *testing.T) {
	var file bytes.Buffer
	w := netlooptest.New(t, randomGame(1), netlooptest.Room(delayed), netlooptest.Record(&file))
	w.Join("", nil, bad)
	watch(w, bad)
	w.Step(200)
	p, err := netloop.NewReplay(netloop.Config{}, randomGame(1), bytes.NewReader(file.Bytes()))
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

// A server runs a spectator room beside its room, in real time, and ends it too: spectators delay
// its end by DrainTimeout at most, and no goroutine is leaked.
func TestAServerRunsASpectatorRoom(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := netloop.Config{
		Offline: true, DrainTimeout: 50 * time.Millisecond,
		Room: netloop.RoomSpec{MaxSpectators: 1, SpectatorDelay: 300 * time.Millisecond},
	}
	s, done := supervised(ctx, t, cfg, randomGame(2))
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
		t.Errorf("the spectator got %v", code)
	}
}

// A locked room refuses delayed spectators too, and admits them after it is unlocked.
func TestALockedRoomRefusesDelayedSpectators(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}), netlooptest.Room(delayed))
	w.Step(30)
	w.Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, true) })
	refused := watch(w, perfect)
	w.Step(30)
	wasRefused(t, "a spectator of a locked room", refused, netloop.CodeRefused)
	w.Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, false) })
	late := watch(w, perfect)
	w.Step(delayedTicks + 30)
	plays(t, "a spectator of a room that is open again", late, "")
}
