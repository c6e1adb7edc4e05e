package transport

import "time"

// A client's bytes are limited before anything is done for them, by the time at which they have
// arrived. Beyond a limit a datagram is dropped; the stream may lose nothing, so what it brings is
// taken. Beyond twice the limit the session ends with CodeFlood. What is dropped counts too.

// Limits bounds what a session takes from its peer. The zero value bounds nothing.
type Limits struct {
	Datagrams Rate
	Frames    Rate // of the stream, empty ones and those that mean nothing included
	// Bytes bounds those of the datagrams, and by itself those of the stream. A message counts
	// with what it takes decoded, and six times its bytes at least: what is in a message takes
	// longer to read than what is around it.
	Bytes Rate
}

// Rate is a token bucket: so many at once, and so many a second for ever. The zero Rate has no
// bottom.
type Rate struct{ PerSecond, Burst int }

// DefaultLimits are far above what a client sends, and below what costs the server much. A client
// flushes a datagram per tick, of which the highest usual rate is 240 Hz, and a second one with
// what its messages take; the queues below hold some two hundred at either end, should the network
// or the server stand still. A message is a frame, and the room's own limit of 1 000 a second is to
// act first: it knows a player over all of its connections. The worst of messages take some five
// nanoseconds for a byte that counts, so a flooder is out before it has had 5 % of a core for a
// second.
var DefaultLimits = Limits{
	Datagrams: Rate{PerSecond: 600, Burst: 600},
	Frames:    Rate{PerSecond: 4000, Burst: 8000},
	Bytes:     Rate{PerSecond: 2 << 20, Burst: 4 << 20},
}

// meter is what a sender has used of a Rate, kept as the instant at which the bucket is full again.
// It belongs to the goroutine that reads.
type meter struct{ full time.Duration }

// excess is how far a sender is beyond a Rate.
type excess uint8

const (
	within excess = iota
	beyondBurst
	beyondTwice
)

// take counts n more. Nothing is forgiven: what comes beyond the limit counts too.
func (m *meter) take(at time.Duration, r Rate, n int) excess {
	if r.PerSecond <= 0 {
		return within
	}
	price := func(n int) time.Duration { return time.Duration(n) * time.Second / time.Duration(r.PerSecond) }
	m.full = max(m.full, at) + price(n)
	switch debt, burst := m.full-at, price(r.Burst); {
	case debt > 2*burst:
		return beyondTwice
	case debt > burst:
		return beyondBurst
	}
	return within
}

// takeDatagram counts a datagram, and reports whether it is within the limits.
func (l *leg) takeDatagram(at time.Duration, size int) bool {
	return l.grant(l.datagrams.take(at, l.cfg.Limits.Datagrams, 1), DropDatagramRate) &&
		l.grant(l.datagramBytes.take(at, l.cfg.Limits.Bytes, size), DropDatagramBytes)
}

// grant reports whether a datagram is within a limit, and otherwise does what follows.
func (l *leg) grant(e excess, why Drop) bool {
	if e == within {
		return true
	}
	l.stats.Drop(why, 1)
	if e == beyondTwice {
		l.flooded()
	}
	return false
}

// takeFrame and takeStream count a frame, and bytes, of the stream.
func (l *leg) takeFrame(at time.Duration) bool {
	return l.endures(l.frames.take(at, l.cfg.Limits.Frames, 1), DropFrameRate)
}

func (l *leg) takeStream(at time.Duration, size int) bool {
	return l.endures(l.streamBytes.take(at, l.cfg.Limits.Bytes, size), DropStreamBytes)
}

// endures reports whether what the stream brings is taken, and otherwise ends the session.
func (l *leg) endures(e excess, why Drop) bool {
	if e < beyondTwice {
		return true
	}
	l.stats.Drop(why, 1)
	l.flooded()
	return false
}

// takeDecoded counts what a message takes decoded beyond its bytes, which have been counted.
func (l *leg) takeDecoded(at time.Duration, decoded, encoded int, reliable bool) bool {
	more := max(decoded, readCost*encoded) - encoded
	if reliable {
		return l.takeStream(at, more)
	}
	return l.grant(l.datagramBytes.take(at, l.cfg.Limits.Bytes, more), DropDatagramBytes)
}
