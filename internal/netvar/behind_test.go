package netvar

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// TestReachedIsTheStateThatTheClientHas: for all limits of a snapshot, the client has every object
// in its state of the tick Reached, or later. No packet is lost here: lost records are sent again,
// and Reached does not wait for them.
func TestReachedIsTheStateThatTheClientHas(t *testing.T) {
	for seed := range seeds.Of(t, 50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		q := newPair(t, 0)
		// by object: the ticks of its versions; an ended object gets no later one
		news := map[state.ID][]uint64{}
		gone := map[state.ID]uint64{}
		var alive []*state.Object
		for range 200 + rnd.IntN(200) {
			o := q.spawnRock(q.w, rock{}, 1)
			alive, news[o.ID()] = append(alive, o), []uint64{1}
		}
		behind := 0
		for range 300 {
			q.tick++
			if q.tick < 200 {
				for range rnd.IntN(20) {
					alive = q.mutate(rnd, alive, news, gone)
				}
			}
			q.w.Capture(q.tick)
			limit := Limit{Packets: 1 + rnd.IntN(2), PacketSize: 60 + rnd.IntN(100)}
			packets, first := snap(q.p, q.tick, limit)
			var reached uint64
			for _, b := range packets {
				a, err := q.r.Apply(b)
				if err != nil {
					t.Fatal(err)
				}
				reached = max(reached, a.Reached)
			}
			q.p.Ack([]Range{{first, first + uint64(len(packets)) - 1}})
			q.hasReached(seed, reached, news, gone)
			if reached < q.tick {
				behind++
			} else if q.tick > 1 && q.p.pending.Count() != 0 {
				t.Fatalf("seed %d: tick %d is reached, and %d are owed", seed, q.tick, q.p.pending.Count())
			}
			if q.tick == 300 && reached != q.tick {
				t.Fatalf("seed %d: at rest tick %d is reached, not %d", seed, reached, q.tick)
			}
		}
		if behind == 0 {
			t.Fatalf("seed %d: everything always fitted", seed)
		}
	}
}

// mutate changes one object, adds one or ends one.
func (q *pair) mutate(rnd *rand.Rand, alive []*state.Object, news map[state.ID][]uint64, gone map[state.ID]uint64) []*state.Object {
	i := rnd.IntN(len(alive))
	switch o := alive[i]; rnd.IntN(8) {
	case 0:
		n := q.spawnRock(q.w, rock{}, q.tick)
		news[n.ID()] = []uint64{q.tick}
		return append(alive, n)
	case 1:
		q.w.Despawn(o)
		gone[o.ID()] = q.tick
		return slices.Delete(alive, i, i+1)
	default:
		q.edit(o).X++
		news[o.ID()] = append(news[o.ID()], q.tick)
		return alive
	}
}

func (q *pair) hasReached(seed, reached uint64, news map[state.ID][]uint64, gone map[state.ID]uint64) {
	q.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(news)) {
		o, here := q.r.Get(id)
		end, ended := gone[id]
		switch {
		case ended && end <= reached && here:
			q.t.Fatalf("seed %d, tick %d, reached %d: object %x is here, and was gone at %d", seed, q.tick, reached, uint64(id), end)
		case !ended && news[id][0] <= reached && !here:
			q.t.Fatalf("seed %d, tick %d, reached %d: object %x of %d is missing", seed, q.tick, reached, uint64(id), news[id][0])
		case !here:
			continue
		}
		for _, tick := range news[id] {
			if tick <= reached && o.Changed() < tick {
				q.t.Fatalf("seed %d, tick %d, reached %d: object %x is of %d, and changed at %d", seed, q.tick, reached, uint64(id), o.Changed(), tick)
			}
		}
	}
}
