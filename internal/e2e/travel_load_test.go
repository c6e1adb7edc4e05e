package e2e_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/netlooptest"
)

// Players of four servers move to a room of another server every other second, 1 000 in a second
// with NETLOOP_VERIFY: none is lost, and each is in one room, also as the one place of its player.
func TestManyPlayersMoveBetweenServers(t *testing.T) {
	players, length := 60, 4*time.Second
	if os.Getenv("NETLOOP_VERIFY") != "" {
		players = 2000
	}
	const servers, rooms, interval, step = 4, 16, 2 * time.Second, 5 * time.Millisecond
	var worlds [servers]*netlooptest.World
	hub := cluster.NewMemory(1, func() time.Duration {
		if worlds[servers-1] == nil { // They join while they are made.
			return 0
		}
		return worlds[servers-1].Now()
	})
	spec := netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 2 * players}
	name := func(server, room int) string { return fmt.Sprint("oak ", server%servers, " ", room%rooms) }
	for n := range servers {
		id := fmt.Sprint("s", n)
		worlds[n] = netlooptest.New(t, lobbyGame(named), netlooptest.Room(spec), netlooptest.Configure(func(c *netloop.Config) {
			c.MaxClients, c.Cluster = 4*players, netloop.Cluster{Via: hub.Member(), ID: id, Addr: id + ":1", Duplicate: netloop.DuplicateRefuse}
		}))
		worlds[0].Connect(id+":1", worlds[n])
		for k := range rooms { // A room admits a few players in each tick.
			room := spec
			room.Name = name(n, k)
			openRoom(t, worlds[n], room)
		}
	}
	advance := func(d time.Duration) {
		for range d / step {
			for _, w := range worlds {
				w.Advance(step)
			}
			hub.Settle()
			for _, w := range worlds {
				w.Settle()
			}
		}
	}
	all := make([]*client.Client, players)
	var moves, lost int
	moving := false
	var start time.Duration
	for n := range all {
		c := worlds[0].JoinAs(client.Config{Room: name(0, n), Token: fmt.Sprint("player ", n)}, netlooptest.Link{Delay: 10 * time.Millisecond})
		at, next := 0, interval*time.Duration(n)/time.Duration(players)
		c.On(netloop.Update, "wander", func(*netloop.Tick) {
			if now := worlds[0].Now() - start; now >= next && moving && c.State().Phase == client.Playing {
				next, at = now+interval, at+1
				client.Send(c, echo, text{S: name(at, n)})
			}
		})
		was := c.Room()
		c.OnState(func(now client.State) {
			if now.Phase == client.Playing && c.Room() != was {
				moves, was = moves+1, c.Room()
			}
		})
		all[n] = c
	}
	playing := func() (n int) {
		for _, c := range all {
			if c.State().Phase == client.Playing {
				n++
			}
		}
		return n
	}
	for range 20 {
		if playing() < players {
			advance(time.Second)
		}
	}
	moving, moves, start = true, 0, worlds[0].Now()
	advance(length)
	moving = false
	advance(2 * time.Second)
	for _, c := range all {
		if c.State().Phase != client.Playing || c.Stats().Drops > 0 {
			if lost++; lost == 1 {
				t.Logf("one is lost: %v, closed: %v", c.State().Phase, c.Closed())
			}
		}
	}
	seated := 0
	for n, w := range worlds {
		for k := range rooms {
			w.Room(name(n, k)).Tick(func(tick *netloop.Tick) {
				for range tick.Clients() {
					seated++
				}
			})
		}
	}
	t.Logf("%d players, %d moves in %v", players, moves, length)
	if want := players * int(length/interval) * 9 / 10; lost > 0 || seated != players || moves < want {
		t.Errorf("%d of %d players are lost, %d are in rooms, after %d moves, want %d", lost, players, seated, moves, want)
	}
}
