package transport

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// receiveDatagram handles a datagram that was read at the time at, after it had waited in the
// socket. If borrowed is set, the driver uses the memory of b again.
func (l *leg) receiveDatagram(at, waited time.Duration, b []byte, borrowed bool) {
	l.stats.DatagramsIn.Add(1)
	l.stats.DatagramBytesIn.Add(uint64(len(b)))
	l.received.Add(uint64(len(b)))
	if l.deaf.Load() {
		l.stats.Drop(DropInboxGone, 1)
		return
	}
	if !l.takeDatagram(at, len(b)) {
		return
	}
	if len(b) > MaxDatagram {
		l.discard(at, DropDatagramTooLarge, len(b))
		return
	}
	d, err := parseDatagram(b)
	if err == nil && d.acks != nil {
		l.ranges, err = parseAcks(d.acks, l.ranges[:0])
	}
	if err != nil {
		l.discard(at, DropDatagram, len(b))
		return
	}
	if why, fresh := l.dup.check(d.number); !fresh {
		l.stats.Drop(why, 1)
		return
	}
	l.lastArrival.Store(int64(at))
	if borrowed && l.cfg.Client { // The inbox copies inputs, but not state.
		d.state = bytes.Clone(d.state)
	}
	l.receiveLinkFields(at, waited, &d)
	for w := walk(d.messages, &datagramMessages); w.next(); {
		l.receiveMessage(at, w.bytes, false, borrowed)
	}
}

// receiveLinkFields handles all fields of a datagram except its messages.
func (l *leg) receiveLinkFields(at, waited time.Duration, d *datagram) {
	client := l.cfg.Client
	if client && (d.acks != nil || d.hasRequest || d.inputs != nil || d.mispredicted > 0) || !client && (d.state != nil || d.hasReply || d.status != nil) {
		l.discard(at, DropRole, len(d.state)+len(d.inputs))
	}
	a := Arrival{At: at} // One for all: a goroutine's stack keeps its largest size.
	if client {
		if d.hasReply {
			l.receiveTime([4]time.Duration{d.reply[0], d.reply[1], d.reply[2], at - waited})
		}
		if d.state != nil {
			a.Kind, a.State = State, d.state
			l.push(&a, len(d.state))
		}
		if d.status != nil {
			a.Kind, a.State, a.Status = InputsTold, nil, d.status
			l.push(&a, 0)
		}
		return
	}
	if d.inputs != nil {
		a.Kind, a.State = Inputs, d.inputs
		l.push(&a, len(d.inputs))
	}
	if d.hasRequest {
		l.answerTime(at-waited, d.requestSent)
	}
	if d.acks != nil {
		a.Kind, a.State, a.Acks = Acks, nil, l.ranges
		l.push(&a, 0)
	}
	if d.mispredicted > l.mispredicted { // Otherwise the report is repeated, or late.
		l.mispredicted = d.mispredicted
		a.Kind, a.State, a.Acks, a.Value = Mispredicted, nil, nil, d.mispredicted
		l.push(&a, 0)
	}
}

// receiveTime handles a time sample. It drops a sample with decreasing times, which would spoil the
// estimate.
func (l *leg) receiveTime(t [4]time.Duration) {
	if t[0] > t[3] || t[1] > t[2] {
		l.stats.Drop(DropTime, 1)
		return
	}
	l.push(&Arrival{Kind: TimeSample, At: t[3], T: t}, 0)
}

// answerTime queues the reply to a time request without waiting for a flush. If several requests
// arrive at once, only the last one is answered.
func (l *leg) answerTime(at, sent time.Duration) {
	l.mu.Lock()
	b := &l.box
	b.replyDue = b.cause == nil
	b.replyRequest, b.replyArrived = sent, at
	l.mu.Unlock()
	l.wakeDatagrams()
}

// push adds an arrival of this session to the inbox.
func (l *leg) push(a *Arrival, size int) bool {
	a.Session = l.session
	return l.cfg.Inbox.push(a, size)
}

// pushReliable adds an arrival that must not be lost: if it does not fit, the session ends.
func (l *leg) pushReliable(a *Arrival, size int) {
	if !l.push(a, size) {
		l.flooded()
	}
}

// flooded ends a session that sends more data than its limits or its inbox permit.
func (l *leg) flooded() { l.shutdown(CodeFlood, "too many messages at once") }

