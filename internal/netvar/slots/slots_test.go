package slots

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// newSlots returns the slots of a world with a seed of its own.
func newSlots(seed uint64) *Allocator {
	s := new(Allocator)
	s.Seed(seed)
	return s
}

// The last generation of a slot is followed by 1: with 0 the id of slot 0 would be the nil id.
func TestLifetimesOfASlotBeginAnewAtOne(t *testing.T) {
	s := newSlots(1)
	id := s.Give(false, false)
	s.Release(id.Slot())
	s.gens[0] = math.MaxUint32
	if again := s.Give(false, false); again != state.MakeID(0, 1) {
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
			var held, others []state.ID
			for range 4000 {
				for range random.IntN(4) {
					others = append(others, mixed.Give(!veiled, spaces))
				}
				for len(others) > 0 && random.IntN(3) == 0 {
					mixed.Release(others[0].Slot())
					others = others[1:]
				}
				if len(held) > 0 && random.IntN(5) < 2 {
					i := random.IntN(len(held))
					alone.Release(held[i].Slot())
					mixed.Release(held[i].Slot())
					held[i] = held[len(held)-1]
					held = held[:len(held)-1]
					continue
				}
				a, b := alone.Give(veiled, spaces), mixed.Give(veiled, spaces)
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
	for n := uint32(1); n < 3<<16; n++ {
		gen := s.opaque(70, n)
		if gen == 0 || seen[gen] {
			t.Fatalf("generation %d is %d, given before: %v", n, gen, seen[gen])
		}
		if small := gen < 1<<16; small != (n < 1<<16) {
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
			id := s.Give(veiled, false)
			if before := last[id.Slot()]; before != 0 {
				if again++; id.Gen() == before+1 {
					counted++
				}
			}
			last[id.Slot()] = id.Gen()
			s.Release(id.Slot())
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
			var seen bitset.Set
			for i := range packet.MaxSlots {
				if s.Full() {
					t.Fatalf("full with %d objects", i)
				}
				slot := s.Give(veiled, spaces).Slot()
				if slot >= packet.MaxSlots || seen.Has(slot) {
					t.Fatalf("object %d gets slot %d, given before: %v", i, slot, seen.Has(slot))
				}
				seen.Add(slot)
			}
			if !s.Full() {
				t.Error("not full with all slots given")
			}
			for _, slot := range []int{3, 70, 9999} {
				s.Release(slot)
				if id := s.Give(veiled, spaces); id.Slot() != slot {
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
			a := s.Give(true, false)
			for range between {
				s.Give(true, false)
			}
			b := s.Give(true, false)
			mean[i] += math.Abs(float64(b.Slot()-a.Slot())) / worlds
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
		s.Give(true, false)
	}
	var seen bitset.Set
	var held []state.ID
	for range spawns {
		if len(held) == visible {
			s.Release(held[0].Slot())
			held = held[1:]
		}
		id := s.Give(true, false)
		seen.Add(id.Slot())
		held = append(held, id)
	}
	return 64 - seen.Count()
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
			s.Give(true, true)
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

// Open slots are allocated in order.
func TestOpenSlotsAreInOrder(t *testing.T) {
	s := newSlots(1)
	for i := range 1000 {
		if slot := s.Give(false, false).Slot(); nth(slot) != i {
			t.Fatalf("object %d gets slot %d, which is number %d", i, slot, nth(slot))
		}
	}
}

// nth returns the index of an open slot among those of a world without spaces.
func nth(slot int) int {
	veiled := (slot>>6 + BlocksPer - 2) / BlocksPer // veiled blocks below that of the slot
	return slot - veiled<<6
}

// A world is full when all slots are taken, and not when it has none yet.
func TestAWorldIsFullWhenNoSlotIsLeft(t *testing.T) {
	for _, c := range []struct {
		made, free int
		want       bool
	}{{0, 0, false}, {5, 0, false}, {packet.MaxSlots - 1, 0, false}, {packet.MaxSlots, 1, false}, {packet.MaxSlots, 0, true}} {
		s := Allocator{used: c.made - c.free}
		if got := s.Full(); got != c.want {
			t.Errorf("of %d slots %d are free: full is %v", c.made, c.free, got)
		}
	}
}

// The ids of a seed never change: the replay of an older recording needs the same ones.
func TestTheIdsOfASeedAreFixed(t *testing.T) {
	digest := func(fill func(add func(uint64))) uint64 {
		h := fnv.New64a()
		fill(func(v uint64) { _, _ = h.Write(binary.LittleEndian.AppendUint64(nil, v)) })
		return h.Sum64()
	}
	for _, c := range []struct {
		veiled, spaces bool
		want           uint64
	}{{false, false, 0x1746ea183d905005}, {false, true, 0x639dc525b3a6de5}, {true, false, 0xc1ff333a86596666}, {true, true, 0xa36aee104a748228}} {
		if got := digest(func(add func(uint64)) {
			s := newSlots(9)
			for i := range 3000 {
				id := s.Give(c.veiled, c.spaces)
				if add(uint64(id)); i%3 == 0 {
					s.Release(id.Slot())
				}
			}
		}); got != c.want {
			t.Errorf("veiled %v, spaces %v: the digest of the ids is %#x, want %#x", c.veiled, c.spaces, got, c.want)
		}
	}
	const want = 0x48141b5cb7d838d3
	if got := digest(func(add func(uint64)) {
		s := newSlots(9)
		for n := uint32(1); n < 3<<16; n += 7 {
			add(uint64(s.opaque(70, n)))
		}
	}); got != want {
		t.Errorf("the digest of the generations is %#x, want %#x", got, want)
	}
}
