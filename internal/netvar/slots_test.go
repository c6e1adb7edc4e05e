package netvar

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
)

// newSlots returns the slots of a world with a seed of its own.
func newSlots(seed uint64) *slots {
	s := new(slots)
	s.seed(seed)
	return s
}

// The last generation of a slot is followed by 1: with 0 the id of slot 0 would be the nil id.
func TestLifetimesOfASlotBeginAnewAtOne(t *testing.T) {
	s := newSlots(1)
	id := s.give(false, false)
	s.release(id.slot())
	s.gens[0] = math.MaxUint32
	if again := s.give(false, false); again != makeID(0, 1) {
		t.Errorf("after the last lifetime comes %v", again)
	}
}

// Open slots are allocated as if there were no veiled objects, and vice versa: the ids of neither
// kind reveal the other.
func TestEachKindOfSlotsIsGivenWithoutRegardToTheOther(t *testing.T) {
	for _, spaces := range []bool{false, true} {
		for _, veiled := range []bool{false, true} {
			alone, mixed := newSlots(7), newSlots(7)
			random := rand.New(rand.NewPCG(1, 2))
			var held, others []ID
			for range 4000 {
				for range random.IntN(4) {
					others = append(others, mixed.give(!veiled, spaces))
				}
				for len(others) > 0 && random.IntN(3) == 0 {
					mixed.release(others[0].slot())
					others = others[1:]
				}
				if len(held) > 0 && random.IntN(5) < 2 {
					i := random.IntN(len(held))
					alone.release(held[i].slot())
					mixed.release(held[i].slot())
					held[i] = held[len(held)-1]
					held = held[:len(held)-1]
					continue
				}
				a, b := alone.give(veiled, spaces), mixed.give(veiled, spaces)
				if a != b {
					t.Fatalf("spaces %v, veiled %v: %v with objects of the other kind, %v without", spaces, veiled, b, a)
				}
				held = append(held, a)
			}
		}
	}
}

// Ids are unique, even after all small generations of a slot were used, and never the nil id.
func TestOpaqueGenerationsOfASlotDiffer(t *testing.T) {
	s := newSlots(3)
	seen := make(map[uint32]bool)
	counted := 0
	for n := uint32(1); n < 3<<opaqueBits; n++ {
		gen := s.opaque(70, n)
		if gen == 0 || seen[gen] {
			t.Fatalf("generation %d is %d, given before: %v", n, gen, seen[gen])
		}
		if small := gen < 1<<opaqueBits; small != (n < 1<<opaqueBits) {
			t.Fatalf("generation %d is %d", n, gen)
		}
		seen[gen] = true
		if gen == n {
			counted++
		}
	}
	if counted > 100 {
		t.Errorf("%d of them are what counting would give", counted)
	}
	if a, b := s.opaque(70, 1), s.opaque(71, 1); a == b {
		t.Error("two slots have the same generations")
	}
	if other := newSlots(4); other.opaque(70, 1) == s.opaque(70, 1) {
		t.Error("two worlds have the same generations")
	}
}

// The generations of a veiled slot do not count its objects, and those of an open one do.
func TestGenerationsOfVeiledSlotsDoNotCount(t *testing.T) {
	for _, veiled := range []bool{false, true} {
		s := newSlots(6)
		last := make(map[int]uint32)
		counted, again := 0, 0
		for range 2000 {
			id := s.give(veiled, false)
			if before := last[id.slot()]; before != 0 {
				if again++; id.gen() == before+1 {
					counted++
				}
			}
			last[id.slot()] = id.gen()
			s.release(id.slot())
		}
		if again < 1000 || veiled && counted > 10 || !veiled && counted != again {
			t.Errorf("veiled %v: of %d ids in a slot used before %d have the next generation", veiled, again, counted)
		}
	}
}

// A world can use all of its slots, once each, for any mix of kinds.
func TestAllSlotsAreGiven(t *testing.T) {
	for _, veiled := range []bool{false, true} {
		for _, spaces := range []bool{false, true} {
			s := newSlots(5)
			var seen bitset
			for i := range MaxSlots {
				if s.full() {
					t.Fatalf("full with %d objects", i)
				}
				slot := s.give(veiled, spaces).slot()
				if slot >= MaxSlots || seen.has(slot) {
					t.Fatalf("object %d gets slot %d, given before: %v", i, slot, seen.has(slot))
				}
				seen.set(slot)
			}
			if !s.full() {
				t.Error("not full with all slots given")
			}
			for _, slot := range []int{3, 70, 9999} {
				s.release(slot)
				if id := s.give(veiled, spaces); id.slot() != slot {
					t.Errorf("the only free slot is %d, and %v is given", slot, id)
				}
			}
		}
	}
}

// The distance of two veiled ids does not reveal the number of objects spawned between them: with
// dense slots it does.
func TestTwoIdsDoNotCountTheObjectsBetween(t *testing.T) {
	const worlds = 4000
	var mean [2]float64
	for i, between := range []int{0, 20} {
		for seed := range uint64(worlds) {
			s := newSlots(seed)
			a := s.give(true, false)
			for range between {
				s.give(true, false)
			}
			b := s.give(true, false)
			mean[i] += math.Abs(float64(b.slot()-a.slot())) / worlds
		}
	}
	// Two of 64 slots are 21.7 apart on average, and the error of this mean is a quarter.
	if d := math.Abs(mean[0] - mean[1]); d > 1.5 {
		t.Errorf("two ids are %.2f apart, and %.2f with 20 objects spawned between them", mean[0], mean[1])
	}
}