// discard counts discarded data of this size. Discarded data of a client counts like messages, so
// that a client cannot send unlimited amounts of it. discard reports false if the inbox has no room
// for the counted bytes.
func (l *leg) discard(at time.Duration, why Drop, size int) bool {
	l.stats.Drop(why, 1)
	return l.cfg.Client || l.cfg.Inbox.discard(l.session, at, 1+size/discardUnit)
}

// discardFrame is discard for data of the stream: if the inbox has no room, the session ends.
func (l *leg) discardFrame(at time.Duration, why Drop, size int) {
	if !l.discard(at, why, size) {
		l.flooded()
	}
}

// receiveMessage handles one message. If a message is malformed, only that message is dropped. The
// inbox counts the message before it is decoded. If borrowed is set, the driver uses the memory of
// b again.
func (l *leg) receiveMessage(at time.Duration, b []byte, reliable, borrowed bool) {
	if reliable {
		l.messages++
	}
	discard := func(why Drop) {
		if !l.discard(at, why, len(b)) && reliable {
			l.flooded()
		}
	}
	m, err := parseMessage(b)
	switch {
	case errors.Is(err, errStage):
		discard(DropStage)
		return
	case err != nil:
		discard(DropMessage)
		return
	}
	m.Reliable = reliable
	size, encoded := l.size(&m), len(m.Payload)
	if !l.takeDecoded(at, min(size, MaxDecoded), encoded, reliable) {
		return
	}
	if size > MaxDecoded {
		discard(DropDecoded)
		return
	}
	held, why, ok := l.cfg.Inbox.reserve(l.session, size)
	if !ok {
		if reliable {
			l.noRoom(at, &m, why)
		}
		return
	}
	method, decoded, err := l.decode(&m)
	if err != nil {
		l.session.Held(-held)
		discard(DropDecode)
		return
	}
	if decoded != nil {
		m.Payload = nil
	} else if borrowed {
		m.Payload = bytes.Clone(m.Payload)
	}
	l.cfg.Inbox.add(&Arrival{
		Kind: MessageArrived, Session: l.session, At: at, Message: m, Size: encoded, Number: l.number(reliable), Method: method, Decoded: decoded,
		Held: held,
	})
}

// noRoom tells the owner that a reliable message was dropped because the session has too many
// unprocessed bytes. If the inbox itself is full, the session ends.
func (l *leg) noRoom(at time.Duration, m *Message, why Drop) {
	if why != DropInboxHeld {
		l.flooded()
		return
	}
	envelope := Message{Method: m.Method, Stage: m.Stage, Call: m.Call, Reliable: true}
	l.pushReliable(&Arrival{Kind: NoRoom, At: at, Message: envelope, Size: len(m.Payload), Number: l.messages}, 0)
}

// size returns the number of bytes that a message counts: its decoded size, and at least its
// encoded size.
func (l *leg) size(m *Message) int {
	n := len(m.Payload)
	if l.cfg.Size != nil {
		n = max(n, l.cfg.Size(m))
	}
	return n + len(m.Text)
}

// number returns the number of the message being received, 0 if it is unreliable.
func (l *leg) number(reliable bool) uint64 {
	if !reliable {
		return 0
	}
	return l.messages
}

// decode calls Decode, and returns a panic in it as an error, because the bytes are from the peer.
func (l *leg) decode(m *Message) (method, v any, err error) {
	if l.cfg.Decode == nil {
		return nil, nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("transport: decoding method %d panicked: %v", m.Method, p)
		}
	}()
	return l.cfg.Decode(m)
}

// receiveStream handles the next bytes of the stream; b may be used again. An error ends the
// reading. It is a *handover if another session follows, and otherwise a *Closed: the peer has
// closed, or it has violated the protocol; then the session has begun to close itself.
func (l *leg) receiveStream(at time.Duration, b []byte) error {
	l.stats.StreamBytesIn.Add(uint64(len(b)))
	l.received.Add(uint64(len(b)))
	l.takeStream(at, len(b))
	in := b
	if len(l.stream) > 0 {
		l.stream = append(l.stream, b...)
		in = l.stream
	}
	for {
		frame, rest, err := CutFrame(in, l.maxFrame())
		if err != nil {
			return l.broken(err)
		}
		if frame == nil {
			break
		}
		in = rest
		if err := l.receiveFrame(at, frame); err != nil {
			if next, ok := err.(*handover); ok { //nolint:errorlint // A handover is never wrapped.
				next.rest = in
			}
			return err
		}
	}
	l.stream = append(l.stream[:0], in...)
	return nil
}

