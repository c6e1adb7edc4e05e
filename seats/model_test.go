package seats_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/seats"
)

// Whatever players do, each has one seat at most, which shows whether a client of the player is
// connected.
func TestSeatsFollowTheClients(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			pick := func(all ...time.Duration) time.Duration { return all[rng.IntN(len(all))] }
			keeps := []time.Duration{-1, 0, 10 * time.Second, time.Minute}
			g := &table{spec: netloop.RoomSpec{MaxSpectators: 9, KeepDropped: pick(-1, 5*time.Second, 30*time.Second)}}
			g.cfg.Keep, g.cfg.Most = pick(keeps...), 1+rng.IntN(4)
			if rng.IntN(2) == 0 {
				g.spec.Duplicate = netloop.DuplicateAllow
			}
			w := play(t, g, netlooptest.Seed(seed+1))
			w.Step(1)
			var locked bool
			var devices []string
			for range 60 {
				device := fmt.Sprintf("%c %d", 'a'+rune(rng.IntN(4)), rng.IntN(3))
				known := slices.Contains(devices, device)
				switch rng.IntN(10) {
				case 0, 1, 2:
					if known {
						_ = w.by[device].Close()
					}
					w.come(device, rng.IntN(4) == 0)
					devices = append(devices, device)
				case 3, 4:
					if known {
						w.leave(device)
					}
				case 5:
					if known {
						w.drop(device)
					}
				case 6:
					if known {
						w.back(device)
					}
				case 7:
					if locked = !locked; locked {
						w.lock(pick(keeps...))
					} else {
						w.unlock()
					}
				case 8:
					w.tick(func(t *netloop.Tick) {
						for c := range t.Clients() {
							g.seats.Sit(t, c)
						}
					})
				case 9:
					if all := g.seats.All(); len(all) > 0 && rng.IntN(3) == 0 {
						w.tick(func(t *netloop.Tick) { g.seats.Free(t, all[rng.IntN(len(all))]) })
					}
				}
				w.Advance(pick(0, time.Second, 20*time.Second))
				w.tick(func(tick *netloop.Tick) { check(t, tick, g, locked) })
			}
		})
	}
}

// check compares the seats with the clients of the room.
func check(t *testing.T, tick *netloop.Tick, g *table, locked bool) {
	t.Helper()
	connected := map[string][]netloop.ClientID{}
	for c := range tick.Clients() {
		if !c.Spectator() && c.Connected() {
			connected[c.Join().Subject] = append(connected[c.Join().Subject], c.ID())
		}
	}
	all := g.seats.All()
	if len(all) > g.cfg.Most || hands.Len(tick) != len(all) {
		t.Fatalf("%d seats of %d, with %d objects", len(all), g.cfg.Most, hands.Len(tick))
	}
	held := map[string]bool{}
	for _, s := range all {
		p, shown := s.Player(), s.Object.State().Presence
		here := connected[p]
		switch left := shown.Until.Left(tick); {
		case shown.Status != s.Status():
			t.Fatalf("%s is %v, and shown as %v", p, s.Status(), shown.Status)
		case s.Status() == seats.Gone:
			if !locked || s.Object.Owner() != 0 {
				t.Fatalf("%s is gone, locked %v, and the owner is %d", p, locked, s.Object.Owner())
			}
			continue // The player may have another seat later.
		case held[p]:
			t.Fatalf("%s has two seats", p)
		case s.Here() != (len(here) > 0):
			t.Fatalf("%s is %v with the clients %v", p, s.Status(), here)
		case s.Here() && (!slices.Contains(here, s.Object.Owner()) || left > 0):
			t.Fatalf("%s is here with the clients %v, and the owner is %d, for %v", p, here, s.Object.Owner(), left)
		case left > time.Minute:
			t.Fatalf("%s is kept for %v", p, left)
		}
		held[p] = true
	}
}
