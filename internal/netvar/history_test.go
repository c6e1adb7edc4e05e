package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A history is what a plain list with the rules of commit and fit is, whatever ticks have a
// version.
func TestHistoryKeepsWhatTheHorizonSays(t *testing.T) {
	s := newSchema(t)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(s.rock)
		var list []uint64
		evicted := false
		sparse, tick := rng.IntN(4), uint64(1<<33)
		for range 600 {
			if rng.IntN(100) == 0 {
				sparse = rng.IntN(4)
			}
			tick++
			if sparse > 0 {
				tick += rng.Uint64N(uint64(1) << (2 * sparse))
			}
			draft := h.draft()
			for i := range draft {
				draft[i] = tick
			}
			h.commit(tick, nil)
			for list = append(list, tick); len(list) >= 2 && list[1]+Horizon <= tick; {
				list = list[1:]
			}
			if rng.IntN(50) == 0 {
				before := tick - rng.Uint64N(Horizon)
				h.dropBefore(before)
				for len(list) > 1 && list[1] <= before {
					list = list[1:]
				}
			}
			if rng.IntN(100) == 0 && len(list) > 1 {
				keep := 1 + rng.IntN(len(list)-1)
				h.fit(keep * 8 * h.stride())
				list, evicted = list[len(list)-keep:], true
			}
			if h.evicted != evicted {
				t.Fatalf("seed %d: it says that versions were evicted: %v, want %v", seed, h.evicted, evicted)
			}
			if int(h.n) >= maxVersions || int(h.room) > maxVersions*3/2 {
				t.Fatalf("seed %d: %d versions, and room for %d", seed, h.n, h.room)
			}
			if int(h.n) != len(list) || h.oldest != list[0] {
				t.Fatalf("seed %d: %d versions from %d on, want %d from %d on", seed, h.n, h.oldest, len(list), list[0])
			}
			then := list[0] - 2 + rng.Uint64N(tick-list[0]+5)
			if i, _ := slices.BinarySearch(list, then+1); h.floor(then, tick) != i-1 {
				t.Fatalf("seed %d: version %d was the newest at %d, want %d", seed, h.floor(then, tick), then, i-1)
			}
			for i, at := range list {
				if h.tick(i) != at || h.values(i).Words[0] != at || h.find(at, tick) != i {
					t.Fatalf("seed %d: version %d is of %d, want %d", seed, i, h.tick(i), at)
				}
			}
		}
	}
}
