package memnet

import (
	"math/rand/v2"
	"time"
)

const (
	// overhead is what IP, UDP and QUIC add to a packet. It counts against the
	// bandwidth, because a link does not know payloads.
	overhead = 60
	// DefaultBuffer is the router's queue of a link that names none, as common home
	// routers have it.
	DefaultBuffer = 200 * time.Millisecond
	// reorderDelay bounds by how much a packet that Reorder picks comes late: more
	// than two periods of 60 Hz, so that it is overtaken.
	reorderDelay = 40 * time.Millisecond
	// duplicateDelay bounds how far behind the first a second copy comes.
	duplicateDelay = 10 * time.Millisecond
)

// Link is a client's way to the server and back. Both directions are alike, each with a
// bottleneck, a queue and a luck of its own. The zero value is a perfect link.
type Link struct {
	// Delay is the delay of one direction: the round trip is twice as long.
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

// path is one direction of a link. It is a pure model: it is told the time.
type path struct {
	link Link
	rng  *rand.Rand
	busy time.Duration // when the bottleneck has sent all that it took
}

func newPath(l Link, seed, stream uint64) path {
	return path{link: l, rng: rand.New(rand.NewPCG(seed, stream))}
}

// transit is what the link makes of one packet.
type transit struct {
	at     [2]time.Duration // when its copies arrive
	copies int              // 0: it never does
	tail   bool             // because the router's queue was full
}

// send sends a packet of so many payload bytes. Every call draws the same number of
// random values, so that the luck of a packet does not depend on that of another.
func (p *path) send(now time.Duration, size int) transit {
	lost, twice, late := p.rng.Float64(), p.rng.Float64(), p.rng.Float64()
	jitter, extra := p.rng.Float64(), p.rng.Float64()
	out, ok := p.enqueue(now, size)
	if !ok {
		return transit{tail: true}
	}
	if lost < p.link.Loss {
		return transit{}
	}
	t := transit{copies: 1}
	t.at[0] = out + p.link.Delay + share(jitter, p.link.Jitter)
	if late < p.link.Reorder {
		t.at[0] += share(extra, reorderDelay)
	}
	if twice < p.link.Duplicate {
		t.copies, t.at[1] = 2, t.at[0]+share(extra, duplicateDelay)
	}
	return t
}

// enqueue puts a packet into the router's queue and returns when it has left the
// bottleneck, or false when the queue is full. It comes before loss: what gets lost on
// the way took its time at the bottleneck.
func (p *path) enqueue(now time.Duration, size int) (out time.Duration, ok bool) {
	if p.link.Bandwidth <= 0 {
		return now, true
	}
	wait, buffer := p.backlog(now), p.link.Buffer
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	if wait > buffer {
		return 0, false
	}
	bits := int64(size+overhead) * 8
	p.busy = now + wait + time.Duration(bits*int64(time.Second)/int64(p.link.Bandwidth))
	return p.busy, true
}

// backlog is how long a packet sent now waits for the bottleneck.
func (p *path) backlog(now time.Duration) time.Duration {
	if p.link.Bandwidth <= 0 {
		return 0
	}
	return max(p.busy-now, 0)
}

func share(f float64, d time.Duration) time.Duration { return time.Duration(f * float64(d)) }
