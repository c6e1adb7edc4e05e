package transport

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// outbox collects the owner's data until the next flush. Only the owner's goroutine uses it, so it
// needs no lock.
type outbox struct {
	unreliable messageQueue
	// unreliableWaits: the next flush sends no unreliable messages.
	unreliableWaits bool

	reliable   byteQueue
	slot       Slot
	offered    bool // Slot was called since the last flush
	acks       ackSet
	acksField  [maxAckField]byte
	acksLen    int
	acksNew    bool
	acksWait   bool // the next flush sends no datagram only for acknowledgements
	epoch      Epoch
	epochDue   bool
	overload   Overload
	loadDue    bool
	scale      TimeScale
	scaleDue   bool
	applied    uint64 // the last record received on the stream
	appliedDue bool
	received   receipts
	inputs     []byte
	status     InputStatus
	statusDue  bool
	closed     bool

	mispredicted uint64

	flushed time.Duration // time of the last flush
	stuck   time.Duration // time for which no queued reliable data was sent
	behind  time.Duration // time for which a long backlog was not confirmed
	had     uint64        // confirmed messages of the backlog when behind was last 0
}

// Slot holds the packets of one snapshot, each at most MaxStatePacket bytes. The owner may write
// them until Flush. Then they belong to the session until Slot returns them again, empty but with
// their memory.
type Slot struct{ Packets [][]byte }

// Slot returns the slot to fill before the next Flush, or nil while the last snapshot is queued. An
// empty slot sends no packets.
func (s *Session) Slot() *Slot {
	if s.out.closed || s.slotBusy.Load() {
		return nil
	}
	if !s.out.offered {
		s.out.offered = true
		s.out.slot.Packets = s.out.slot.Packets[:0]
	}
	return &s.out.slot
}

// Send queues a message for the next Flush, and copies its payload. It counts a drop and reports
// false for a message that cannot be sent: it is too large, or the session is closed.
func (s *Session) Send(m Message) bool {
	if s.cfg.Sent != nil {
		s.cfg.Sent(m)
	}
	if s.out.closed && (s.backlog == nil || !m.Reliable) {
		s.stats.Drop(DropClosed, 1)
		return false
	}
	m.Text = clip(m.Text)
	size := sizeMessage(&m)
	if m.Stage > numStages || !m.Reliable && size > maxDatagramMessage || m.Reliable && size > maxFrameMessage {
		s.stats.Drop(DropOversize, 1)
		return false
	}
	if m.Reliable {
		return s.sendReliable(&m, size)
	}
	q := &s.out.unreliable
	if n := q.room(size + maxMessageHead); n > 0 {
		s.stats.Drop(DropUnreliable, uint64(n))
	}
	start := len(q.buf)
	q.buf = appendDatagramMessage(q.buf, &m, size)
	q.close(start)
	return true
}

func (s *Session) sendReliable(m *Message, size int) bool {
	q := &s.out.reliable
	start := len(q.buf)
	if q.size()+size > maxReliableBytes {
		s.slow("outbound queue is full")
		return false
	}
	q.grow(size + maxMessageHead)
	q.buf = appendMessageFrame(q.buf, m, size)
	if b := s.backlog; b != nil {
		if !b.add(q.buf[start:]) {
			q.buf = q.buf[:start]
			s.slow("outbound queue is full")
			return false
		}
		if s.out.closed || b.awaits {
			q.buf = q.buf[:start] // The next connection sends it, or this one after Resend.
			return true
		}
	}
	s.stats.FramesOut.Add(1)
	return true
}

// Accept tells the client that the room has admitted or resumed it, and that received of its
// reliable messages have arrived.
func (s *Session) Accept(received uint64) {
	s.out.received.told = received
	s.control(frameAccepted, received)
}

// LimitUnreliable lets the next Flush send at most so many bytes of unreliable messages, and
// returns the number of bytes that it sends. If they are more, the newest of one datagram wait for
// the flush after it, and the others are dropped.
func (s *Session) LimitUnreliable(most int) int {
	q := &s.out.unreliable
	for q.size() > max(most, maxDatagramMessage) {
		q.pop()
		s.stats.Drop(DropUnreliableRate, 1)
	}
	if s.out.unreliableWaits = q.size() > most; s.out.unreliableWaits {
		return 0
	}
	return q.size()
}

// control queues a frame that contains only a number.
func (s *Session) control(kind protowire.Number, n uint64) {
	if s.out.closed {
		return
	}
	s.out.reliable.buf = appendCountFrame(s.out.reliable.buf, kind, n)
	s.stats.FramesOut.Add(1)
}

// AwaitPeer delays the messages of the backlog until Resend gets the number of messages that the
// peer has received.
func (s *Session) AwaitPeer() { s.backlog.awaits = true }

