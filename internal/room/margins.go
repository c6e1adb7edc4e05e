package room

import (
	"slices"
	"time"
)

// margins holds how early the inputs of a client arrived, over the last second: per packet with
// new inputs, the margin of the oldest new one, which has the least time.
type margins struct {
	all [marginsKept]margin // ring buffer
	n   uint64              // number of margins so far
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

// least returns the margin that 95 of 100 inputs had at least. It reports false if none arrived in
// the last second.
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

// InputMargin returns the margin that 95 of 100 inputs of a client had at least, over the last
// second.
func (c *Client) InputMargin() time.Duration {
	m, _ := c.margins.least(c.room.in.Start)
	return m
}

// reportMargins reports how early the inputs of the room's clients arrive.
func (p *Inputs) reportMargins() {
	if p.declared == nil {
		return
	}
	all := p.margins[:0]
	for _, c := range p.clients.list {
		if x, ok := c.margins.least(p.in.Start); ok {
			all = append(all, x)
		}
	}
	if p.margins = all; len(all) == 0 {
		p.tally.SetInputMargins(0, 0, false)
		return
	}
	slices.Sort(all)
	p.tally.SetInputMargins(all[0], all[len(all)/2], true)
}
