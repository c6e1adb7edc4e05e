package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// roomsGame is a game with rooms of several kinds. Clients may request rooms with names that
// begin with "open", in which seats are reserved only briefly.
type roomsGame struct {
	script
	asked func(name string) (netloop.RoomSpec, error)
}

func (h roomsGame) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	return h.asked(name)
}

// table returns the spec of a small test room with a lower rate than the default room.
func table(name string) netloop.RoomSpec {
	return netloop.RoomSpec{Name: name, Kind: "table", Rate: netloop.Hz(20), MaxClients: 5}
}

func openRoom(t testing.TB, w *netlooptest.World, spec netloop.RoomSpec) *netlooptest.PlayedRoom {
	t.Helper()
	r, err := w.OpenRoom(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// joinRoom joins a client to a room.
func joinRoom(w *netlooptest.World, name string) *client.Client {
	return w.JoinAs(client.Config{Room: name}, netlooptest.Link{Delay: 5 * time.Millisecond})
}

// Each room has its own Open, objects, messages and clients.
func TestRoomsAreIsolated(t *testing.T) {
	opened := map[string]int{}
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		opened[r.Spec().Kind+" "+r.Spec().Name]++
		r.OnStart(func(tick *netloop.Tick) {
			for range 1 + len(r.Spec().Name) {
				things.Spawn(tick, thing{})
			}
		})
		echo.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error {
			told.Send(tick, netloop.Everyone(), text{S: r.Spec().Name + ":" + m.S})
			return nil
		})
	}))
	openRoom(t, w, table("a"))
	openRoom(t, w, table("long"))
	if want := fmt.Sprint(map[string]int{" ": 1, "table a": 1, "table long": 1}); fmt.Sprint(opened) != want {
		t.Errorf("opened %v, want %s", opened, want)
	}
	heard := map[string][]string{}
	clients := map[string]*client.Client{}
	for _, name := range []string{"", "a", "long"} {
		c := joinRoom(w, name)
		client.Handle(c, told, func(_ *netloop.Tick, m text) { heard[name] = append(heard[name], m.S) })
		clients[name] = c
	}
	w.Step(60)
	for name, c := range clients {
		client.Send(c, echo, text{S: "hi"})
		w.Look(c, func(tick *netloop.Tick) {
			if n := things.Len(tick); n != 1+len(name) {
				t.Errorf("in room %q a client sees %d objects", name, n)
			}
		})
	}
	w.Step(60)
	for name := range clients {
		if want := fmt.Sprint([]string{name + ":hi"}); fmt.Sprint(heard[name]) != want {
			t.Errorf("room %q got %q, want %s", name, heard[name], want)
		}
	}
}

// Rooms have their own rates, and a busy one does not delay others.
func TestRoomsTickAtTheirOwnRates(t *testing.T) {
	ticks := map[string]uint64{}
	late := map[string]time.Duration{}
	var w *netlooptest.World
	w = netlooptest.New(t, script(func(r *netloop.Room) {
		name := r.Spec().Name
		r.On(netloop.Update, "count", func(tick *netloop.Tick) {
			ticks[name]++
			late[name] = max(late[name], w.Now()-time.Duration(tick.Number()-1)*r.Spec().Rate.Period())
			if name == "busy" && tick.Number() == 10 {
				w.Spend(400 * time.Millisecond)
			}
		})
	}))
	for name, rate := range map[string]uint64{"slow": 5, "busy": 30, "fast": 120} {
		openRoom(t, w, netloop.RoomSpec{Name: name, Rate: netloop.Hz(rate)})
	}
	w.Step(120)
	for name, want := range map[string]uint64{"": 120, "slow": 10, "fast": 240} {
		if got := ticks[name]; got < want-1 || got > want+1 {
			t.Errorf("room %q ran %d ticks in two seconds, want %d", name, got, want)
		}
		if late[name] > time.Millisecond {
			t.Errorf("room %q was %v late", name, late[name])
		}
	}
	if got := ticks["busy"]; got < 48 || got > 56 {
		t.Errorf("the busy room ran %d ticks, want about 60 minus those of its 400 ms, plus 5", got)
	}
}