// Resend confirms the messages that the peer has received. After AwaitPeer it queues all other
// messages, including those sent meanwhile. It reports false for an invalid number.
func (s *Session) Resend(received uint64) bool {
	b := s.backlog
	if !b.Confirm(received) {
		return false
	}
	waited := b.awaits
	b.awaits = false
	if waited && !s.out.closed {
		s.out.reliable.append(b.kept.buf[b.kept.off:])
		s.stats.FramesOut.Add(uint64(b.Len()))
	}
	return true
}

// receipts decides when to confirm the peer's reliable messages. It does not confirm each of them,
// because a confirmation only frees the peer's memory.
type receipts struct {
	told  uint64 // number of confirmed messages
	bytes int    // bytes received since then
}

const (
	receiptMessages = 16
	receiptBytes    = 32 << 10
)

// Received records that the peer's reliable messages up to a number, the last of them of size
// bytes, were processed. It confirms them to the peer from time to time.
func (s *Session) Received(messages uint64, size int) {
	r := &s.out.received
	r.bytes += size
	if messages < r.told+receiptMessages && r.bytes < receiptBytes {
		return
	}
	r.told, r.bytes = messages, 0
	s.control(frameReceived, messages)
}

// stuckLocked reports whether for maxStuck no queued reliable data was sent to a client, because it
// does not read, or its backlog was not confirmed.
func (s *Session) stuckLocked(at time.Duration) bool {
	o := &s.out
	step := min(at-o.flushed, stuckStep)
	o.flushed = at
	o.stuck += step
	if s.box.moved || s.box.reliable.size() == 0 {
		o.stuck, s.box.moved = 0, false
	}
	o.behind += step
	if b := s.backlog; b == nil || b.Len() < stuckBacklog || b.confirmed != o.had {
		o.behind = 0
		if b != nil {
			o.had = b.confirmed
		}
	}
	return !s.cfg.Client && max(o.stuck, o.behind) >= maxStuck
}

// slow disconnects a peer with a full or stuck reliable queue.
func (s *Session) slow(text string) {
	s.stats.Drop(DropReliable, 1)
	s.out.closed = true
	s.out.reliable.reset()
	s.out.unreliable.reset()
	s.shutdown(CodeSlow, text)
}

// SendRecord queues a state record for the next Flush, on the stream, and copies it.
func (s *Session) SendRecord(record []byte) {
	q := &s.out.reliable
	switch {
	case s.out.closed:
		s.stats.Drop(DropClosed, 1)
	case len(record) > MaxStateRecord:
		s.stats.Drop(DropOversize, 1)
	case q.size()+len(record) > maxReliableBytes:
		s.slow("outbound queue is full")
	default:
		q.grow(len(record) + maxMessageHead)
		q.buf = appendStateFrame(q.buf, record)
		s.stats.FramesOut.Add(1)
	}
}

// AckRecord acknowledges, on the client, all records of the stream up to this one. If it is called
// several times between two flushes, only the last number is sent.
func (s *Session) AckRecord(record uint64) { s.out.applied, s.out.appliedDue = record, true }

// AckState acknowledges a decoded state packet, on the client. The next datagrams carry the
// acknowledgement.
func (s *Session) AckState(packet uint64) {
	if s.out.acks.add(packet) {
		s.out.acksNew = true
	}
}

// AckLater delays acknowledgements, on the client: the next Flush sends them only with other data,
// or else a later flush sends them.
func (s *Session) AckLater() { s.out.acksWait = true }

// Inputs sets, on the client, the packet of inputs for the next flush, and copies it.
func (s *Session) Inputs(packet []byte) { s.out.inputs = append(s.out.inputs[:0], packet...) }

// TellMispredicted reports, on the client, the number of mispredictions since the join, with the
// next datagram that has room for it. 0 is not sent.
func (s *Session) TellMispredicted(n uint64) { s.out.mispredicted = min(n, maxCount) }

// TellInputs sends the client the status of its inputs, with the next datagram that has room for
// it.
func (s *Session) TellInputs(st InputStatus) { s.out.status, s.out.statusDue = st, true }

// PublishEpoch sends the client a new epoch. If it is called several times between two flushes,
// only the last epoch is sent.
func (s *Session) PublishEpoch(e Epoch) { s.out.epoch, s.out.epochDue = e, true }

// PublishOverload sends the client a new level of overload. If it is called several times between
// two flushes, only the last level is sent.
func (s *Session) PublishOverload(o Overload) { s.out.overload, s.out.loadDue = o, true }

// PublishTimeScale sends the client a new speed of scaled time. If it is called several times
// between two flushes, only the last speed is sent.
func (s *Session) PublishTimeScale(t TimeScale) { s.out.scale, s.out.scaleDue = t, true }

// PublishClosing tells the client that the server closes within left.
func (s *Session) PublishClosing(left time.Duration) { s.control(frameClosing, nanos(left)) }

// RequestDigest requests digests in the next snapshots from the server.
func (s *Session) RequestDigest(snapshots uint32) { s.request(snapshots, false) }

