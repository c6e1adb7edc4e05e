package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The trial: random worlds with everything at once, over the in-memory transport and through the
// public API alone.
//
//	kinds    the classes, their random edits, and who reads what: simulation_classes_test.go
//	         and simulation_kind_test.go
//	deeds    what the game does in a tick: simulation_actions_test.go
//	weather  what becomes of links, and clients that come and go: simulation_links_test.go
//	mirror   what each client shall have of that, from plain values: simulation_model_test.go
//	guest    a client: each thing that it is told is compared with the mirror of the tick that
//	         told it, and in the end all that it has: simulation_client_test.go
//	harvest  what all trials have come across, and what Explain says meanwhile:
//	         simulation_coverage_test.go
//
// In the end edits stop and links heal, and each client has as long as DESIGN's healing bound says.
type trial struct {
	t     *testing.T
	rng   *rand.Rand
	w     *netlooptest.World
	m     *mirror
	tally *harvest

	sides [numSides]*netloop.ClientGroup
	grid  *netloop.Grid
	spec  netloop.RoomSpec
	due   map[uint64][]func(*netloop.Tick)
	most  int    // objects, about
	idle  uint64 // the game rests until this tick
	over  bool   // the game has ended its edits
}

// maxTrials is how many `make verify` plays: a trial takes ten times as long as a seed of the
// others.
const maxTrials = 2000

// TestEveryClientConverges plays trials. A failing one says how to play it alone.
func TestEveryClientConverges(t *testing.T) {
	all, n := newHarvest(), 0
	for seed := range seeds.Of(t, 200) {
		if n++; n > maxTrials {
			break
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { newTrial(t, seed, all).run() })
	}
	t.Logf("%+v", *all)
	if n >= 200 {
		all.reachesEverything(t)
	}
}

// TestATrialIsTheSameEachTime: a seed is worth nothing otherwise.
func TestATrialIsTheSameEachTime(t *testing.T) {
	play := func() (sums []string) {
		r := newTrial(t, 3, newHarvest())
		r.run()
		for _, g := range r.m.guests {
			sums = append(sums, fmt.Sprintf("%x", g.log.Sum(nil)))
		}
		return sums
	}
	if one, two := play(), play(); !slices.Equal(one, two) {
		t.Errorf("one time %v\nthe next %v", one, two)
	}
}

func newTrial(t *testing.T, seed uint64, all *harvest) *trial {
	r := &trial{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), tally: all, due: map[uint64][]func(*netloop.Tick){},
		m: &mirror{guild: map[netloop.ClientID]bool{}},
	}
	r.most = []int{8, 20, 50}[r.rng.IntN(3)]
	for n := range numSides {
		r.sides[n], r.m.sides[n] = netloop.NewClientGroup(), map[netloop.ClientID]bool{}
	}
	r.spec = netloop.RoomSpec{Budget: []int{200, 1000, 10_000}[r.rng.IntN(3)], SendEvery: []int{1, 1, 1, 3}[r.rng.IntN(4)]}
	r.w = netlooptest.New(t, r, netlooptest.Seed(seed), netlooptest.Room(r.spec))
	return r
}

func (*trial) Schema() *netloop.Schema { return isles }

