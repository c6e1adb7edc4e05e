package room

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/metrics"
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

// InputMargins implements metrics.Room.
func (m measured) InputMargins(f *metrics.Family) {
	if m.inputs.declared == nil {
		return
	}
	all := []time.Duration{0} // Without inputs of late.
	for _, c := range m.clients.list {
		if x, ok := c.margins.least(m.in.Start); ok {
			all = append(all, x)
		}
	}
	if len(all) > 1 {
		all = all[1:]
	}
	slices.Sort(all)
	f.SetFloat(all[0].Seconds(), "least")
	f.SetFloat(all[len(all)/2].Seconds(), "median")
}
