package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// simulation plays random worlds with all features at once, over the in-memory transport and the
// public API.
//
//	kinds     the classes, their random edits and readers: simulation_classes_test.go and
//	          simulation_kind_test.go
//	actions   changes of the game in a tick: simulation_actions_test.go
//	events    events of links and clients: simulation_links_test.go
//	model     the expected state of each client, from plain values: simulation_model_test.go
//	client    a client: each watcher call is compared with the model of its tick, and finally
//	          its whole state: simulation_client_test.go
//	coverage  the cases reached by all simulations, and checks of Explain:
//	          simulation_coverage_test.go
//
// In the end edits stop and links heal, and each client must converge within its bound.
type simulation struct {
	t     *testing.T
	rng   *rand.Rand
	w     *netlooptest.World
	m     *model
	tally *coverage

	sides [numSides]*netloop.ClientGroup
	grid  *netloop.Grid
	spec  netloop.RoomSpec
	due   map[uint64][]func(*netloop.Tick)
	most  int    // approximate number of objects
	idle  uint64 // the game makes no changes until this tick
	over  bool   // the game has ended its edits
}

// maxSimulations bounds the seeds of `make verify`: each takes ten times as long as a seed of the
// other properties.
const maxSimulations = 2000

// TestEveryClientConverges plays simulations. A failed one prints the command that plays it
// alone.
func TestEveryClientConverges(t *testing.T) {
	all, n := newCoverage(), 0
	for seed := range seeds.Of(t, 200) {
		if n++; n > maxSimulations {
			break
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { newSimulation(t, seed, all).run() })
	}
	t.Logf("%+v", *all)
	if n >= 200 {
		all.reachesEverything(t)
	}
}

// TestASimulationIsDeterministic: otherwise a seed could not repeat a failure.
func TestASimulationIsDeterministic(t *testing.T) {
	seeds.OneGoroutine(t)
	play := func() (sums []string) {
		s := newSimulation(t, 3, newCoverage())
		s.run()
		for _, g := range s.m.clients {
			sums = append(sums, fmt.Sprintf("%x", g.log.Sum(nil)))
		}
		return sums
	}
	if one, two := play(), play(); !slices.Equal(one, two) {
		t.Errorf("one time %v\nthe next %v", one, two)
	}
}

func newSimulation(t *testing.T, seed uint64, all *coverage) *simulation {
	s := &simulation{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), tally: all, due: map[uint64][]func(*netloop.Tick){},
		m: &model{guild: map[netloop.ClientID]bool{}},
	}
	s.most = []int{8, 20, 50}[s.rng.IntN(3)]
	for n := range numSides {
		s.sides[n], s.m.sides[n] = netloop.NewClientGroup(), map[netloop.ClientID]bool{}
	}
	s.spec = netloop.RoomSpec{Budget: []int{200, 1000, 10_000}[s.rng.IntN(3)], SendEvery: []int{1, 1, 1, 3}[s.rng.IntN(4)]}
	s.w = netlooptest.New(t, s, netlooptest.Seed(seed), netlooptest.Room(s.spec))
	return s
}

func (*simulation) Schema() *netloop.Schema { return simSchema }

// Open makes the simulation a game.
func (s *simulation) Open(room *netloop.Room) error {
	s.grid = netloop.NewGrid(room, netloop.GridSpec{Radius: gridRadius, Margin: gridMargin, Cell: gridCell})
	walkers.PlaceOn(s.grid, func(w *walker) (x, y, z float64) { return float64(w.X), float64(w.Y), 0 })
	walkers.WeightFor(room, func(c *netloop.Client, o *netloop.Object[walker]) float64 {
		return float64(1+uint64(c.ID())%3) * float64(o.State().X+200) / 200
	})
	vaults.Reads(room, "side", func(o *netloop.Object[vault]) netloop.Target { return netloop.InGroup(s.sides[o.State().Side]) })
	vaults.Reads(room, "guild", func(*netloop.Object[vault]) netloop.Target {
		return netloop.Where(func(c *netloop.Client) bool { return s.m.guild[c.ID()] })
	})
	room.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		n, err := strconv.Atoi(c.Join().Token)
		if err != nil {
			return err
		}
		g := s.m.clients[n]
		s.m.join(g, c.ID())
		if g.budget != s.spec.Budget {
			c.SetBudget(t, g.budget)
		}
		if s.rng.IntN(2) == 0 {
			s.look(t, c, g)
		}
		return nil
	})
	room.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { s.m.leave(c.ID()) })
	room.On(netloop.Update, "simulation.act", s.act)
	room.On(netloop.PreLateUpdate, "simulation.settle", func(t *netloop.Tick) { s.m.settle(t.Number()) })
	return nil
}

