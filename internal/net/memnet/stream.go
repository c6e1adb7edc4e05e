package memnet

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

const (
	// segmentSize bounds the reliable bytes in one packet.
	segmentSize = transport.MaxDatagram
	// maxSegments bounds the packets of reliable data in flight in one direction, like QUIC's flow
	// control. Further data waits in the session's queue, which is bounded and counted.
	maxSegments = 64
	// streamBacklog is the queueing time at the bottleneck above which no new reliable data is
	// sent, as congestion control would do: about one and a half ticks of 60 Hz.
	streamBacklog = 25 * time.Millisecond
	// minResend is the shortest time until a lost packet is sent again.
	minResend = 10 * time.Millisecond
	// ackSize is the payload of a packet that only acknowledges.
	ackSize = 20
)

// streamOut is the sending side of one direction's stream.
type streamOut struct {
	next    uint64 // number of the next segment
	flight  int    // segments that the peer has not acknowledged
	waiting []byte // handshake: unsent bytes, before there is a session
	timed   bool   // a pump is scheduled for the end of the backlog
}

func (s *streamOut) idle() bool { return s.flight == 0 && len(s.waiting) == 0 }

// streamIn is the receiving side: it puts segments in order.
type streamIn struct {
	next uint64
	held [][]byte // held[i] is segment next+i, nil while it is missing; at most maxSegments
}

// takeStream sends as many segments of the stream as maxSegments and streamBacklog allow.
func (e *end) takeStream() {
	now := e.conn.net.Now()
	for e.stream.flight < maxSegments {
		// One segment is always in flight, so that datagrams cannot starve the stream.
		if wait := e.out.Backlog(now) - streamBacklog; wait > 0 && e.stream.flight > 0 {
			e.pumpIn(wait)
			return
		}
		b := e.nextSegment()
		if len(b) == 0 {
			return
		}
		b, last := e.limited(b)
		e.tapped(b, false)
		b = e.forged(b, false)
		seq := e.stream.next
		e.stream.next++
		e.stream.flight++
		e.sendReliable(len(b), func() bool { return e.peer.receiveSegment(seq, b) })
		if last {
			e.vanish()
			return
		}
	}
}

// limited returns the part of a segment that the client sends before it vanishes, and reports
// whether it then vanishes: see DropAfter.
func (e *end) limited(b []byte) (part []byte, last bool) {
	c := e.conn
	if c.vanished == nil || e != &c.client {
		return b, false
	}
	part = b[:min(len(b), c.left)]
	c.left -= len(part)
	return part, c.left == 0
}

// vanish ends the client, while its last packet is on its way.
func (e *end) vanish() {
	then := e.conn.vanished
	e.conn.vanished = nil
	e.end(transport.Closed{Code: transport.CodeLost, Text: "connection is broken"})
	e.silent = true
	e.conn.net.after(IdleTimeout, func() {
		e.peer.end(transport.Closed{Code: transport.CodeLost, Text: "no packet from the peer for " + IdleTimeout.String()})
	})
	then()
}

// nextSegment returns the next unsent bytes, the bytes of the handshake first.
func (e *end) nextSegment() []byte {
	if w := e.stream.waiting; len(w) > 0 {
		k := min(len(w), segmentSize)
		e.stream.waiting = w[k:]
		return w[:k:k]
	}
	if e.link == nil {
		return nil
	}
	return e.link.AppendStream(nil, segmentSize)
}

func (e *end) pumpIn(d time.Duration) {
	if e.stream.timed {
		return
	}
	e.stream.timed = true
	e.conn.net.after(d, func() {
		e.stream.timed = false
		if e.link == nil {
			e.takeStream()
			return
		}
		e.pump()
	})
}

// sendReliable sends a packet, and sends it again after each round trip and a half until the peer
// accepts it. arrive is called at each arrival and reports whether the peer accepts the packet.
func (e *end) sendReliable(size int, arrive func() bool) {
	n := e.conn.net
	again := func() {
		if !e.peer.gone {
			n.after(max(e.rtt()*3/2, minResend), func() { e.sendReliable(size, arrive) })
		}
	}
	sent := n.Now()
	t := e.send(size)
	if t.Copies == 0 {
		again()
		return
	}
	n.events.Push(t.At[0], event{call: func() {
		if e.peer.gone {
			return
		}
		if e.peer.deaf || !arrive() {
			e.counts.Hole++
			again()
			return
		}
		e.counts.Delivered++
		e.measure(n.Now() - sent)
	}})
}

// receiveSegment accepts a segment, acknowledges it, and delivers the segments that are in order. A
// stalled client accepts no segments.
func (e *end) receiveSegment(seq uint64, b []byte) bool {
	if e.stalled {
		return false
	}
	e.sendReliable(ackSize, func() bool {
		e.peer.stream.flight--
		if e.peer.link == nil {
			e.peer.takeStream()
		}
		e.peer.pump()
		return true
	})
	for uint64(len(e.in.held)) <= seq-e.in.next {
		e.in.held = append(e.in.held, nil)
	}
	e.in.held[seq-e.in.next] = b
	k := 0
	for k < len(e.in.held) && e.in.held[k] != nil {
		k++
	}
	ready := e.in.held[:k]
	for _, b := range ready {
		e.deliver(b)
	}
	e.in.next += uint64(k)
	rest := copy(e.in.held, e.in.held[k:])
	clear(e.in.held[rest:])
	e.in.held = e.in.held[:rest]
	e.pump()
	return true
}

// deliver passes stream bytes that are in order to the session, or to the handshake.
func (e *end) deliver(b []byte) {
	if e.gone {
		return
	}
	if e.link == nil {
		e.begun = append(e.begun, b...)
		if e.read != nil {
			e.read()
		}
		return
	}
	err := e.link.ReceiveStream(e.now(), b)
	var c *transport.Closed
	if errors.As(err, &c) && c.Remote {
		// The peer is only waiting for the acknowledgement of its close.
		e.end(*c)
	}
	// After any other error the session closes itself, and pump closes the link.
}