// unusedSlots returns the number of slots in a veiled block that a client never sees while it
// watches a few objects being spawned and despawned for long, and others are hidden from it.
func unusedSlots(seed uint64, hidden int) int {
	const visible, spawns = 4, 700
	s := newSlots(seed)
	for range hidden {
		s.give(true, false)
	}
	var seen bitset
	var held []ID
	for range spawns {
		if len(held) == visible {
			s.release(held[0].slot())
			held = held[1:]
		}
		id := s.give(true, false)
		seen.set(id.slot())
		held = append(held, id)
	}
	return 64 - seen.count()
}

// A client that watches for long learns which slots are never used. Some of them are closed, so any
// threshold for the proof of a hidden object is wrong nearly as often as a guess.
func TestUnusedSlotsDoNotProveAnObject(t *testing.T) {
	const worlds = 500
	for hidden, most := range map[int]float64{1: 0.56, 4: 0.70} {
		var without, with [65]int // number of worlds, by unused slots
		for seed := range uint64(worlds) {
			without[unusedSlots(2*seed, 0)]++
			with[unusedSlots(2*seed+1, hidden)]++
		}
		best, right := 0.0, worlds
		for n := range without { // an observer that assumes an object from n unused slots on
			best = max(best, float64(right)/(2*worlds))
			right += without[n] - with[n]
		}
		t.Logf("%d hidden: the best observer is right in %.1f %% of the worlds", hidden, 100*best)
		if best > most {
			t.Errorf("%d hidden: an observer is right in %.1f %% of the worlds, want at most %.0f %%", hidden, 100*best, 100*most)
		}
	}
}

// With more objects there are more veiled blocks, but the number of objects at which one is added
// is not known to clients: the highest slot bounds the number of objects within a factor.
func TestTheHighestSlotTellsRoughlyHowManyObjectsThereAre(t *testing.T) {
	least, most := math.Inf(1), 0.0
	first, last := math.MaxInt, 0 // number of objects when the second block is opened
	for seed := range uint64(300) {
		s := newSlots(seed)
		blocks := 0
		for n := 1; n <= 3000; n++ {
			s.give(true, true)
			if len(s.blocks) > 4 && len(s.blocks) != blocks {
				share := float64(n) / float64(64*len(s.blocks))
				least, most = min(least, share), max(most, share)
			}
			if blocks == 1 && len(s.blocks) == 2 {
				first, last = min(first, n), max(last, n)
			}
			blocks = len(s.blocks)
		}
	}
	t.Logf("as a block is opened, %.2f to %.2f of the slots are used; the second is with %d to %d objects", least, most, first, last)
	if last < first*7/4 {
		t.Errorf("the second block is opened with %d to %d objects", first, last)
	}
	if most-least < 0.2 || most > 0.9 || least < 0.3 {
		t.Errorf("as a block is opened, %.2f to %.2f of the slots are used", least, most)
	}
}

// Objects with an audience, or in a space, have veiled ids; all others have open ones.
func TestWhichObjectsHaveVeiledIds(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	open := s.spawnRock(w, rock{}, 1)
	veiled := w.SpawnFor(s.rock, unsafe.Pointer(new(rock)), clientSet(0), 0, 1)
	if w.ids.isVeiled(open.id.slot()>>6) || !w.ids.isVeiled(veiled.id.slot()>>6) {
		t.Errorf("the object of all has id %v, that of an audience %v", open.id, veiled.id)
	}
	if w.Audience(veiled) == nil || w.Audience(open) != nil {
		t.Error("an audience is lost, or made up")
	}
	w = NewWorld(s.table)
	shape, err := grid.NewShape(10, 30, 20)
	if err != nil {
		t.Fatal(err)
	}
	space, err := w.NewSpace(shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := space.Hold(s.rock, func(unsafe.Pointer) (x, y, z float64) { return 0, 0, 0 }); err != nil {
		t.Fatal(err)
	}
	near := s.spawnRock(w, rock{}, 1)
	if !w.ids.isVeiled(near.id.slot()>>6) || w.ids.isVeiled(1) || !w.ids.isVeiled(2) {
		t.Errorf("the object in a space has id %v", near.id)
	}
}

// nth returns the index of an open slot among those of a world without spaces.
func nth(slot int) int {
	veiled := (slot>>6 + blocksPer - 2) / blocksPer // veiled blocks below that of the slot
	return slot - veiled<<6
}

// Open slots are allocated in order.
func TestOpenSlotsAreInOrder(t *testing.T) {
	s := newSlots(1)
	for i := range 1000 {
		if slot := s.give(false, false).slot(); nth(slot) != i {
			t.Fatalf("object %d gets slot %d, which is number %d", i, slot, nth(slot))
		}
	}
}
