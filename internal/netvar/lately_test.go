package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What has changed since a tick is what the captures after it have found, as long as one of the last captures is not later.
func TestChangedSinceAgreesWithAllCaptures(t *testing.T) {
	const slots = 200
	known, unknown := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 22))
		w := &World{tick: rng.Uint64N(100)}
		type capture struct {
			tick  uint64
			moved bitset
		}
		var all []capture
		for range 40 + rng.IntN(100) {
			w.tick++
			if rng.IntN(10) == 0 {
				w.tick += rng.Uint64N(90)
			}
			moved := make(bitset, slots/64+1)
			for range rng.IntN(4) {
				moved.set(rng.IntN(slots))
			}
			w.since.add(w.tick, moved)
			all = append(all, capture{w.tick, slices.Clone(moved)})
			for range 20 {
				tick := w.tick + 2 - min(w.tick, rng.Uint64N(90))
				if tick == w.tick+2-min(w.tick, 89) {
					tick = all[rng.IntN(len(all))].tick
				}
				want, ok := make(bitset, slots/64+1), tick >= w.tick
				for i, c := range all {
					if c.tick > tick {
						want.or(c.moved)
					} else if i >= len(all)-maxLately {
						ok = true
					}
				}
				got, is := w.changedSince(tick)
				if is != ok {
					t.Fatalf("seed %d: what has changed since %d is known: %v, want %v, after %d captures", seed, tick, is, ok, len(all))
				}
				if known++; !ok {
					unknown++
				}
				for k := 0; ok && k < len(want); k++ {
					if got.word(k) != want[k] {
						t.Fatalf("seed %d: since %d %x has changed, want %x", seed, tick, got, want)
					}
				}
			}
		}
	}
	if unknown == 0 || unknown > known/2 {
		t.Errorf("%d of %d are not known", unknown, known)
	}
}
