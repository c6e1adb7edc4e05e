package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// match is the published value of rooms.
type match struct {
	Map   string
	Round int32
	Mods  []uint8
}

// names returns the names of listed rooms.
func names[I any](all []netloop.RoomListing[I]) string {
	var s []string
	for _, l := range all {
		s = append(s, l.Name)
	}
	return strings.Join(s, " ")
}

// Rooms are found by kind, free seats and published value, in one consistent list, which the
// caller owns. Locked, private and ended rooms are not listed.
func TestRoomsAreFoundByTheirPublishedValues(t *testing.T) {
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		switch name := r.Spec().Name; {
		case name == "other":
			r.Publish(nil, &struct{ Host string }{"bob"})
		case r.Spec().Kind == "table":
			r.Publish(nil, match{Map: name, Mods: []uint8{1}})
		}
	}))
	for _, name := range []string{"a", "b", "c", "other"} {
		openRoom(t, w, table(name))
	}
	hidden := table("hidden")
	hidden.Private = true
	openRoom(t, w, hidden)
	openRoom(t, w, netloop.RoomSpec{Name: "big", Kind: "field"})
	for range 3 {
		joinRoom(w, "b")
	}
	w.Step(60)
	server := serverOf(w)
	if _, err := server.Reserve(t.Context(), "b", netloop.Reservation{}); err != nil {
		t.Fatal(err)
	}
	w.Step(60)
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	type filter = netloop.RoomFilter[match]
	find := func(f filter) string { return names(netloop.ListRooms(server, f)) }
	check("those that publish a match", find(filter{}), "a b c")
	check("of another kind", find(filter{Kind: "field"}), "")
	check("with three seats", find(filter{Kind: "table", Free: 3}), "a c")
	check("two at most", find(filter{Limit: 2}), "a b")
	check("of a map", find(filter{Where: func(l netloop.RoomListing[match]) bool { return l.Info.Map > "a" && l.Players == 0 }}), "c")
	check("all", names(netloop.ListRooms(server, netloop.RoomFilter[struct{}]{Limit: -1})), " a b c other big")
	check("that publish another type", names(netloop.ListRooms(server, netloop.RoomFilter[struct{ Host string }]{})), "other")

	b := netloop.ListRooms(server, filter{})[1]
	if b.Kind != "table" || b.Players != 4 || b.MaxClients != 5 || b.Free() != 1 || b.Info.Map != "b" || !slices.Equal(b.Info.Mods, []uint8{1}) {
		t.Errorf("listed %+v", b)
	}
	b.Info.Mods[0] = 99
	w.Room("a").Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, true) })
	w.Room("b").Tick(func(tick *netloop.Tick) { tick.Room().Publish(tick, match{Map: "b", Round: 2}) })
	w.Room("c").Drain(0, netloop.CodeGame, "over")
	check("at once", find(filter{}), "a b c")
	w.Step(30)
	check("after some have left", find(filter{}), "b")
	if got := netloop.ListRooms(server, filter{})[0].Info; got.Round != 2 {
		t.Errorf("it publishes %+v", got)
	}
	w.Room("a").Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, false) })
	w.Room("b").Tick(func(tick *netloop.Tick) { tick.Room().Publish(tick, nil) })
	w.Step(30)
	check("in the end", find(filter{}), "a")
	if mods := netloop.ListRooms(server, filter{})[0].Info.Mods; mods[0] != 1 {
		t.Errorf("a list is shared: %v", mods)
	}
}

// serverOf returns the server of a world.
func serverOf(w *netlooptest.World) (s *netloop.Server) {
	w.Tick(func(tick *netloop.Tick) { s = tick.Room().Server() })
	return s
}

// huge may exceed the limit of published values.
type huge struct {
	B []byte `net:"max=20000"`
}

// An invalid published value or query panics or fails at once.
func TestUnpublishableValuesPanicOrFail(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	says := func(want string, fn func()) {
		t.Helper()
		defer func() {
			if v := fmt.Sprint(recover()); !strings.HasPrefix(v, "netloop: "+want) {
				t.Errorf("%q, want %s", v, want)
			}
		}()
		fn()
	}
	w.Tick(func(tick *netloop.Tick) {
		says("Room.Publish: use a plain struct", func() { tick.Room().Publish(tick, 7) })
		says("Room.Publish: use a plain struct", func() { tick.Room().Publish(tick, struct{ C chan int }{}) })
		says("Room.Publish: a e2e_test.huge takes", func() { tick.Room().Publish(tick, huge{make([]byte, netloop.MaxMessage)}) })
		says("Room.Publish: use a plain struct", func() { tick.Room().Publish(tick, match{Mods: make([]uint8, 300)}) })
		says("ListRooms: use a plain struct", func() { netloop.ListRooms(tick.Room().Server(), netloop.RoomFilter[int]{}) })
	})
	s := netlooptest.New(t, script(func(*netloop.Room) {}))
	says("ListRooms: use a plain struct", func() { netloop.ListRooms(serverOf(s), netloop.RoomFilter[func()]{}) })
}

