package clock

import "time"

const (
	// driftBlock is the number of exchanges per point of the regression line, and driftPoints the
	// number of points. Together they cover a minute, at three exchanges a second.
	driftBlock  = 8
	driftPoints = 24
	// usualDrift is the expected drift while there are few measurements: usual quartzes are off by
	// 50 millionths, and bad quartzes by 200. maxDrift bounds the estimate, because no clock drifts
	// more.
	usualDrift = 100e-6
	maxDrift   = 500e-6
	// leastShare estimates the error of a block's least delay: it is this share of the difference
	// between the mean delay and the least one. The exact share is between a tenth and a fourth,
	// depending on the distribution of delays.
	leastShare = 1. / 5
	// minNoise is the error of a timestamp that a waking goroutine takes.
	minNoise = 20 * time.Microsecond
)

// drift estimates the relative speed of the server's clock: by a line through the offsets of blocks
// of exchanges, each computed as in Sync. While the points are too close together to distinguish
// drift from jitter, the estimate is biased towards zero (ridge regression).
type drift struct {
	block  [driftBlock]exchange
	inside int // number of exchanges in the block
	points [driftPoints]driftPoint
	count  int // number of points so far
	rate   float64
}

// driftPoint is the clock offset that a block of exchanges has measured at the time at. noise is
// its uncertainty.
type driftPoint struct{ at, offset, noise time.Duration }

// add records an exchange.
func (d *drift) add(e exchange) {
	d.block[d.inside] = e
	if d.inside++; d.inside < driftBlock {
		return
	}
	d.inside = 0
	d.points[d.count%driftPoints] = pointOf(&d.block)
	d.count++
	d.fit()
}

// pointOf computes the point of a block of exchanges.
func pointOf(block *[driftBlock]exchange) driftPoint {
	first := block[0]
	least, sum := first, exchange{}
	for _, e := range block {
		least.there, least.back = min(least.there, e.there), min(least.back, e.back)
		// Differences to the first exchange are added, because a sum of times could overflow.
		sum.at, sum.there, sum.back = sum.at+e.at-first.at, sum.there+e.there-first.there, sum.back+e.back-first.back
	}
	mean := first.there - least.there + sum.there/driftBlock + first.back - least.back + sum.back/driftBlock
	return driftPoint{
		at:     first.at + sum.at/driftBlock,
		offset: (least.there - least.back) / 2,
		noise:  minNoise + time.Duration(float64(mean)/2*leastShare),
	}
}

// fit computes the line.
func (d *drift) fit() {
	points := d.points[:min(d.count, driftPoints)]
	n := float64(len(points))
	var at, noise float64 // mean time since the first point, and mean uncertainty, in s
	for _, p := range points {
		at += (p.at - points[0].at).Seconds() / n
		noise += p.noise.Seconds() / n
	}
	squares, products := (noise/usualDrift)*(noise/usualDrift), 0.
	for _, p := range points {
		x := (p.at - points[0].at).Seconds() - at
		squares += x * x
		// The mean offset need not be subtracted: the sum of all x is 0.
		products += x * (p.offset - points[0].offset).Seconds()
	}
	d.rate = min(max(products/squares, -maxDrift), maxDrift)
}

// over returns the time by which the server's clock gains on the client's clock in the time t.
func (d *drift) over(t time.Duration) time.Duration { return time.Duration(d.rate * float64(t)) }