// RequestFullState requests the full state from the server.
func (s *Session) RequestFullState() { s.request(0, true) }

func (s *Session) request(snapshots uint32, full bool) {
	if s.out.closed || s.out.reliable.size() > maxReliableBytes/2 {
		s.stats.Drop(DropClosed, 1)
		return
	}
	s.out.reliable.buf = appendDigestFrame(s.out.reliable.buf, snapshots, full)
	s.stats.FramesOut.Add(1)
}

// RequestTime requests the server's time. It sends a datagram at once, unless another datagram is
// about to be sent. Any goroutine may call it; the answer is an arrival TimeSample.
func (s *Session) RequestTime() {
	s.mu.Lock()
	due := s.cfg.Client && s.box.cause == nil
	s.box.requestDue = due
	s.mu.Unlock()
	if due {
		s.wakeDatagrams()
	}
}

// Flush passes the collected data to the driver's writers, with one lock and one signal to each
// writer. On a client every flush except after AckLater sends at least one datagram, which repeats
// the acknowledgements, so that the server can distinguish a silent client from a lost one.
func (s *Session) Flush(at time.Duration) {
	if s.out.closed {
		return
	}
	s.mu.Lock()
	if s.box.cause != nil {
		s.mu.Unlock()
		s.out.closed = true
		return
	}
	stuck := s.stuckLocked(at)
	waiting := s.collectLocked()
	s.box.beat = s.box.beat || s.cfg.Client && !s.out.acksWait
	s.out.acksWait = false
	datagrams, stream := s.box.due(), s.box.reliable.size() > 0
	if datagrams && !s.box.flushing {
		s.box.flushing, s.box.flushAt, s.box.choked = true, at, 0
	}
	s.mu.Unlock()
	if waiting > maxReliableBytes {
		s.slow("outbound queue is full")
		return
	}
	if stuck {
		s.slow("no outbound data was sent for " + maxStuck.String())
		return
	}
	if datagrams {
		s.wakeDatagrams()
	}
	if stream {
		s.wakeStream()
	}
}

// collectLocked moves the outbox into the mailbox and returns the number of queued reliable bytes.
func (s *Session) collectLocked() int {
	o, b := &s.out, &s.box
	if b.cause != nil {
		o.closed = true
		return 0
	}
	if o.epochDue {
		o.reliable.buf = appendEpochFrame(o.reliable.buf, o.epoch)
		o.epochDue = false
		s.stats.FramesOut.Add(1)
	}
	if o.loadDue {
		o.reliable.buf = appendOverloadFrame(o.reliable.buf, o.overload)
		o.loadDue = false
		s.stats.FramesOut.Add(1)
	}
	if o.scaleDue {
		o.reliable.buf = appendTimeScaleFrame(o.reliable.buf, o.scale)
		o.scaleDue = false
		s.stats.FramesOut.Add(1)
	}
	if o.appliedDue {
		o.reliable.buf = appendCountFrame(o.reliable.buf, frameStateApplied, o.applied)
		o.appliedDue = false
		s.stats.FramesOut.Add(1)
	}
	if b.reliable.size() == 0 {
		b.reliable, o.reliable = o.reliable, b.reliable
	} else {
		b.reliable.append(o.reliable.buf)
	}
	o.reliable.reset()
	if !o.unreliableWaits {
		if n := b.unreliable.appendAll(&o.unreliable); n > 0 {
			s.stats.Drop(DropUnreliable, uint64(n))
		}
	}
	s.collectStateLocked()
	s.collectInputsLocked()
	s.streamBehind.Store(b.reliable.size() > maxReliableBytes/2)
	return b.reliable.size()
}

// collectStateLocked moves the snapshot and the acknowledgements.
func (s *Session) collectStateLocked() {
	o, b := &s.out, &s.box
	if o.offered && len(o.slot.Packets) > 0 {
		b.packets, b.next = o.slot.Packets, 0
		o.offered = false
		s.slotBusy.Store(true)
	}
	if o.acksNew {
		o.acksLen = len(o.acks.appendField(o.acksField[:0]))
		o.acksNew = false
	}
	if o.acksLen > 0 {
		b.acksLen = copy(b.acks[:], o.acksField[:o.acksLen])
		b.acksDue = true
	}
}

// collectInputsLocked moves the inputs, the input status and the report of mispredictions.
func (s *Session) collectInputsLocked() {
	o, b := &s.out, &s.box
	if len(o.inputs) > 0 {
		b.inputs, o.inputs = o.inputs, b.inputs[:0]
	}
	if b.statusDue {
		b.statusWaits++
	}
	if o.statusDue {
		b.status, b.statusDue, o.statusDue = o.status, true, false
	}
	if o.mispredicted > 0 {
		b.mispredicted, o.mispredicted = o.mispredicted, 0
	}
}
