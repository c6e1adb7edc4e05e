package interest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Views agree with a plain list after any changes, and the views of some slots are equal for
// clients with the same views, after any history.
func TestViewsAgreeWithAPlainList(t *testing.T) {
	const slots = 150
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 31))
		var s, other Views
		var plain [slots]state.Rules
		for range 400 {
			slot, withheld := rng.IntN(slots), state.Rules(rng.IntN(5))
			s.Set(slot, withheld)
			plain[slot] = withheld
		}
		for _, slot := range rng.Perm(slots) {
			other.Set(slot, plain[slot])
		}
		for slot, want := range plain {
			if got := s.Withheld(slot); got != want {
				t.Fatalf("seed %d: %b is withheld of slot %d, want %b", seed, got, slot, want)
			}
		}
		for k := range 4 {
			if !slices.Equal(s.Block(k), other.Block(k)) {
				t.Fatalf("seed %d: the views of block %d are %v, and %v where they have come in another order", seed, k, s.Block(k), other.Block(k))
			}
			mask := rng.Uint64() & rng.Uint64() & rng.Uint64()
			sets := map[state.Rules]uint64{}
			for slot := k << 6; slot < min(slots, k<<6+64); slot++ {
				if mask>>(slot&63)&1 != 0 && plain[slot] != 0 {
					sets[plain[slot]] |= 1 << (slot & 63)
				}
			}
			list, ok := s.Among(k, mask)
			if ok != (len(sets) <= MaxViews) {
				t.Fatalf("seed %d: %d views are too many: %v", seed, len(sets), !ok)
			}
			for i, m := range list {
				if ok && (i < len(sets)) != (m.Slots != 0) || sets[m.Withheld] != m.Slots && m.Slots != 0 {
					t.Fatalf("seed %d: %v among %x, want %v", seed, list, mask, sets)
				}
			}
		}
	}
}
