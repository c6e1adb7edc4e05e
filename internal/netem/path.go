package netem

import (
	"math/rand/v2"
	"time"
)

const (
	// DefaultBuffer is the router's queue of a link that sets none, as in common home routers.
	DefaultBuffer = 200 * time.Millisecond
	// reorderDelay bounds the extra delay of a packet that Reorder selects: more than two periods
	// of 60 Hz, so that it is overtaken.
	reorderDelay = 40 * time.Millisecond
	// duplicateDelay bounds the delay of a second copy after the first.
	duplicateDelay = 10 * time.Millisecond
)

// Link is one direction between two ends, with its own bottleneck, queue and random numbers. The
// zero value is a perfect link.
type Link struct {
	// Delay is the delay of this direction alone: half of a round trip.
	Delay time.Duration
	// Jitter is added to Delay, evenly distributed from 0 to Jitter, for each packet
	// by itself: datagrams may overtake each other.
	Jitter time.Duration
	// Loss, Duplicate and Reorder are the shares, from 0 to 1, of packets that are lost, that
	// arrive twice, and that arrive up to 40 ms late.
	Loss, Duplicate, Reorder float64
	// Bandwidth is in bit/s of whole packets, headers included; 0 is unlimited.
	Bandwidth int
	// Buffer is the router's queue in front of the bottleneck, as time at Bandwidth.
	// A packet that would have to wait longer is dropped. 0 is DefaultBuffer.
	Buffer time.Duration
}

// Path is a link with its packets under way. It is a pure model: it gets the time as an argument.
type Path struct {
	Link Link // may be changed at any time
	rng  *rand.Rand
	busy time.Duration // time at which the bottleneck has sent all packets that it accepted
}

// NewPath returns a path over l. Its random numbers depend on seed and stream alone: paths of one
// seed have different streams.
func NewPath(l Link, seed, stream uint64) Path {
	return Path{Link: l, rng: rand.New(rand.NewPCG(seed, stream))}
}

// Transit is the result of one packet on the link.
type Transit struct {
	At     [2]time.Duration // when its copies arrive
	Copies int              // 0: lost
	Tail   bool             // lost because the router's queue was full
	Late   bool             // selected by Reorder
}

// Send sends a packet of so many bytes, headers included. Every call draws the same number of
// random values, so that the result of a packet does not depend on another packet.
func (p *Path) Send(now time.Duration, size int) Transit {
	lost, twice, late := p.rng.Float64(), p.rng.Float64(), p.rng.Float64()
	jitter, extra := p.rng.Float64(), p.rng.Float64()
	out, ok := p.enqueue(now, size)
	if !ok {
		return Transit{Tail: true}
	}
	if lost < p.Link.Loss {
		return Transit{}
	}
	t := Transit{Copies: 1}
	t.At[0] = out + p.Link.Delay + share(jitter, p.Link.Jitter)
	if late < p.Link.Reorder {
		t.At[0] += share(extra, reorderDelay)
		t.Late = true
	}
	if twice < p.Link.Duplicate {
		t.Copies, t.At[1] = 2, t.At[0]+share(extra, duplicateDelay)
	}
	return t
}

// enqueue puts a packet into the router's queue and returns the time at which it has left the
// bottleneck, or false when the queue is full. It precedes loss: a packet that is lost on the way
// still took its time at the bottleneck.
func (p *Path) enqueue(now time.Duration, size int) (out time.Duration, ok bool) {
	if p.Link.Bandwidth <= 0 {
		return now, true
	}
	wait, buffer := p.Backlog(now), p.Link.Buffer
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	if wait > buffer {
		return 0, false
	}
	bits := int64(size) * 8
	p.busy = now + wait + time.Duration(bits*int64(time.Second)/int64(p.Link.Bandwidth))
	return p.busy, true
}

// Backlog returns the time that a packet sent now waits for the bottleneck.
func (p *Path) Backlog(now time.Duration) time.Duration {
	if p.Link.Bandwidth <= 0 {
		return 0
	}
	return max(p.busy-now, 0)
}

func share(f float64, d time.Duration) time.Duration { return time.Duration(f * float64(d)) }
