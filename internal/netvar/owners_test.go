package netvar

import (
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// After any spawns, despawns and changes of owner, each owner's list agrees with a search of all
// objects, in id order, on the server and on the client.
func TestOwnersAgreeWithAWalkOverAllObjects(t *testing.T) {
	q := newPair(t, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	var objects []*state.Object
	for range 300 {
		for range rng.IntN(4) {
			objects = append(objects, q.spawnShip(q.w, ship{}, uint64(rng.IntN(4)), q.tick+1), q.spawnRock(q.w, rock{}, q.tick+1))
		}
		for range rng.IntN(6) {
			if n := len(objects); n > 0 {
				o := objects[rng.IntN(n)]
				if rng.IntN(3) == 0 {
					q.w.Despawn(o)
				}
				q.w.SetOwner(o, uint64(rng.IntN(4))) // no effect on a despawned object
			}
		}
		q.deliver()
		for _, s := range []*state.Set{&q.w.objects, q.r.Objects()} {
			for owner := range uint64(5) {
				sameOwned(t, s, owner)
			}
		}
	}
	for _, o := range objects {
		q.w.Despawn(o)
	}
	q.deliver()
}

func sameOwned(t *testing.T, s *state.Set, owner uint64) {
	t.Helper()
	var want, got []state.ID
	for _, o := range s.Slots {
		if o != nil && o.Alive() && o.Owner() == owner && owner != 0 {
			want = append(want, o.ID())
		}
	}
	for o := range s.Owned(owner) {
		got = append(got, o.ID())
	}
	if len(got) != len(want) {
		t.Fatalf("%d objects of owner %d, want %d", len(got), owner, len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("object %d of owner %d is %x, want %x", i, owner, uint64(got[i]), uint64(want[i]))
		}
	}
}

func TestOwnedIsSafeUnderChanges(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	var objects []*state.Object
	for range 100 {
		objects = append(objects, s.spawnShip(w, ship{}, 7, 1))
	}
	n := 0
	for o := range w.Owned(7) {
		switch n++; n {
		case 10:
			w.Despawn(o)
			w.SetOwner(objects[50], 8)
			w.Despawn(objects[51])
		case 20:
			s.spawnShip(w, ship{}, 7, 1)
		}
		if o == objects[50] || o == objects[51] || n > 98 {
			t.Fatalf("call %d is for slot %d", n, o.Slot())
		}
	}
	if n != 98 {
		t.Errorf("%d objects, want 98", n)
	}
}

// An update with the same owner costs no more than that of an object without owner.
func TestAnUpdateOfAnOwnedObjectAllocatesNothing(t *testing.T) {
	for owner := range uint64(2) {
		s := newSchema(t)
		w, r := NewWorld(s.table), replica.New(s.table)
		p := w.NewPeer(1)
		r.TellChanges(s.ship, false)
		o := s.spawnShip(w, ship{}, owner, 1)
		var packets [][]byte
		for tick := uint64(1); tick < 200; tick++ {
			w.Edit(o)
			live[ship](o).X++
			w.Capture(tick)
			b, first := snap(p, tick, wide)
			p.Ack([]Range{{first, first}})
			packets = append(packets, b[0])
		}
		next := 0
		apply := func() {
			mustApply(t, r, nil, packets[next])
			next++
		}
		for next < 100 {
			apply()
		}
		if n := testing.AllocsPerRun(90, apply); n != 0 {
			t.Errorf("owner %d: %v allocations, want 0", owner, n)
		}
	}
}

// The objects of a leaving client are found without visiting those of others.
func BenchmarkOwnedOfManyObjects(b *testing.B) {
	s := newSchema(b)
	w := NewWorld(s.table)
	for i := range 20_000 {
		s.spawnShip(w, ship{}, uint64(1+i%1000), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range w.Owned(500) {
			n++
		}
		if n != 20 {
			b.Fatal(n)
		}
	}
}
