package room

import (
	"slices"
	"time"
)

// margins is how early the inputs of a client came, over the last second: of each packet that
// brought new ones, that of the oldest of them, which has the least time.
type margins struct {
	all [marginsKept]margin // a ring
	n   uint64              // that there have been
}

type margin struct{ at, early time.Duration }

const (
	marginsKept = 64
	marginsSpan = time.Second
)

func (m *margins) add(at, early time.Duration) {
	m.all[m.n%marginsKept] = margin{at, early}
	m.n++
}

// least is how early 95 of 100 came at least. It reports false if none has come in the last second.
func (m *margins) least(now time.Duration) (time.Duration, bool) {
	if m == nil {
		return 0, false
	}
	var early [marginsKept]time.Duration
	n := 0
	for i := range min(m.n, marginsKept) {
		if x := &m.all[i]; now-x.at <= marginsSpan {
			early[n] = x.early
			n++
		}
	}
	slices.Sort(early[:n])
	return early[n*5/100], n > 0
}

// InputMargin is how early 95 of 100 inputs of a client came at least, over the last second.
func (c *Client) InputMargin() time.Duration {
	m, _ := c.margins.least(c.room.in.Start)
	return m
}

// reportMargins says how early the inputs of the room's clients come.
func (r *Room) reportMargins() {
	if r.inputs.declared == nil {
		return
	}
	all := r.earliness[:0]
	for _, c := range r.clients.list {
		if x, ok := c.margins.least(r.in.Start); ok {
			all = append(all, x)
		}
	}
	if r.earliness = all; len(all) == 0 {
		r.tally.SetInputMargins(0, 0, false)
		return
	}
	slices.Sort(all)
	r.tally.SetInputMargins(all[0], all[len(all)/2], true)
}
