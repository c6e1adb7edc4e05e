package netem

import (
	"math/rand/v2"
	"time"
)

const (
	// DefaultBuffer is the router's queue of a link that names none, as common home
	// routers have it.
	DefaultBuffer = 200 * time.Millisecond
	// reorderDelay bounds by how much a packet that Reorder picks comes late: more
	// than two periods of 60 Hz, so that it is overtaken.
	reorderDelay = 40 * time.Millisecond
	// duplicateDelay bounds how far behind the first a second copy comes.
	duplicateDelay = 10 * time.Millisecond
)

// Link is one direction between two ends, with a bottleneck, a queue and a luck of its own.
// The zero value is a perfect link.
type Link struct {
	// Delay is the delay of this direction alone: half of a round trip.
	Delay time.Duration
	// Jitter is added to Delay, evenly distributed from 0 to Jitter, for each packet
	// by itself: datagrams may overtake each other.
	Jitter time.Duration
	// Loss, Duplicate and Reorder are the shares, from 0 to 1, of packets that are
	// lost, that arrive twice, and that come up to 40 ms late.
	Loss, Duplicate, Reorder float64
	// Bandwidth is in bit/s of whole packets, headers included; 0 is unlimited.
	Bandwidth int
	// Buffer is the router's queue in front of the bottleneck, as time at Bandwidth.
	// A packet that would have to wait longer is dropped. 0 is DefaultBuffer.
	Buffer time.Duration
}

// Path is a link with what is under way on it. It is a pure model: it is told the time.
type Path struct {
	Link Link // may be changed at any time
	rng  *rand.Rand
	busy time.Duration // when the bottleneck has sent all that it took
}

// NewPath returns a path whose luck is the stream of a seed.
func NewPath(l Link, seed, stream uint64) Path {
	return Path{Link: l, rng: rand.New(rand.NewPCG(seed, stream))}
}

// Transit is what the link makes of one packet.
type Transit struct {
	At     [2]time.Duration // when its copies arrive
	Copies int              // 0: it never does
	Tail   bool             // because the router's queue was full
	Late   bool             // Reorder has picked it
}

// Send sends a packet of so many bytes, headers included. Every call draws the same number
// of random values, so that the luck of a packet does not depend on that of another.
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

// enqueue puts a packet into the router's queue and returns when it has left the
// bottleneck, or false when the queue is full. It comes before loss: what gets lost on
// the way took its time at the bottleneck.
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

// Backlog is how long a packet sent now waits for the bottleneck.
func (p *Path) Backlog(now time.Duration) time.Duration {
	if p.Link.Bandwidth <= 0 {
		return 0
	}
	return max(p.busy-now, 0)
}

func share(f float64, d time.Duration) time.Duration { return time.Duration(f * float64(d)) }
