package transport

import "time"

// A client's bytes are limited before they are processed, by their time of arrival. A datagram
// above a limit is dropped; stream data above a limit is accepted, because it must not be lost.
// Above twice the limit the session ends with CodeFlood. Dropped data counts too.

// Limits bounds the data that a session accepts from its peer. The zero value has no bounds.
type Limits struct {
	Datagrams Rate
	Frames    Rate // frames of the stream, including empty and unknown frames
	// Bytes bounds the bytes of the datagrams, and separately those of the stream. A message counts
	// with its decoded size, and with at least six times its bytes, because the contents of a
	// message take longer to read than its envelope.
	Bytes Rate
}

// Rate is a token bucket: Burst at once, and PerSecond in the long run. The zero Rate has no limit.
type Rate struct{ PerSecond, Burst int }

// DefaultLimits are far above the traffic of a client, and below an amount that is expensive for
// the server. A client flushes a datagram per tick, at the usual highest rate of 240 Hz, and a
// second one for its messages; the queues of both ends hold some two hundred, in case the network
// or the server stops for a while. A message is a frame, and the room's own limit of 1 000 a second
// should take effect first: it counts a player over all of its connections. The worst messages take
// some five nanoseconds per charged byte, so a flooding client is disconnected before using 5 % of
// a core for a second.
var DefaultLimits = Limits{
	Datagrams: Rate{PerSecond: 600, Burst: 600},
	Frames:    Rate{PerSecond: 4000, Burst: 8000},
	Bytes:     Rate{PerSecond: 2 << 20, Burst: 4 << 20},
}

// meter is a sender's use of a Rate, stored as the time at which the bucket is full again. It
// belongs to the reading goroutine.
type meter struct{ full time.Duration }

// excess is the degree to which a sender exceeds a Rate.
type excess uint8

const (
	within excess = iota
	beyondBurst
	beyondTwice
)

// take counts n units of the sender, even above the limit, and returns the degree to which the
// sender then exceeds r.
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

// grant reports whether a datagram is within a limit. If not, it counts a drop; above twice the
// limit it ends the session.
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

// takeFrame counts one frame of the stream, and takeStream counts bytes of it. They report false
// above twice the limit, after which the session has ended.
func (l *leg) takeFrame(at time.Duration) bool {
	return l.endures(l.frames.take(at, l.cfg.Limits.Frames, 1), DropFrameRate)
}

func (l *leg) takeStream(at time.Duration, size int) bool {
	return l.endures(l.streamBytes.take(at, l.cfg.Limits.Bytes, size), DropStreamBytes)
}

// endures reports whether the stream's data is accepted: up to twice the limit. Above that it ends
// the session.
func (l *leg) endures(e excess, why Drop) bool {
	if e < beyondTwice {
		return true
	}
	l.stats.Drop(why, 1)
	l.flooded()
	return false
}

// takeDecoded counts a message's decoded size minus its encoded bytes, which are already counted,
// and reports whether the message is accepted.
func (l *leg) takeDecoded(at time.Duration, decoded, encoded int, reliable bool) bool {
	more := max(decoded, readCost*encoded) - encoded
	if reliable {
		return l.takeStream(at, more)
	}
	return l.grant(l.datagramBytes.take(at, l.cfg.Limits.Bytes, more), DropDatagramBytes)
}