// broken closes a session after a protocol violation on its stream.
func (l *leg) broken(err error) error {
	l.stats.Drop(DropStream, 1)
	l.shutdown(CodeProtocol, err.Error())
	return &Closed{Code: CodeProtocol, Text: err.Error()}
}

// receiveFrame handles one frame.
func (l *leg) receiveFrame(at time.Duration, frame []byte) error {
	l.stats.FramesIn.Add(1)
	kind, body, err := parseFrame(frame)
	if err != nil {
		return l.broken(err)
	}
	if kind == frameClose {
		c, err := parseClose(body)
		if err != nil {
			return l.broken(err)
		}
		return &c
	}
	if l.deaf.Load() {
		return l.receiveHandover(kind, frame)
	}
	if !l.takeFrame(at) {
		return nil
	}
	l.lastArrival.Store(int64(at))
	switch {
	case kind == 0:
		l.discardFrame(at, DropFrame, len(frame))
	case kind == frameMessage:
		l.receiveMessage(at, body, true, true)
	case kind == frameEpoch && l.cfg.Client:
		e, err := parseEpoch(body)
		if err != nil {
			return l.broken(err)
		}
		l.pushReliable(&Arrival{Kind: EpochMoved, At: at, Epoch: e}, 0)
	case kind == frameOverload && l.cfg.Client:
		o, err := parseOverload(body)
		if err != nil {
			return l.broken(err)
		}
		l.pushReliable(&Arrival{Kind: OverloadChanged, At: at, Overload: o}, 0)
	case kind == frameTimeScale && l.cfg.Client:
		scale, err := parseTimeScale(body)
		if err != nil {
			return l.broken(err)
		}
		l.pushReliable(&Arrival{Kind: TimeScaleChanged, At: at, TimeScale: scale}, 0)
	case kind == frameState && l.cfg.Client:
		l.pushReliable(&Arrival{Kind: Record, At: at, State: bytes.Clone(body)}, len(body))
	case kind == frameStateApplied && !l.cfg.Client:
		return l.receiveCount(at, RecordsApplied, body)
	case kind == frameReceived:
		return l.receiveCount(at, Received, body)
	case kind == frameAccepted && l.cfg.Client:
		return l.receiveAccepted(at, body)
	case kind == frameClosing && l.cfg.Client:
		return l.receiveCount(at, WillClose, body)
	case kind == frameMove && !l.cfg.Client && l.cfg.AskMoves:
		return l.receiveTicket(at, MoveAsked, body)
	case kind == frameMoved && l.cfg.Client:
		return l.receiveMoved(at, body)
	case kind == frameDigest && !l.cfg.Client:
		return l.receiveDigest(at, body)
	default:
		return l.broken(fmt.Errorf("%w: unexpected kind %d", errFrame, kind))
	}
	return nil
}

// receiveAccepted handles the frame with which the server reports that the room has admitted the
// client.
func (l *leg) receiveAccepted(at time.Duration, body []byte) error {
	if err := l.receiveCount(at, Accepted, body); err != nil {
		return err
	}
	if !l.taken {
		l.taken = true
		close(l.accepted)
	}
	return nil
}

// receiveCount handles a frame that contains only a number.
func (l *leg) receiveCount(at time.Duration, k ArrivalKind, body []byte) error {
	n, err := parseCount(body)
	if err != nil {
		return l.broken(err)
	}
	l.pushReliable(&Arrival{Kind: k, At: at, Value: n}, 0)
	return nil
}

func (l *leg) receiveDigest(at time.Duration, body []byte) error {
	snapshots, full, err := parseDigest(body)
	if err != nil {
		return l.broken(err)
	}
	if snapshots == 0 && !full {
		l.discardFrame(at, DropFrame, len(body))
	}
	if snapshots > 0 {
		l.pushReliable(&Arrival{Kind: DigestRequest, At: at, Value: uint64(snapshots)}, 0)
	}
	if full {
		l.pushReliable(&Arrival{Kind: FullStateRequest, At: at}, 0)
	}
	return nil
}
