package e2e_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestAJoinersStateComesWithProgress: 2 000 objects take many snapshots. The client hears how
// many have come, plays when it has all of them, and no earlier.
func TestAJoinersStateComesWithProgress(t *testing.T) {
	for name, link := range map[string]netlooptest.Link{"perfect": perfect, "bad": bad} {
		w := netlooptest.New(t, crowd{balls: 2000}, netlooptest.Room(netloop.RoomSpec{Budget: 1000}))
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
