package bot

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/netlooptest"
)

// fly lets pilots play in memory for some seconds and returns them, the ships of their room at the
// end, and the number of visible shots.
func fly(t *testing.T, pilots, seconds int) (all []*pilot, ships []arena.Ship, shots int) {
	t.Helper()
	w := netlooptest.New(t, arena.New(), netlooptest.Seed(7))
	for n := range pilots {
		c := w.Join("", New().Join(n), netlooptest.Link{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.02})
		w.Until(300, func() bool { return c.State().Phase == client.Playing })
		all = append(all, newPilot(c, rand.New(rand.NewPCG(1, uint64(n))), new(felt)))
	}
	for range seconds {
		w.Step(60)
		w.Tick(func(t *netloop.Tick) {
			for range arena.Shots.All(t) {
				shots++
			}
		})
	}
	w.Tick(func(t *netloop.Tick) {
		for o := range arena.Ships.All(t) {
			ships = append(ships, o.State())
		}
	})
	return all, ships, shots
}

// felt counts a pilot's hits.
type felt struct{ hits, misses int }

func (f *felt) Reacted(int)       {}
func (f *felt) Corrected(float64) {}
func (f *felt) Hit(confirmed bool) {
	if confirmed {
		f.hits++
	} else {
		f.misses++
	}
}

func TestPilotsPlay(t *testing.T) {
	all, ships, shots := fly(t, 6, 60)
	score := 0
	for _, s := range ships {
		score += max(0, int(s.Score))
	}
	heard := 0
	hits, misses := 0, 0
	for _, p := range all {
		heard += p.heard
		hits += p.feel.(*felt).hits
		misses += p.feel.(*felt).misses
		if len(p.ships.all) != 5 || len(p.rocks.all) != 100 {
			t.Errorf("a pilot sees %d other ships and %d rocks, want 5 and 100", len(p.ships.all), len(p.rocks.all))
		}
	}
	t.Logf("score %d, %d shots seen, %d lines received, %d hits confirmed and %d not", score, shots, heard, hits, misses)
	// All six receive each line; a pilot sends one in about a minute.
	if score < 20 || shots < 3 || heard < 6*6 {
		t.Errorf("score %d, %d shots seen, %d lines received", score, shots, heard)
	}
}

func TestPilotsAreDeterministic(t *testing.T) {
	_, one, _ := fly(t, 3, 10)
	_, two, _ := fly(t, 3, 10)
	if !slices.Equal(one, two) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// The arena wraps around: the distance is the shortest one.
func TestApartIsTheShortestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0, arena.Size-1).Draw(t, "a")
		b := rapid.Float64Range(0, arena.Size-1).Draw(t, "b")
		d := apart(a, b)
		if math.Abs(d) > arena.Size/2 {
			t.Fatalf("apart(%v, %v) = %v", a, b, d)
		}
		if there := math.Mod(b+d+arena.Size, arena.Size); math.Abs(there-a) > 1e-6 && math.Abs(there-a) < arena.Size-1e-6 {
			t.Fatalf("%v plus %v is %v, not %v", b, d, there, a)
		}
	})
}

func TestDecisionsAllocateNothing(t *testing.T) {
	p := &pilot{rand: rand.New(rand.NewPCG(1, 1))}
	me := arena.Ship{Heading: 1}
	if n := testing.AllocsPerRun(100, func() { p.course(me); p.nearest(me) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