// A room that ends closes its clients with the reason and refuses late ones. Other rooms
// continue, and its name is free.
func TestTheEndOfARoomDoesNotAffectOthers(t *testing.T) {
	ends := map[string]func(*netlooptest.World, *netlooptest.PlayedRoom){
		"it closes itself": func(_ *netlooptest.World, r *netlooptest.PlayedRoom) {
			r.Tick(func(tick *netloop.Tick) { tick.Room().Close(tick, netloop.CodeGame, "over") })
		},
		"the server closes it": func(w *netlooptest.World, r *netlooptest.PlayedRoom) {
			w.Tick(func(tick *netloop.Tick) {
				if err := tick.Room().Server().CloseRoom("a", 0, netloop.CodeGame, "over"); err != nil {
					t.Error(err)
				}
			})
		},
		"the test drains it": func(_ *netlooptest.World, r *netlooptest.PlayedRoom) { r.Drain(0, netloop.CodeGame, "over") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			var left, saved []string
			w := netlooptest.New(t, script(func(r *netloop.Room) {
				r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left = append(left, why.Text) })
				r.OnClose(func(context.Context, *netloop.Closed) error { saved = append(saved, r.Spec().Name); return nil })
			}))
			r := openRoom(t, w, table("a"))
			guest, other := joinRoom(w, "a"), joinRoom(w, "")
			w.Step(60)
			end(w, r)
			entering := joinRoom(w, "a")
			w.Step(60)
			if why := guest.Closed(); why == nil || why.Code != netloop.CodeGame || why.Text != "over" {
				t.Errorf("its client got %v", why)
			}
			if entering.Closed() == nil {
				t.Error("a client that joined meanwhile got no reason")
			}
			if other.State().Phase != client.Playing || w.Ended() != nil {
				t.Errorf("the default room ended too: %v", w.Ended())
			}
			if r.Ended() == nil || r.Ended().Text != "over" || fmt.Sprint(left, saved) != "[over] [a]" {
				t.Errorf("it ended with %v; left %q, saved %q", r.Ended(), left, saved)
			}
			if again := openRoom(t, w, table("a")); again == r || again.Ended() != nil {
				t.Error("the name is still in use")
			}
			late := joinRoom(w, "a")
			w.Step(60)
			if late.State().Phase != client.Playing {
				t.Errorf("the new room of the name refuses a client: %v", late.Closed())
			}
		})
	}
}

// A request for an unknown room is refused with the reason.
func TestAnUnknownRoomIsRefused(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	c := joinRoom(w, "nowhere")
	w.Step(30)
	if why := c.Closed(); why == nil || why.Code != netloop.CodeRoomUnknown {
		t.Errorf("got %v", why)
	}
	w.Tick(func(tick *netloop.Tick) {
		if err := tick.Room().Server().CloseRoom("nowhere", 0, netloop.CodeGame, ""); err == nil {
			t.Error("an unknown room was closed")
		}
	})
}

