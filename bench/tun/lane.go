package tun

import (
	"encoding/binary"
	"time"

	"github.com/netloop/netloop/internal/netem"
)

const (
	// maxWaiting bounds the bytes in a lane, to 250 ms at 250 Mbit/s. Packets above this bound are
	// dropped and counted as Tail.
	maxWaiting = 8 << 20
	// maxFlows bounds the flows that a lane counts. Packets of further flows are counted for the
	// zero Flow.
	maxFlows = 1024
	// lateAfter is the delay after which a packet counts as Late. It is less than a third of a
	// period of 60 Hz.
	lateAfter = 5 * time.Millisecond
)

// Flow identifies the packets of one client: the IP protocol (6 is TCP, 17 is UDP) and the port at
// the clients' host. The zero Flow is the flow of packets without a port.
type Flow struct {
	Protocol uint8
	Port     uint16
}

// Counts are the packets of one direction since the link was opened.
type Counts struct {
	Passed uint64          // delivered
	Lost   uint64          // by Loss, or in a Hole
	Tail   uint64          // dropped because the queue was full
	Late   uint64          // delivered more than 5 ms late, because the machine was busy
	Bytes  map[Flow]uint64 // of delivered packets with their IP headers
}

// lane is the model of one direction: it queues, drops and delays packets. It keeps the packets in
// order, except those that Link.Reorder selects. The caller passes the time as an argument.
type lane struct {
	way    netem.Way
	d      netem.Direction
	path   netem.Path
	queue  netem.Schedule[[]byte]
	last   time.Duration // the latest arrival of a packet in order
	bytes  int           // bytes of the packets in queue
	counts Counts
}

func newLane(way netem.Way, d netem.Direction, seed uint64) *lane {
	return &lane{way: way, d: d, path: netem.NewPath(way.Link, seed, uint64(d)), counts: Counts{Bytes: map[Flow]uint64{}}}
}

// put adds a packet, which then belongs to the lane.
func (l *lane) put(now time.Duration, packet []byte) {
	t := l.path.Send(now, len(packet))
	hole := now >= l.way.Hole.At && now-l.way.Hole.At < l.way.Hole.For
	switch {
	case t.Tail || l.bytes+t.Copies*len(packet) > maxWaiting:
		l.counts.Tail++
		return
	case t.Copies == 0 || hole:
		l.counts.Lost++
		return
	}
	if !t.Late {
		t.At[0] = max(t.At[0], l.last)
		l.last = t.At[0]
	}
	for _, at := range t.At[:t.Copies] {
		l.bytes += len(packet)
		l.queue.Push(at, packet)
	}
}

// take returns the next packet that has arrived.
func (l *lane) take(now time.Duration) (packet []byte, ok bool) {
	packet, at, ok := l.queue.Pop(now)
	if !ok {
		return nil, false
	}
	l.bytes -= len(packet)
	l.counts.Passed++
	if now-at > lateAfter {
		l.counts.Late++
	}
	f := flowOf(packet, l.d)
	if _, known := l.counts.Bytes[f]; !known && len(l.counts.Bytes) >= maxFlows {
		f = Flow{}
	}
	l.counts.Bytes[f] += uint64(len(packet))
	return packet, true
}

// flowOf reads the flow of an IPv4 packet. The clients' port is the source on the way up, and the
// destination on the way down.
func flowOf(packet []byte, d netem.Direction) Flow {
	const tcp, udp, protocolAt, leastHeader = 6, 17, 9, 20
	if len(packet) < leastHeader {
		return Flow{}
	}
	header := int(packet[0]&0xf) * 4
	at := header
	if d == netem.Down {
		at += 2
	}
	if p := packet[protocolAt]; (p == tcp || p == udp) && len(packet) >= header+4 {
		return Flow{p, binary.BigEndian.Uint16(packet[at:])}
	}
	return Flow{}
}
