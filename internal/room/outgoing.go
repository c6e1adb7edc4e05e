package room

import (
	"hash/crc64"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/wire"
)

// outgoing digests the data that leaves a room in a tick, in the order of the room's decisions:
// messages when they are sent, packets when they are encoded, connections when they are closed. A
// nil outgoing does no work.
type outgoing struct {
	sum     uint64
	stopped bool // the sum will not be read any more
	buf     []byte
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// The tags of the digested kinds.
const (
	sentMessage = 1 + iota
	sentPacket
	sentClose
	sentRecord
	sentTimeScale
	sentInputStatus
	sentMail
)

// begin starts an entry of the digest. It reports false if the room has no digest.
func (o *outgoing) begin(tag byte, id uint64) bool {
	if o == nil || o.stopped {
		return false
	}
	o.buf = wire.AppendUvarint(append(o.buf[:0], tag), id)
	return true
}

func (o *outgoing) end() { o.sum = crc64.Update(o.sum, crcTable, o.buf) }

// sender returns the function to which a client's session passes each message that it sends, or nil
// if o is nil.
func (o *outgoing) sender(id uint64) func(transport.Message) {
	if o == nil {
		return nil
	}
	return func(m transport.Message) { o.message(id, &m) }
}

func (o *outgoing) message(id uint64, m *transport.Message) {
	if !o.begin(sentMessage, id) {
		return
	}
	flags := byte(0)
	if m.Reply {
		flags |= 1
	}
	if m.Reliable {
		flags |= 2
	}
	o.buf = append(o.buf, m.Stage, flags)
	o.buf = wire.AppendUvarint(o.buf, uint64(m.Method))
	o.buf = wire.AppendUvarint(o.buf, m.Call)
	o.buf = wire.AppendUvarint(o.buf, uint64(m.Code))
	o.buf = wire.AppendString(o.buf, m.Text)
	o.buf = wire.AppendUvarint(o.buf, m.Tick)
	o.buf = wire.AppendBytes(o.buf, m.Payload)
	o.end()
}

// bytes digests bytes.
func (o *outgoing) bytes(tag byte, id uint64, b []byte) {
	if o.begin(tag, id) {
		o.buf = wire.AppendBytes(o.buf, b)
		o.end()
	}
}

func (o *outgoing) packets(id uint64, packets [][]byte) {
	for _, p := range packets {
		o.bytes(sentPacket, id, p)
	}
}

func (o *outgoing) record(id uint64, record []byte) { o.bytes(sentRecord, id, record) }

func (o *outgoing) closed(id uint64, why *transport.Closed) {
	if !o.begin(sentClose, id) {
		return
	}
	o.buf = wire.AppendString(wire.AppendUvarint(o.buf, uint64(why.Code)), why.Text)
	o.end()
}

// numbers digests numbers.
func (o *outgoing) numbers(tag byte, id uint64, all ...uint64) {
	if !o.begin(tag, id) {
		return
	}
	for _, v := range all {
		o.buf = wire.AppendUvarint(o.buf, v)
	}
	o.end()
}

// timeScale digests a change of the time scale, even in a room without clients, because later ticks
// depend on the scale.
func (o *outgoing) timeScale(s transport.TimeScale) {
	o.numbers(sentTimeScale, 0, s.Num, s.Den, s.Tick, uint64(s.At), s.Fraction)
}

func (o *outgoing) inputStatus(id uint64, s *transport.InputStatus) {
	o.numbers(sentInputStatus, id, s.Newest, uint64(s.Before), uint64(s.Early), s.Missed, uint64(s.Generation))
}

// mail digests a message to another room.
func (o *outgoing) mail(to string, method uint32, stage loop.Stage, payload []byte) {
	if !o.begin(sentMail, uint64(method)) {
		return
	}
	o.buf = wire.AppendString(append(o.buf, byte(stage)), to)
	o.buf = wire.AppendBytes(o.buf, payload)
	o.end()
}

// take returns the digest of the data since the last call, and begins the next digest.
func (o *outgoing) take() uint64 {
	sum := o.sum
	o.sum = 0
	return sum
}

func (o *outgoing) stop() { o.stopped = true }