// A game opens rooms from a tick: a later tick gets the result, or the error.
func TestAGameOpensRoomsFromATick(t *testing.T) {
	results := map[string]error{}
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		switch r.Spec().Kind {
		case "broken":
			r.On(netloop.Update, "", nil)
		case "panics":
			panic("ouch")
		}
		r.OnStart(func(tick *netloop.Tick) {
			if r.Spec().Name != "" {
				return
			}
			for i, spec := range []netloop.RoomSpec{table("a"), {Name: "b", Kind: "broken"}, {Name: "c", Kind: "panics"}, {Name: "d", SendEvery: 99}} {
				tick.AfterFunc(time.Duration(i)*time.Second, func(tick *netloop.Tick) {
					tick.OpenRoom(spec, func(tick *netloop.Tick, info netloop.RoomInfo, err error) {
						results[spec.Name] = err
						if err == nil && (info.Spec.Kind != "table" || info.Spec.Budget == 0) {
							t.Errorf("opened %+v", info)
						}
					})
				})
			}
			tick.AfterFunc(5*time.Second, func(tick *netloop.Tick) {
				for _, name := range []string{"a", "e"} {
					tick.OpenRoom(table(name), func(_ *netloop.Tick, _ netloop.RoomInfo, err error) { results[name+" again"] = err })
				}
			})
		})
	}), netlooptest.MaxRooms(2), netlooptest.AllowPanics())
	for range 40 {
		w.Step(10)
		w.Settle()
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false} {
		if err, ok := results[name]; !ok || (err == nil) != want {
			t.Errorf("room %s: %v, %v", name, ok, err)
		}
	}
	if !errors.Is(results["a again"], netloop.ErrRoomExists) || !errors.Is(results["e again"], netloop.ErrTooManyRooms) {
		t.Errorf("again: %v, and another: %v", results["a again"], results["e again"])
	}
	w.Drain(0)
	w.Tick(func(tick *netloop.Tick) {
		if _, err := tick.Room().Server().OpenRoom(t.Context(), table("x")); !errors.Is(err, netloop.ErrClosing) {
			t.Errorf("an ended server opens a room: %v", err)
		}
	})
}

// A game may open the room that a client requests. It is one room for all requests of the name,
// it ends when it is empty, and the number of rooms per address is limited.
func TestOpenForOpensRequestedRooms(t *testing.T) {
	asked := map[string]int{}
	g := roomsGame{script: func(*netloop.Room) {}, asked: func(name string) (netloop.RoomSpec, error) {
		if asked[name]++; name == "no" {
			return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRefused, "not today")
		}
		return netloop.RoomSpec{Kind: "private", Rate: netloop.Hz(10), CloseEmpty: time.Second}, nil
	}}
	w := netlooptest.New(t, g, netlooptest.MaxRooms(40))
	a, b, no := joinRoom(w, "ours"), joinRoom(w, "ours"), joinRoom(w, "no")
	w.Step(120)
	if a.State().Phase != client.Playing || b.State().Phase != client.Playing || asked["ours"] != 1 {
		t.Errorf("%v and %v; asked for %d times", a.State().Phase, b.State().Phase, asked["ours"])
	}
	if why := no.Closed(); why == nil || why.Code != netloop.CodeRefused || why.Text != "not today" {
		t.Errorf("a refused client got %v", why)
	}
	if r := w.Room("ours"); r.Ended() != nil {
		t.Fatalf("it has ended with two clients: %v", r.Ended())
	}
	_, _ = a.Close(), b.Close()
	w.Step(90)
	if r := w.Room("ours"); r.Ended() == nil || r.Ended().Code != netloop.CodeClosing {
		t.Errorf("a second after the last leave it ended with %v", r.Ended())
	}
	var names []*client.Client
	for i := range 50 {
		names = append(names, joinRoom(w, fmt.Sprint("made up ", i)))
	}
	w.Step(20)
	refused := 0
	for _, c := range names {
		if c.State().Phase != client.Playing && c.State().Phase != client.Loading {
			refused++
		}
	}
	if opened := len(asked) - 2; opened < 25 || opened > 35 || refused < 15 {
		t.Errorf("one address opened %d rooms at once, and %d of 50 requests were refused", opened, refused)
	}
}

// A server that ends drains all rooms concurrently.
func TestAServerDrainsItsRoomsConcurrently(t *testing.T) {
	drains := 0
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnDrain(func(_ *netloop.Tick, left time.Duration) {
			if drains++; left != 2*time.Second {
				t.Errorf("room %q has %v left", r.Spec().Name, left)
			}
		})
	}))
	var guests []*client.Client
	for i := range 10 {
		openRoom(t, w, table(fmt.Sprint("table ", i)))
		guests = append(guests, joinRoom(w, fmt.Sprint("table ", i)))
	}
	w.Step(60)
	begun := w.Now()
	w.Drain(2 * time.Second)
	if took := w.Now() - begun; drains != 11 || took < 2*time.Second || took > 2200*time.Millisecond {
		t.Errorf("%d rooms drained in %v", drains, took)
	}
	w.Step(10)
	for i, c := range guests {
		if why := c.Closed(); why == nil || why.Code != netloop.CodeClosing {
			t.Errorf("client %d got %v", i, why)
		}
	}
}

