package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
)

// changedSince agrees with the results of all captures since the tick, as long as one of the last
// captures is not later than it.
func TestChangedSinceAgreesWithAllCaptures(t *testing.T) {
	const slots = 200
	known, unknown := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 22))
		w := &World{tick: rng.Uint64N(100)}
		type capture struct {
			tick  uint64
			moved bitset.Set
			news  []bitset.Set
		}
		var all []capture
		for range 40 + rng.IntN(100) {
			w.tick++
			if rng.IntN(10) == 0 {
				w.tick += rng.Uint64N(90)
			}
			moved := make(bitset.Set, slots/64+1)
			news := make([]bitset.Set, rng.IntN(3)) // by rule, up to the highest one with a change
			for range rng.IntN(4) {
				slot := rng.IntN(slots)
				if moved.Add(slot); len(news) > 0 {
					news[rng.IntN(len(news))].Add(slot)
				}
			}
			w.changes.add(w.tick, moved, news)
			words := 0
			for _, word := range moved {
				if word != 0 {
					words++
				}
			}
			if got := len(w.changes.words); got != words || len(w.changes.sets[0].byRule) > 2 {
				t.Fatalf("seed %d: %d of %d words were added, for %d rules", seed, got, words, len(w.changes.sets[0].byRule))
			}
			all = append(all, capture{w.tick, slices.Clone(moved), news})
			for range 20 {
				tick := w.tick + 2 - min(w.tick, rng.Uint64N(90))
				if tick == w.tick+2-min(w.tick, 89) {
					tick = all[rng.IntN(len(all))].tick
				}
				want, ok := make(bitset.Set, slots/64+1), tick >= w.tick
				// by clients that are withheld the fields of rule 1
				read := make(bitset.Set, slots/64+1)
				for i, c := range all {
					if c.tick > tick {
						if want.Or(c.moved); len(c.news) > 0 {
							read.Or(c.news[0])
						}
					} else if i >= len(all)-maxChangeSets {
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
					if got.slots.Word(k) != want[k] {
						t.Fatalf("seed %d: since %d %x has changed, want %x", seed, tick, got.slots, want)
					}
					const some = 0xf0f0f0f0f0f0f0f0
					var views interest.Views
					for slot := range 64 {
						if uint64(some)>>slot&1 != 0 {
							views.Set(k<<6+slot, 1<<1)
						}
					}
					word := views.Readable(k, want[k], got.byRule)
					if word != want[k]&^(some&^read[k]) {
						t.Fatalf("seed %d: since %d %x has changed for who may not read all, want %x, %x of all", seed, tick, word, read[k], want[k])
					}
				}
			}
		}
	}
	if unknown == 0 || unknown > known/2 {
		t.Errorf("%d of %d are not known", unknown, known)
	}
}
