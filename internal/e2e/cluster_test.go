package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/netlooptest"
)

// clusterBed is a cluster in memory with worlds as its servers, which run in step.
type clusterBed struct {
	*testing.T
	hub    *cluster.Memory
	worlds map[string]*clusterServer
	order  []string
}

// until steps until a condition holds. In each step the goroutines of all servers run until they
// wait: the test needs a bubble of testing/synctest.
func (b *clusterBed) until(what string, done func() bool) {
	b.Helper()
	for range 5000 {
		if done() {
			return
		}
		b.step(1)
		synctest.Wait()
	}
	b.Fatal("not reached: ", what)
}

// clusterServer is a server of the cluster.
type clusterServer struct {
	*netlooptest.World
	*netloop.Server
}

func newClusterBed(t *testing.T) *clusterBed {
	b := &clusterBed{T: t, worlds: map[string]*clusterServer{}}
	b.hub = cluster.NewMemory(1000, b.now)
	return b
}

func (b *clusterBed) now() time.Duration {
	if len(b.order) == 0 {
		return 0
	}
	return b.worlds[b.order[0]].Now()
}

// server adds a server with a game that fills its rooms.
func (b *clusterBed) server(id string, fill func(*netloop.Room)) *clusterServer {
	b.Helper()
	return b.serverOf(id, schema, fill)
}

// serverOf is server with a schema and options.
func (b *clusterBed) serverOf(id string, of *netloop.Schema, fill func(*netloop.Room), o ...netlooptest.Option) *clusterServer {
	b.Helper()
	c := new(clusterServer)
	joined := netlooptest.Configure(func(c *netloop.Config) {
		c.Cluster = netloop.Cluster{Via: b.hub.Member(), ID: id, Region: "eu"}
	})
	c.World = netlooptest.New(b.T, game{of, func(r *netloop.Room) { c.Server = r.Server(); fill(r) }}, append([]netlooptest.Option{joined}, o...)...)
	b.worlds[id], b.order = c, append(b.order, id)
	return c
}

func still(*netloop.Room) {}

// step runs ticks of all servers, except of frozen ones.
func (b *clusterBed) step(ticks int, frozen ...string) {
	for range ticks {
		for _, id := range b.order {
			if !slices.Contains(frozen, id) {
				b.worlds[id].Step(1)
			}
		}
		b.hub.Settle()
	}
}

// listed returns the rooms in a server's listing, with their players.
func listed(c *clusterServer) []string {
	var all []string
	for _, l := range netloop.ListRooms(c.Server, netloop.RoomFilter[struct{}]{Kind: "table"}) {
		all = append(all, fmt.Sprint(l.Name, " ", l.Players, "/", l.MaxClients))
	}
	slices.Sort(all)
	return all
}

// Rooms are opened on the least loaded server, their names are unique in the cluster, seats are
// reserved from every server, and every server lists and closes them.
func TestRoomsOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newClusterBed(t)
		x, y := b.server("x", still), b.server("y", still)
		b.step(2)
		at := map[string]string{}
		for _, name := range []string{"oak", "elm", "ash", "fir"} {
			info, err := x.PlaceRoom(t.Context(), table(name))
			if err != nil || info.Spec.Name != name {
				t.Fatal(err, info)
			}
			at[name] = info.Server
		}
		if want := map[string]string{"oak": "x", "elm": "y", "ash": "x", "fir": "y"}; fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("rooms are at %v, want %v", at, want)
		}
		b.step(10)
		for _, w := range b.worlds {
			if got, want := listed(w), []string{"ash 0/5", "elm 0/5", "fir 0/5", "oak 0/5"}; !slices.Equal(got, want) {
				t.Errorf("listed %q, want %q", got, want)
			}
		}
		if _, err := y.Server.OpenRoom(t.Context(), table("oak")); !errors.Is(err, netloop.ErrRoomExists) {
			t.Errorf("a second oak: %v", err)
		}
		spec := table("pine")
		spec.Place.Server = "z"
		if _, err := y.PlaceRoom(t.Context(), spec); !errors.Is(err, cluster.ErrGone) {
			t.Errorf("a room on a server that does not exist: %v", err)
		}
		tickets, err := x.Reserve(t.Context(), "elm", netloop.Reservation{Seats: 2})
		if err != nil || len(tickets) != 2 {
			t.Fatal(err)
		}
		if _, err := x.Reserve(t.Context(), "elm", netloop.Reservation{Seats: 4}); refusedAs(err) != netloop.CodeFull {
			t.Errorf("four of three free seats: %v", err)
		}
		if _, err := x.Reserve(t.Context(), "none", netloop.Reservation{}); refusedAs(err) != netloop.CodeRoomUnknown {
			t.Errorf("a seat of a room that does not exist: %v", err)
		}
		c := y.JoinAs(client.Config{Ticket: string(tickets[0])}, netlooptest.Link{})
		b.step(30)
		if c.Room() != "elm" || c.State().Phase != client.Playing {
			t.Errorf("the ticket leads to %q, %v", c.Room(), c.State())
		}
		if got := listed(x); !slices.Contains(got, "elm 2/5") {
			t.Errorf("x lists %q", got)
		}
		if err := x.CloseRoom("elm", 0, netloop.CodeClosing, "over"); err != nil {
			t.Fatal(err)
		}
		b.until("the client of the closed room has the reason", func() bool { return c.Closed() != nil && c.Closed().Text == "over" })
		b.step(20)
		if got := listed(x); slices.Contains(got, "elm 2/5") || len(got) != 3 {
			t.Errorf("x lists %q", got)
		}
		b.until("the name of the room that has ended is free", func() bool {
			_, err := x.Server.OpenRoom(t.Context(), table("elm"))
			return err == nil
		})
	})
}