// Open makes the trial a game.
func (r *trial) Open(room *netloop.Room) error {
	r.grid = netloop.NewGrid(room, netloop.GridSpec{Radius: gridRadius, Margin: gridMargin, Cell: gridCell})
	walkers.PlaceOn(r.grid, func(w *walker) (x, y, z float64) { return float64(w.X), float64(w.Y), 0 })
	walkers.Weigh(room, func(c *netloop.Client, o *netloop.Object[walker]) float64 {
		return float64(1+uint64(c.ID())%3) * float64(o.State().X+200) / 200
	})
	vaults.Reads(room, "side", func(o *netloop.Object[vault]) netloop.Target { return netloop.InGroup(r.sides[o.State().Side]) })
	vaults.Reads(room, "guild", func(*netloop.Object[vault]) netloop.Target {
		return netloop.Where(func(c *netloop.Client) bool { return r.m.guild[c.ID()] })
	})
	room.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		n, err := strconv.Atoi(c.Join().Token)
		if err != nil {
			return err
		}
		g := r.m.guests[n]
		r.m.join(g, c.ID())
		if g.budget != r.spec.Budget {
			c.SetBudget(t, g.budget)
		}
		if r.rng.IntN(2) == 0 {
			r.look(t, c, g)
		}
		return nil
	})
	room.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { r.m.leave(c.ID()) })
	room.On(netloop.Update, "trial.act", r.act)
	room.On(netloop.PreLateUpdate, "trial.settle", func(t *netloop.Tick) { r.m.settle(t.Number()) })
	return nil
}

// run plays the trial.
func (r *trial) run() {
	r.join()
	r.join()
	for range 180 + r.rng.IntN(180) {
		r.step()
		if r.rng.IntN(6) == 0 {
			r.turn()
		}
		if r.rng.IntN(4) == 0 {
			r.w.Tick(r.explained)
		}
	}
	r.over = true
	for left := slowTicks + 1; left > 0; left-- { // What an interval holds back is captured,
		if len(r.due) > 0 { // once what was left for later is done.
			left = slowTicks + 1
		}
		r.step()
	}
	r.w.Until(600, func() bool {
		r.check()
		return !slices.ContainsFunc(r.m.guests, func(g *guest) bool { return !g.gone && !g.in })
	})
	r.heal()
	r.verify()
}

// step runs a tick, and fails at the first thing that is wrong.
func (r *trial) step() {
	r.w.Step(1)
	r.check()
}

func (r *trial) check() {
	r.mend(r.m.tick)
	for _, g := range r.m.guests {
		if closed := g.c.Closed(); closed != nil && !g.gone {
			g.fail("is closed: %v", closed)
		}
		if s := g.c.Stats(); s.Malformed > 0 || s.Unequal > 0 {
			g.fail("%d malformed, %d unequal", s.Malformed, s.Unequal)
		}
		if g.err != nil {
			r.t.Fatal(g.err)
		}
	}
}

// heal ends what is wrong with the links, and gives each client as long as it may take.
func (r *trial) heal() {
	bounds, waiting := map[*guest]int{}, 0
	for _, g := range r.m.guests {
		if g.gone {
			continue
		}
		if g.mend != nil {
			g.mend()
		}
		g.link.Loss = 0
		r.w.SetLink(g.c, g.link)
		bounds[g], waiting = g.bound(r.m), waiting+1
	}
	healed := map[*guest]int{}
	for n := 1; waiting > 0; n++ {
		r.step()
		for _, g := range r.m.guests {
			bound, ok := bounds[g]
			if !ok || n > bound {
				continue
			}
			err := g.differs(r.w)
			if err != nil {
				delete(healed, g)
			} else if healed[g] == 0 {
				healed[g] = n
			}
			if n == bound {
				waiting--
				if err != nil {
					r.t.Fatalf("%d ticks after edits have stopped and links have healed: %v", n, err)
				}
				r.tally.late = max(r.tally.late, float64(healed[g])/float64(bound))
			}
		}
	}
}

// verify lets the runtime say the same: by digest, and in what it counts.
func (r *trial) verify() {
	asked, agreed := 0, 0
	for _, g := range r.m.guests {
		if g.gone {
			continue
		}
		asked++
		g.c.Verify(func(err error) {
			if err != nil {
				r.t.Errorf("client %d: %v", g.id, err)
			}
			agreed++
		})
	}
	r.w.Until(700, func() bool { return agreed == asked })
	for _, g := range r.m.guests {
		s, sum := g.c.Stats(), &r.tally.stats
		sum.Snapshots += s.Snapshots
		sum.Records += s.Records
		sum.Stale += s.Stale
		sum.Lost += s.Lost
		sum.HeldBack += s.HeldBack
	}
}