// memoryFile is a recording in memory that records its Close.
type memoryFile struct {
	bytes.Buffer
	closed bool
}

func (s *memoryFile) Close() error { s.closed = true; return nil }

// Each room is recorded separately, and each recording replays, also of a room that opens others.
func TestEveryRoomReplays(t *testing.T) {
	g := script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			if r.Spec().Name == "" {
				for i := range 3 {
					tick.OpenRoom(table(fmt.Sprint(i)), func(tick *netloop.Tick, info netloop.RoomInfo, err error) {
						things.Spawn(tick, thing{N: int32(info.Spec.MaxClients)})
					})
				}
				tick.OpenRoom(table(""), func(tick *netloop.Tick, _ netloop.RoomInfo, err error) {
					if errors.Is(err, netloop.ErrRoomExists) {
						things.Spawn(tick, thing{N: 1})
					}
				})
			}
		})
		r.On(netloop.Update, "roll", func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				// So many that equal numbers in two rooms are no coincidence.
				o.Edit(tick).X = float32(tick.Rand().IntN(1 << 20))
			}
		})
		r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error { things.Spawn(tick, thing{N: 7}); return nil })
	})
	var lobby bytes.Buffer
	var opening sync.Mutex // Rooms are opened concurrently.
	tables := map[string]*memoryFile{}
	w := netlooptest.New(t, g, netlooptest.Record(&lobby), netlooptest.RecordRoom(func(info netloop.RoomInfo) (io.WriteCloser, error) {
		opening.Lock()
		defer opening.Unlock()
		s := new(memoryFile)
		tables[info.Spec.Name] = s
		return s, nil
	}))
	w.Step(3)
	w.Settle()
	w.Step(3)
	for i := range 3 {
		joinRoom(w, fmt.Sprint(i))
	}
	w.Step(200)
	w.Room("1").Drain(0, netloop.CodeGame, "over")
	w.Step(30)
	if !tables["1"].closed || tables["2"].closed {
		t.Error("the recording was not closed with its room")
	}
	digests := map[uint64]string{}
	replays := map[string]io.Reader{"lobby": &lobby}
	for name, s := range tables {
		replays[name] = &s.Buffer
	}
	for name, file := range replays {
		p, err := netloop.NewReplay(netloop.Config{}, g, file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var last netloop.ReplayTick
		for {
			tick, err := p.Step()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			last = tick
		}
		if last.Tick < 60 {
			t.Errorf("%s: %d ticks were recorded", name, last.Tick)
		}
		if other, same := digests[last.State]; same {
			t.Errorf("rooms %s and %s have the same state: their random numbers are equal", name, other)
		}
		digests[last.State] = name
	}
}

// One hundred rooms of five clients each run in one process until they end.
func TestAHundredRoomsOfFive(t *testing.T) {
	seeds.OneGoroutine(t)
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.On(netloop.Update, "move", func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				o.Edit(tick).N++
			}
		})
		r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error { things.Spawn(tick, thing{}); return nil })
	}))
	rooms := 100
	if testing.Short() {
		rooms = 20
	}
	var all []*client.Client
	for i := range rooms {
		name := fmt.Sprint("table ", i)
		openRoom(t, w, table(name))
		for range 5 {
			all = append(all, joinRoom(w, name))
		}
	}
	w.Step(30)
	before := make([]uint64, len(all))
	for i, c := range all {
		before[i] = c.Stats().Snapshots
	}
	w.Step(300)
	for i, c := range all {
		if got := c.Stats().Snapshots - before[i]; got < 99 {
			t.Errorf("client %d of room %d got %d snapshots in five seconds at 20 Hz", i%5, i/5, got)
		}
		w.Look(c, func(tick *netloop.Tick) {
			if n := things.Len(tick); n != 5 {
				t.Errorf("client %d of room %d sees %d objects", i%5, i/5, n)
			}
		})
	}
}
