package arena_test

import (
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/netlooptest"
)

// TestThePageHasTheGamesFlights checks the cases of steer.test.ts, which the page's steering must
// equal: ships cross edges, fire, reload, fall and no longer fire.
func TestThePageHasTheGamesFlights(t *testing.T) {
	over, shots, silent := 0, 0, 0
	var in arena.Control
	netlooptest.SpawnVectors(t, "web/testdata/ships.json", 300, arena.Ships, arena.Controls, func(s *arena.Ship, t *netloop.Tick, in arena.Control, spawns *netlooptest.Spawns) {
		was := s.Leaps
		switch fires := s.Steer(t, in); {
		case fires:
			shots++
			netlooptest.AddSpawn(spawns, arena.Shots, s.Shot(t))
		case in.Fire && s.Hull == 0:
			silent++
		}
		if s.Leaps != was {
			over++
		}
	}, func(r *rand.Rand, i int, s *arena.Ship) arena.Control {
		if i%100 == 0 {
			*s = arena.Ship{X: arena.Size - 5, Y: 50, Name: "ann", Hull: 3, Leaps: 254, Reload: s.Reload}
		}
		if i%100 == 80 {
			s.Hull = 0
		}
		if i%15 == 0 {
			in = arena.Control{Thrust: r.IntN(4) > 0, Turn: int8(r.IntN(5) - 2)}
		}
		in.Fire = r.IntN(3) == 0
		return in
	})
	if over == 0 || shots == 0 || silent == 0 {
		t.Errorf("%d edges, %d shots and %d tries of fallen ships", over, shots, silent)
	}
}
