package client

import (
	"slices"
	"time"
)

// needs is how far ahead of the client's clock steps needed to be for their inputs to come in time,
// over the last second.
type needs struct {
	all  [needsKept]need // a ring
	n    uint64          // that there have been
	from uint64          // the first that counts
	// What 5, 50 and 95 of 100 needed.
	few, half, most time.Duration
}

type need struct{ at, ahead time.Duration }

const (
	needsKept  = 128
	needsSpan  = time.Second
	leastNeeds = 8 // to know anything
)

func (x *needs) len() int { return int(x.n - x.from) }

// known reports whether enough is known, of late.
func (x *needs) known(now time.Duration) bool {
	return x.len() >= leastNeeds && now-x.all[(x.n-1)%needsKept].at <= needsSpan
}

// wanted is what nearly all needed, and the jitter.
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

// shift moves all of them.
func (x *needs) shift(by time.Duration) {
	for i := range x.all {
		x.all[i].ahead += by
	}
	x.few, x.half, x.most = x.few+by, x.half+by, x.most+by
}
