package udpbatch

import (
	"bytes"
	"encoding/binary"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// messageBytes and messagePackets bound a message of several packets, by the size of a UDP
	// datagram and by the number of packets that every kernel accepts in a message.
	messageBytes   = 65000
	messagePackets = 64
	// lookBack is the number of recent messages among which a message to the same peer is searched.
	// The packets that a connection sends at once are close together.
	lookBack = 8
	// controlBytes holds QUIC's control messages: the local address, the mark for congestion, the
	// size of segments.
	controlBytes = 128
)

// batch is a set of packets for the kernel, and the messages made of them. One goroutine at a time
// uses it.
type batch struct {
	data     []byte // data of all packets; its capacity is never exceeded
	packets  []packet
	messages []message
	since    time.Time // time of the first packet
}

// packet is the data of one write: one UDP packet, or several of equal size, see
// message.segment.
type packet struct {
	data []byte
	next int // index of the next packet of the same message; -1: none
}

// message is one or more packets to one peer, which the kernel gets as one buffer and cuts into
// packets. Each packet except the last has segment bytes.
type message struct {
	addr        *net.UDPAddr
	first, last int // indexes of packets
	count       int // number of packets on the wire
	size        int // in bytes
	segment     int
	control     [controlBytes]byte // without the size of segments
	controlLen  int
	offered     bool // by Offer: not sent again after an error
}

func newBatch() *batch {
	return &batch{
		data:     make([]byte, 0, batchBytes),
		packets:  make([]packet, 0, batchPackets),
		messages: make([]message, 0, batchPackets),
	}
}

func (b *batch) empty() bool { return len(b.packets) == 0 }

func (b *batch) reset() {
	b.data, b.packets, b.messages = b.data[:0], b.packets[:0], b.messages[:0]
}

// fits reports whether there is room for a packet of size bytes.
func (b *batch) fits(size int) bool {
	return len(b.packets) < batchPackets && len(b.data)+size <= batchBytes
}

// add copies a write of QUIC into the batch. If merge is set, the data is appended to the last
// message to the same peer if possible; otherwise it becomes a separate message.
func (b *batch) add(data, control []byte, addr *net.UDPAddr, merge bool) {
	if b.empty() {
		b.since = time.Now()
	}
	start := len(b.data)
	b.data = append(b.data, data...)
	b.packets = append(b.packets, packet{data: b.data[start:len(b.data):len(b.data)], next: -1})
	m := message{addr: addr, first: len(b.packets) - 1, last: len(b.packets) - 1, size: len(data)}
	if m.segment = m.takeControl(control); m.segment == 0 || m.segment > len(data) {
		m.segment = len(data)
	}
	m.count = (m.size + m.segment - 1) / m.segment
	if merge {
		if last := b.lastTo(addr); last != nil && last.takes(&m) {
			b.packets[last.last].next = m.first
			last.last, last.count, last.size = m.last, last.count+m.count, last.size+m.size
			return
		}
	}
	b.messages = append(b.messages, m)
}

// takeControl copies the control messages, except for the size of segments, which it returns.
func (m *message) takeControl(control []byte) (segment int) {
	kept := m.control[:0]
	for rest := control; len(rest) > 0; {
		h, body, remainder, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_SEGMENT && len(body) == 2 {
			segment = int(binary.NativeEndian.Uint16(body))
		} else {
			kept = append(kept, rest[:len(rest)-len(remainder)]...)
		}
		rest = remainder
	}
	m.controlLen = len(kept)
	return segment
}

// lastTo returns the last message to a peer if it is among the last lookBack messages, or nil.
func (b *batch) lastTo(addr *net.UDPAddr) *message {
	for i := len(b.messages) - 1; i >= max(0, len(b.messages)-lookBack); i-- {
		m := &b.messages[i]
		if m.addr == addr || m.addr.Port == addr.Port && m.addr.IP.Equal(addr.IP) {
			return m
		}
	}
	return nil
}

// takes reports whether n may be appended to m: all packets except the last must have the same
// size, and the control messages must be equal. The packet of an offered message may be lost.
func (m *message) takes(n *message) bool {
	return !m.offered && m.size%m.segment == 0 &&
		(n.segment == m.segment || n.count == 1 && n.size < m.segment) &&
		m.size+n.size <= messageBytes && m.count+n.count <= messagePackets &&
		bytes.Equal(m.control[:m.controlLen], n.control[:n.controlLen])
}
