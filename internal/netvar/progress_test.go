package netvar

import (
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// With losses, changes, despawns and spawns while a client loads: once a whole snapshot reports no
// missing objects, the client has every object of the first state that still exists, and that
// snapshot arrives.
func TestFirstStateIsCompleteWhenNothingIsMissing(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		q := newPair(t, 0)
		q.p.SetBudget(Budget{PerTick: 50 + rng.IntN(400)})
		var first []*state.Object
		for range 20 + rng.IntN(100) {
			first = append(first, q.spawnRock(q.w, rock{}, 1))
		}
		total, loss := len(first), rng.Float64()*0.4
		done := uint64(0)
		var acks []Range
		for q.tick < 400 && done == 0 {
			q.play(rng, &first)
			packets, id := q.next()
			for i, b := range packets {
				if rng.Float64() < loss {
					continue
				}
				a, err := q.r.Apply(b)
				if err != nil {
					t.Fatal(err)
				}
				if rng.Float64() >= loss {
					acks = append(acks, Range{id + uint64(i), id + uint64(i)})
				}
				if a.SnapshotComplete && a.Total != total && a.Total != 0 {
					t.Fatalf("seed %d: %d objects in all, want the %d of the beginning", seed, a.Total, total)
				}
				if a.SnapshotComplete && a.Left == 0 {
					done = q.tick
				}
			}
			if q.tick%3 == 0 { // acknowledgements are late
				q.p.Ack(acks)
				acks = acks[:0]
			}
		}
		if done == 0 {
			t.Fatalf("seed %d: the first state never arrives; %d of %d are missing", seed, q.p.first.left, total)
		}
		for _, o := range first {
			if _, ok := q.r.Get(o.ID()); !ok && o.Alive() && o.Published() {
				t.Fatalf("seed %d: nothing is missing at tick %d, but object %x is", seed, done, uint64(o.ID()))
			}
		}
	}
}

// play changes objects of the first state, ends some, and spawns others.
func (q *pair) play(rng *rand.Rand, first *[]*state.Object) {
	if q.tick == 0 {
		return // all objects must exist when the first snapshot is cut
	}
	for i := 0; i < len(*first); i++ {
		switch o := (*first)[i]; rng.IntN(100) {
		case 0:
			q.w.Despawn(o)
			*first = append((*first)[:i], (*first)[i+1:]...)
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			q.edit(o).X++
		}
	}
	if rng.IntN(3) == 0 {
		q.spawnRock(q.w, rock{}, q.tick)
	}
}

// If the first state fits one snapshot, it arrives with it. After its acknowledgement, snapshots
// contain no numbers of missing objects any more.
func TestASmallFirstStateArrivesAtOnce(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	packets, first := q.next()
	a, err := q.r.Apply(packets[0])
	if err != nil || a.Left != 0 || a.Total != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	q.p.Ack([]Range{{first, first}})
	for range 3 {
		q.spawnRock(q.w, rock{}, q.tick)
		packets, _ = q.next()
		if packets[0][packet.AtFlags]&packet.FlagLoading != 0 {
			t.Errorf("tick %d still speaks of the first state", q.tick)
		}
	}
	q.p.RequestFull()
	packets, _ = q.next()
	if packets[0][packet.AtFlags]&packet.FlagLoading != 0 {
		t.Error("the full state counts as the first")
	}
}

// A client whose first state ends with a record on the stream is settled only when a later snapshot
// has told it that no object is missing: otherwise a room would sleep, and the client would load.
func TestAClientIsToldTheEndOfItsFirstState(t *testing.T) {
	q := newPair(t, 0)
	q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	record := q.sent()
	q.p.AckLarge(q.apply(record))
	if q.p.Settled() {
		t.Fatal("the client is settled before the snapshot after its last record")
	}
	packets, first := q.next()
	a, err := q.r.Apply(packets[0])
	if err != nil || a.Left != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if q.p.Settled() {
		t.Error("the client is settled before it has acknowledged that snapshot")
	}
	if q.p.Ack([]Range{{first, first}}); !q.p.Settled() {
		t.Error("the client is not settled although it has acknowledged that snapshot")
	}
	if q.p.Resume(true); q.p.Settled() {
		t.Error("the client is settled before the first snapshot of another connection")
	}
}
