package e2e_test

import (
	"testing"
	"testing/synctest"

	"github.com/netloop/netloop"
	lobby "github.com/netloop/netloop/match"
)

// A lobby opens rooms on the server that their Place selects, fills one before it opens the next,
// also before its cluster lists it, and finds those that another server's lobby has opened.
func TestALobbyMatchesInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newClusterBed(t)
		x, y := b.server("x", still), b.server("y", still)
		b.step(2)
		spec := netloop.RoomSpec{Name: "match", Kind: "table", MaxClients: 2, Place: netloop.Place{Server: "y"}}
		ofX, ofY := lobby.NewRooms(lobby.Config[struct{}]{Spec: spec}), lobby.NewRooms(lobby.Config[struct{}]{Spec: spec})
		find := func(m *lobby.Rooms[struct{}], s *clusterServer, player string) lobby.Place {
			t.Helper()
			p, err := m.Find(t.Context(), s.Server, player, netloop.Reservation{})
			if err != nil || len(p.Tickets) != 1 {
				t.Fatalf("%s: %v, %+v", player, err, p)
			}
			return p
		}
		ann, bob, eve := find(ofX, x, "ann"), find(ofX, x, "bob"), find(ofX, x, "eve")
		if !ann.Opened || bob.Opened || bob.Room != ann.Room || !eve.Opened || eve.Room == ann.Room {
			t.Errorf("ann is in %+v, bob in %+v, eve in %+v", ann, bob, eve)
		}
		for _, name := range []string{ann.Room, eve.Room} {
			if y.Room(name) == nil {
				t.Errorf("room %s is not at y", name)
			}
		}
		b.step(10)
		if tom := find(ofY, y, "tom"); tom.Opened || tom.Room != eve.Room {
			t.Errorf("tom is in %+v, not in %s", tom, eve.Room)
		}
		// A room that has ended elsewhere is given up.
		pat := find(ofX, x, "pat")
		if err := y.CloseRoom(pat.Room, 0, netloop.CodeClosing, "over"); err != nil {
			t.Fatal(err)
		}
		b.step(60)
		if zoe := find(ofX, x, "zoe"); zoe.Room == pat.Room || !zoe.Opened {
			t.Errorf("zoe is in %+v, after %s", zoe, pat.Room)
		}
	})
}