// A watching lobby has all rooms that its filter selects, whatever happens to them. Its replay
// gets the same changes, and ListRooms returns the same.
func TestALobbyWatchesTheRooms(t *testing.T) {
	seeds.Each(t, 60, playLobby)
}

func playLobby(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	picks := func(l netloop.RoomListing[match]) bool { return l.Info.Round%2 == 0 }
	filter := netloop.RoomFilter[match]{Kind: "table", Free: 1, Where: picks}
	known := map[string]netloop.RoomListing[match]{}
	said := ""
	g := script(func(r *netloop.Room) {
		if r.Spec().Name != "" {
			r.Publish(nil, match{Map: r.Spec().Name, Round: int32(len(r.Spec().Name))})
			return
		}
		clear(known)
		said = ""
		netloop.WatchRooms(r, filter, func(tick *netloop.Tick, changes []netloop.RoomChange[match]) {
			for _, c := range changes {
				if _, knew := known[c.Room.Name]; c.Gone && !knew {
					t.Errorf("%q was removed but never added", c.Room.Name)
				}
				if known[c.Room.Name] = c.Room; c.Gone {
					delete(known, c.Room.Name)
				}
			}
			said += fmt.Sprint(tick.Number(), changes)
		})
		r.OnStart(func(tick *netloop.Tick) {
			tick.AfterFunc(2*time.Second, func(tick *netloop.Tick) {
				s := tick.Room().Server()
				list := func(context.Context) ([]netloop.RoomListing[match], error) { return netloop.ListRooms(s, filter), nil }
				netloop.Go(tick, list, func(_ *netloop.Tick, all []netloop.RoomListing[match], err error) { said += fmt.Sprint(all, err) })
			})
		})
	})
	var lobby bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Record(&lobby))
	open := map[string]bool{}
	var clients []*client.Client
	for range 40 {
		name := strings.Repeat("x", 1+rng.IntN(6))
		switch n := rng.IntN(10); {
		case !open[name] && n < 7:
			// A room of the name may be about to end.
			_, err := w.OpenRoom(netloop.RoomSpec{Name: name, Kind: []string{"table", "table", "field"}[rng.IntN(3)], MaxClients: 2, Rate: netloop.Hz(20)})
			open[name] = err == nil
		case !open[name]:
		case n < 4:
			w.Room(name).Tick(func(tick *netloop.Tick) {
				tick.Room().Publish(tick, match{Map: name, Round: int32(rng.IntN(4)), Mods: []uint8{uint8(n)}})
			})
		case n < 5:
			w.Room(name).Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, rng.IntN(2) == 0) })
		case n < 8:
			clients = append(clients, joinRoom(w, name))
		case n < 9 && len(clients) > 0:
			_ = clients[rng.IntN(len(clients))].Close() // It may be closed already.
		default:
			w.Room(name).Drain(0, netloop.CodeGame, "over")
			open[name] = false
		}
		w.Step(1 + rng.IntN(20))
	}
	w.Settle()
	w.Step(60)
	listed := netloop.ListRooms(serverOf(w), netloop.RoomFilter[match]{Kind: filter.Kind, Free: filter.Free, Limit: -1, Where: picks})
	byName := func(a, b netloop.RoomListing[match]) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(listed, byName)
	if got := slices.SortedFunc(maps.Values(known), byName); fmt.Sprint(got) != fmt.Sprint(listed) {
		t.Errorf("the lobby has %v, the list is %v", got, listed)
	}
	played := said
	r, err := netloop.NewReplay(netloop.Config{}, g, &lobby)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = r.Step()
	}
	if !errors.Is(err, io.EOF) || said != played {
		t.Errorf("the replay ends with %v, got %q, want %q", err, said, played)
	}
}

// A running server notifies watchers of opened and closed rooms, and frees all of a watching
// room that has ended.
func TestARunningServerNotifiesRoomWatchers(t *testing.T) {
	told := make(chan string, 100)
	s, _ := serve(t, script(func(r *netloop.Room) {
		if r.Spec().Name == "a" {
			return
		}
		netloop.WatchRooms(r, netloop.RoomFilter[struct{}]{Kind: "table"}, func(_ *netloop.Tick, changes []netloop.RoomChange[struct{}]) {
			for _, c := range changes {
				told <- fmt.Sprint(r.Spec().Name, ":", c.Room.Name, c.Gone)
			}
		})
	}), 100)
	wait := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			select {
			case one := <-told:
				got = append(got, one)
			case <-time.After(20 * time.Second):
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if _, err := s.OpenRoom(context.Background(), netloop.RoomSpec{Name: "watcher"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenRoom(context.Background(), table("a")); err != nil {
		t.Fatal(err)
	}
	wait(":afalse", "watcher:afalse")
	if err := s.CloseRoom("watcher", 0, netloop.CodeGame, "over"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(netloop.ListRooms(s, netloop.RoomFilter[struct{}]{})) == 2 })
	if err := s.CloseRoom("a", 0, netloop.CodeGame, "over"); err != nil {
		t.Fatal(err)
	}
	wait(":atrue")
}