// run plays the simulation.
func (s *simulation) run() {
	s.join()
	s.join()
	for range 180 + s.rng.IntN(180) {
		s.step()
		if s.rng.IntN(6) == 0 {
			s.disturb()
		}
		if s.rng.IntN(4) == 0 {
			s.w.Tick(s.explained)
		}
	}
	s.over = true
	for left := slowTicks + 1; left > 0; left-- { // Values held back by an interval are captured,
		if len(s.due) > 0 { // after the last delayed action.
			left = slowTicks + 1
		}
		s.step()
	}
	s.w.Until(600, func() bool {
		s.check()
		return !slices.ContainsFunc(s.m.clients, func(g *simClient) bool {
			return !g.gone && (!g.in || g.c.State().Phase == client.Reconnecting)
		})
	})
	s.heal()
	s.verify()
}

// step runs a tick, and fails at the first difference.
func (s *simulation) step() {
	s.w.Step(1)
	s.check()
}

func (s *simulation) check() {
	s.mend(s.m.tick)
	for _, g := range s.m.clients {
		if closed := g.c.Closed(); closed != nil && !g.gone {
			g.fail("is closed: %v", closed)
		}
		if stats := g.c.Stats(); stats.Malformed > 0 || stats.Unequal > 0 {
			g.fail("%d malformed, %d unequal", stats.Malformed, stats.Unequal)
		}
		if g.err != nil {
			s.t.Fatal(g.err)
		}
	}
}

// heal ends the events of all links, and waits for each client until its bound.
func (s *simulation) heal() {
	bounds, waiting := map[*simClient]int{}, 0
	for _, g := range s.m.clients {
		if g.gone {
			continue
		}
		if g.mend != nil {
			g.mend()
		}
		g.link.Loss = 0
		s.w.SetLink(g.c, g.link)
		bounds[g], waiting = g.bound(s.m), waiting+1
	}
	healed := map[*simClient]int{}
	for n := 1; waiting > 0; n++ {
		s.step()
		for _, g := range s.m.clients {
			bound, ok := bounds[g]
			if !ok || n > bound {
				continue
			}
			err := g.differs(s.w)
			if err != nil {
				delete(healed, g)
			} else if healed[g] == 0 {
				healed[g] = n
			}
			if n == bound {
				waiting--
				if err != nil {
					s.t.Fatalf("%d ticks after edits have stopped and links have healed: %v", n, err)
				}
				s.tally.late = max(s.tally.late, float64(healed[g])/float64(bound))
			}
		}
	}
}

// verify compares by the runtime's own digests and counters.
func (s *simulation) verify() {
	asked, agreed := 0, 0
	for _, g := range s.m.clients {
		if g.gone {
			continue
		}
		asked++
		g.c.Verify(func(err error) {
			if err != nil {
				s.t.Errorf("client %d: %v", g.id, err)
			}
			agreed++
		})
	}
	s.w.Until(700, func() bool { return agreed == asked })
	for _, g := range s.m.clients {
		stats, sum := g.c.Stats(), &s.tally.stats
		sum.Snapshots += stats.Snapshots
		sum.Records += stats.Records
		sum.Stale += stats.Stale
		sum.Lost += stats.Lost
		sum.HeldBack += stats.HeldBack
		sum.Drops += stats.Drops
		sum.Resumes += stats.Resumes
		if stats.Drops != stats.Resumes && !g.gone {
			s.t.Errorf("client %d was dropped %d times, and resumed %d times", g.id, stats.Drops, stats.Resumes)
		}
	}
}
