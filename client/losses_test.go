package client

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar/replica"
)

func TestReceptionCountsGaps(t *testing.T) {
	type packet struct{ id, tick, index, count int }
	for name, c := range map[string]struct {
		every      uint32
		packets    []packet
		lost, held uint64
		gap        uint64 // the tick of the first packet behind the last gap
	}{
		"nothing missing":             {1, []packet{{1, 10, 0, 1}, {2, 11, 0, 1}, {3, 12, 0, 1}}, 0, 0, 10},
		"two turns without a number":  {1, []packet{{1, 10, 0, 1}, {2, 13, 0, 1}}, 0, 2, 10},
		"two numbers that never came": {1, []packet{{1, 10, 0, 1}, {4, 13, 0, 1}}, 2, 0, 13},
		"one of each":                 {1, []packet{{1, 10, 0, 1}, {3, 13, 0, 1}}, 1, 1, 13},
		"the first never came":        {1, []packet{{3, 10, 0, 1}}, 2, 0, 10},
		"it came late":                {1, []packet{{1, 10, 0, 1}, {3, 12, 0, 1}, {2, 11, 0, 1}}, 0, 0, 12},
		"every third tick":            {3, []packet{{1, 9, 0, 1}, {2, 12, 0, 1}, {3, 18, 0, 1}}, 0, 1, 9},
		"a turn that was late":        {3, []packet{{1, 9, 0, 1}, {2, 13, 0, 1}, {3, 15, 0, 1}}, 0, 0, 9},
		"the newest is not whole":     {1, []packet{{1, 10, 0, 1}, {3, 11, 1, 3}}, 0, 0, 10},
		"an older one is not":         {1, []packet{{2, 10, 1, 3}, {4, 11, 0, 1}}, 2, 0, 11},
		"swapped":                     {1, []packet{{2, 10, 1, 2}, {1, 10, 0, 2}, {4, 11, 1, 2}, {3, 11, 0, 2}}, 0, 0, 10},
		"lost before a whole one":     {1, []packet{{1, 10, 0, 1}, {3, 11, 0, 2}, {4, 11, 1, 2}}, 1, 0, 11},
		"before two of three":         {1, []packet{{1, 10, 0, 1}, {3, 11, 0, 3}, {4, 11, 1, 3}}, 1, 0, 11},
		"late, of one that is open":   {1, []packet{{1, 10, 0, 1}, {3, 12, 0, 2}, {2, 11, 0, 1}}, 0, 0, 12},
		"a rate of 0":                 {0, []packet{{1, 10, 0, 1}, {2, 11, 0, 1}}, 0, 0, 10},
		"numbers that go back":        {1, []packet{{9, 10, 0, 1}, {2, 13, 1, 2}}, 0, 2, 10},
	} {
		var r losses
		r.setPeriod(c.every)
		for _, p := range c.packets {
			r.packet(&replica.Applied{Packet: uint64(p.id), Tick: uint64(p.tick), Index: p.index, Count: p.count})
		}
		if r.lost() != c.lost || r.held != c.held {
			t.Errorf("%s: %d lost, %d held back, want %d and %d", name, r.lost(), r.held, c.lost, c.held)
		}
		if r.gapless(c.gap-1) || !r.gapless(c.gap) {
			t.Errorf("%s: the last gap ends with tick %d, want %d", name, r.gap, c.gap)
		}
		if r.restart(c.every); r.gapless(100) {
			t.Errorf("%s: nothing has come over the next connection, and nothing is missing", name)
		}
		was := r.count
		if r.packet(&replica.Applied{Packet: 1, Tick: 20, Count: 1}); r.count != was+1 {
			t.Errorf("%s: another connection begins as one on which something was missing", name)
		}
	}
}
