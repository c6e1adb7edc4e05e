package loop

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// No system with a period runs in a tick before Due, and one does in that tick: on either clock, in
// either kind of passes, at any speed, after dropped ticks, and after removals.
func TestDueIsTheFirstTickWithARun(t *testing.T) {
	waited, never := 0, 0
	for seed := range uint64(seeds(t, 300)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		pick := func(of ...uint64) uint64 { return of[rnd.IntN(len(of))] }
		tl := Timeline{Rate: Rate{pick(10, 30, 60, 128), pick(1, 1, 3)}, Fixed: Rate{pick(5, 50, 60, 200), pick(1, 1, 7)}}
		h := newHarness(t)
		h.Follow(tl)
		var all []*System[*Now]
		for i := range 1 + rnd.IntN(3) {
			s := every(fmt.Sprint(i), time.Duration(1+rnd.IntN(2_000_000))*time.Microsecond, at(h.note, Stage(pick(uint64(FixedUpdate), uint64(Update)))))
			s.Scaled = rnd.IntN(2) == 0
			all = append(all, h.add(s))
		}
		for range 10 {
			switch rnd.IntN(4) {
			case 0:
				h.Rescale(pick(0, 1, 2, 7), pick(1, 3, 5))
			case 1:
				if n := rnd.IntN(2 * len(all)); n < len(all) {
					all[n].Remove()
				}
			}
			// Requests take effect in the first of these ticks.
			h.run(tl, pick(0, 0, 1, 5), 0, 0)
			due := h.Due(h.tick + 1)
			if due == Never {
				never++
			}
			for last := min(due, h.tick+300); h.tick+1 < last; {
				waited++
				if h.run(tl, 0); len(h.ran) > 0 {
					t.Fatalf("seed %d: tick %d ran %v, but Due is %d", seed, h.tick, h.ran, due)
				}
			}
			if h.tick+1 == due {
				if h.run(tl, 0); len(h.ran) == 0 {
					t.Fatalf("seed %d: no system ran in tick %d, which is Due", seed, due)
				}
			}
		}
	}
	if waited < 1000 || never < 10 {
		t.Errorf("it waited %d ticks, and Never was returned %d times: both cases must occur", waited, never)
	}
}