// A server that is frozen for longer than its lease loses the names that others want: its room
// ends, has the smaller incarnation, and admits no newcomer.
func TestTheOlderRoomOfANameEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newClusterBed(t)
		x, y := b.server("x", still), b.server("y", still)
		old, err := x.Server.OpenRoom(t.Context(), table("oak"))
		if err != nil {
			t.Fatal(err)
		}
		b.step(10)
		c := x.JoinAs(client.Config{Room: "oak"}, netlooptest.Link{})
		b.step(30)
		b.hub.Partition("x", 1)
		b.step(60 * cluster.HoldBeats)
		late := x.JoinAs(client.Config{Room: "oak"}, netlooptest.Link{})
		b.step(60)
		wasRefused(t, "a newcomer without a lease", late, netloop.CodeBusy)
		b.step(60)
		next, err := y.Server.OpenRoom(t.Context(), table("oak"))
		if err != nil || next.Incarnation() <= old.Incarnation() {
			t.Fatalf("%v, incarnation %d after %d", err, next.Incarnation(), old.Incarnation())
		}
		if c.State().Phase != client.Playing {
			t.Error("the room does not continue while it is alone")
		}
		b.hub.Partition("x", 0)
		// Its client cannot move.
		b.until("the older room ends", func() bool { return c.Closed() != nil })
		if why := c.Closed(); why.Code != netloop.CodeClosing {
			t.Errorf("the client of the older room: %v", why)
		}
		b.step(60 * 2)
		if got, want := listed(x), []string{"oak 0/5"}; !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	})
}

// The room of a silent server is opened on another one by the first request, once its name is free:
// not when its server is forgotten, a minute later.
func TestTheRoomOfASilentServerIsOpenedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newClusterBed(t)
		x, y := b.server("x", still), b.server("y", still)
		if _, err := x.Server.OpenRoom(t.Context(), table("oak")); err != nil {
			t.Fatal(err)
		}
		b.step(10)
		b.hub.Partition("x", 1)
		b.step(60 * cluster.SuspectBeats)
		if _, err := y.PlaceRoom(t.Context(), table("oak")); !errors.Is(err, netloop.ErrRoomExists) {
			t.Errorf("a room of a suspect server: %v", err)
		}
		c := y.JoinAs(client.Config{Room: "oak"}, netlooptest.Link{})
		b.step(60)
		wasRefused(t, "a newcomer to a room of a suspect server", c, netloop.CodeBusy)
		b.step(60 * (cluster.LeaseBeats - cluster.SuspectBeats))
		if _, err := y.Reserve(t.Context(), "oak", netloop.Reservation{}); refusedAs(err) != netloop.CodeRoomUnknown {
			t.Errorf("a seat of a room without a name: %v", err)
		}
		info, err := y.PlaceRoom(t.Context(), table("oak"))
		if err != nil || info.Server != "y" {
			t.Errorf("opened at %q, %v", info.Server, err)
		}
	})
}

// While the store is gone, rooms are opened nowhere, and seats of own rooms are reserved until the
// lease is no longer confirmed.
func TestAClusterWithoutItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newClusterBed(t)
		x := b.server("x", still)
		if _, err := x.Server.OpenRoom(t.Context(), table("oak")); err != nil {
			t.Fatal(err)
		}
		b.step(10)
		b.hub.StoreGone(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := x.PlaceRoom(ctx, table("elm")); !errors.Is(err, netloop.ErrClusterBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a room without a store: %v", err)
		}
		if _, err := x.Reserve(t.Context(), "oak", netloop.Reservation{}); err != nil {
			t.Error(err)
		}
		b.step(60 * cluster.LeaseBeats)
		if _, err := x.Reserve(t.Context(), "oak", netloop.Reservation{}); refusedAs(err) != netloop.CodeBusy {
			t.Errorf("a seat without a lease: %v", err)
		}
		b.hub.StoreGone(false)
		b.step(10)
		if _, err := x.Reserve(t.Context(), "oak", netloop.Reservation{}); err != nil {
			t.Errorf("after the store is back: %v", err)
		}
	})
}
