package client

import (
	"slices"
	"time"
)

// needs measures how far ahead of the client's clock steps needed to be for their inputs to arrive
// in time, over the last second.
type needs struct {
	all  [needsKept]need // a ring
	n    uint64          // number of measurements
	from uint64          // the first one within the span
	// The 5th, 50th and 95th percentile.
	few, half, most time.Duration
}

type need struct{ at, ahead time.Duration }

const (
	needsKept  = 128
	needsSpan  = time.Second
	leastNeeds = 8 // for a usable result
)

func (x *needs) len() int { return int(x.n - x.from) }

// known reports whether there are enough recent measurements.
func (x *needs) known(now time.Duration) bool {
	return x.len() >= leastNeeds && now-x.all[(x.n-1)%needsKept].at <= needsSpan
}

// wanted returns the need of nearly all inputs, plus the jitter.
func (x *needs) wanted() time.Duration { return x.most + x.most - x.few }

func (x *needs) add(now, ahead time.Duration) {
	x.all[x.n%needsKept] = need{now, ahead}
	x.n++
	x.from = max(x.from, x.n-min(x.n, needsKept))
	for now-x.all[x.from%needsKept].at > needsSpan {
		x.from++
	}
	var sorted [needsKept]time.Duration
	n := x.len()
	for i := range n {
		sorted[i] = x.all[(x.from+uint64(i))%needsKept].ahead
	}
	slices.Sort(sorted[:n])
	x.few, x.half, x.most = sorted[n*5/100], sorted[n/2], sorted[n*95/100]
}

// shift adds a time to all measurements.
func (x *needs) shift(by time.Duration) {
	for i := range x.all {
		x.all[i].ahead += by
	}
	x.few, x.half, x.most = x.few+by, x.half+by, x.most+by
}
