package transport

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// ReceiveDatagram takes a datagram that arrived at a time. The session keeps b: nobody
// may write to it afterwards. Whatever is wrong with it is counted, and harms nothing else.
func (s *Session) ReceiveDatagram(at time.Duration, b []byte) {
	s.stats.DatagramsIn.Add(1)
	s.stats.DatagramBytesIn.Add(uint64(len(b)))
	if s.deaf.Load() {
		s.stats.Drop(DropInboxGone, 1)
		return
	}
	if len(b) > MaxDatagram {
		s.discard(at, DropDatagramTooLarge, len(b))
		return
	}
	d, err := parseDatagram(b)
	if err == nil && d.acks != nil {
		s.ranges, err = parseAcks(d.acks, s.ranges[:0])
	}
	if err != nil {
		s.discard(at, DropDatagram, len(b))
		return
	}
	if why, fresh := s.dup.check(d.number); !fresh {
		s.stats.Drop(why, 1)
		s.takeBeat(at)
		return
	}
	s.lastArrival.Store(int64(at))
	s.receiveLinkFields(at, &d)
	for w := walk(d.messages, &datagramMessages); w.next(); {
		s.receiveMessage(at, w.bytes, false)
	}
}

// receiveLinkFields takes what is in a datagram besides messages.
func (s *Session) receiveLinkFields(at time.Duration, d *datagram) {
	client := s.cfg.Client
	switch {
	case client && (d.acks != nil || d.hasRequest), !client && (d.state != nil || d.hasReply):
		s.discard(at, DropRole, len(d.state))
	case !client && d.acks == nil && !d.hasRequest && d.messages == nil:
		s.takeBeat(at)
	}
	if client {
		if d.hasReply {
			s.receiveTime([4]time.Duration{d.reply[0], d.reply[1], d.reply[2], at})
		}
		if d.state != nil {
			s.push(&Arrival{Kind: State, At: at, State: d.state}, len(d.state))
		}
		return
	}
	if d.hasRequest {
		s.answerTime(at, d.requestSent)
	}
	if d.acks != nil {
		s.push(&Arrival{Kind: Acks, At: at, Acks: s.ranges}, 0)
	}
}

// takeBeat takes a client's datagram with nothing new in it: a sign of life, or one that
// the network has doubled. What comes more often than either does is discarded.
func (s *Session) takeBeat(at time.Duration) {
	if at < s.nextBeat {
		s.discard(at, DropBeat, 0)
		return
	}
	s.nextBeat = at + beatPeriod
}

// receiveTime takes a time sample; one that runs backwards would poison the estimate.
func (s *Session) receiveTime(t [4]time.Duration) {
	if t[0] > t[3] || t[1] > t[2] {
		s.stats.Drop(DropTime, 1)
		return
	}
	s.push(&Arrival{Kind: TimeSample, At: t[3], T: t}, 0)
}

// answerTime queues the reply to a time request. It does not wait for a flush; of several
// requests at once the last is answered.
func (s *Session) answerTime(at, sent time.Duration) {
	s.mu.Lock()
	b := &s.box
	b.replyDue = b.cause == nil
	b.replyRequest, b.replyArrived = sent, at
	s.mu.Unlock()
	signal(s.wakeDatagrams)
}

// push adds an arrival of this session to the inbox.
func (s *Session) push(a *Arrival, size int) bool {
	a.Session = s
	return s.cfg.Inbox.push(a, size)
}

// pushReliable adds an arrival that may not be lost: without room for it the session ends.
func (s *Session) pushReliable(a *Arrival, size int) {
	if !s.push(a, size) {
		s.flooded()
	}
}

// flooded ends a session whose stream brings more than its inbox takes.
func (s *Session) flooded() { s.Shutdown(CodeFlood, "too many messages at once") }

// discard counts something of this size that means nothing. Of a client it is accounted
// for like messages, so that no client can send without a bound what costs it nothing.
// It reports false without room for it.
func (s *Session) discard(at time.Duration, why Drop, size int) bool {
	s.stats.Drop(why, 1)
	return s.cfg.Client || s.cfg.Inbox.discard(s, at, 1+size/discardUnit)
}

// discardFrame is discard for what came over the stream, where nothing may be lost.
func (s *Session) discardFrame(at time.Duration, why Drop, size int) {
	if !s.discard(at, why, size) {
		s.flooded()
	}
}

// receiveMessage takes one message. What is wrong with it costs only itself, and its
// place in the inbox is taken before it is decoded.
func (s *Session) receiveMessage(at time.Duration, b []byte, reliable bool) {
	discard := func(why Drop) {
		if !s.discard(at, why, len(b)) && reliable {
			s.flooded()
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
	size := len(m.Payload)
	if !s.cfg.Inbox.reserve(s, size) {
		if reliable {
			s.flooded()
		}
		return
	}
	method, decoded, err := s.decode(&m)
	if err != nil {
		discard(DropDecode)
		return
	}
	if decoded != nil {
		m.Payload = nil
	} else if reliable {
		m.Payload = bytes.Clone(m.Payload) // The reader uses its memory again.
	}
	s.cfg.Inbox.add(&Arrival{Kind: MessageArrived, Session: s, At: at, Message: m, Size: size, Method: method, Decoded: decoded})
}

// decode calls Decode, and takes a panic in it for an error: the bytes come from the peer.
func (s *Session) decode(m *Message) (method, v any, err error) {
	if s.cfg.Decode == nil {
		return nil, nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("transport: decoding method %d panicked: %v", m.Method, p)
		}
	}()
	return s.cfg.Decode(m)
}

// ReceiveStream takes the next bytes of the stream; b may be used again. An error, always
// a *Closed, ends the reading: the peer has closed, or it has broken the protocol, in
// which case the session has begun to close by itself.
func (s *Session) ReceiveStream(at time.Duration, b []byte) error {
	s.stats.StreamBytesIn.Add(uint64(len(b)))
	in := b
	if len(s.stream) > 0 {
		s.stream = append(s.stream, b...)
		in = s.stream
	}
	for {
		frame, rest, err := CutFrame(in, MaxFrame)
		if err != nil {
			return s.broken(err)
		}
		if frame == nil {
			break
		}
		in = rest
		if err := s.receiveFrame(at, frame); err != nil {
			return err
		}
	}
	s.stream = append(s.stream[:0], in...)
	return nil
}

// broken closes a session whose stream makes no sense any more.
func (s *Session) broken(err error) error {
	s.stats.Drop(DropStream, 1)
	s.Shutdown(CodeProtocol, err.Error())
	return &Closed{Code: CodeProtocol, Text: err.Error()}
}

// receiveFrame takes one frame.
func (s *Session) receiveFrame(at time.Duration, frame []byte) error {
	s.stats.FramesIn.Add(1)
	kind, body, err := parseFrame(frame)
	if err != nil {
		return s.broken(err)
	}
	if kind == frameClose {
		c, err := parseClose(body)
		if err != nil {
			return s.broken(err)
		}
		return &c
	}
	if s.deaf.Load() {
		s.stats.Drop(DropInboxGone, 1)
		return nil
	}
	s.lastArrival.Store(int64(at))
	switch {
	case kind == 0:
		s.discardFrame(at, DropFrame, len(frame))
	case kind == frameMessage:
		s.receiveMessage(at, body, true)
	case kind == frameEpoch && s.cfg.Client:
		e, err := parseEpoch(body)
		if err != nil {
			return s.broken(err)
		}
		s.pushReliable(&Arrival{Kind: EpochMoved, At: at, Epoch: e}, 0)
	case kind == frameOverload && s.cfg.Client:
		o, err := parseOverload(body)
		if err != nil {
			return s.broken(err)
		}
		s.pushReliable(&Arrival{Kind: OverloadChanged, At: at, Overload: o}, 0)
	case kind == frameTimeScale && s.cfg.Client:
		scale, err := parseTimeScale(body)
		if err != nil {
			return s.broken(err)
		}
		s.pushReliable(&Arrival{Kind: TimeScaleChanged, At: at, TimeScale: scale}, 0)
	case kind == frameState && s.cfg.Client:
		s.pushReliable(&Arrival{Kind: Record, At: at, State: bytes.Clone(body)}, len(body))
	case kind == frameStateApplied && !s.cfg.Client:
		record, err := parseApplied(body)
		if err != nil {
			return s.broken(err)
		}
		s.pushReliable(&Arrival{Kind: RecordsApplied, At: at, Value: record}, 0)
	case kind == frameDigest && !s.cfg.Client:
		return s.receiveDigest(at, body)
	default:
		return s.broken(fmt.Errorf("%w: kind %d is not for this side, or not now", errFrame, kind))
	}
	return nil
}

func (s *Session) receiveDigest(at time.Duration, body []byte) error {
	snapshots, full, err := parseDigest(body)
	if err != nil {
		return s.broken(err)
	}
	if snapshots == 0 && !full {
		s.discardFrame(at, DropFrame, len(body))
	}
	if snapshots > 0 {
		s.pushReliable(&Arrival{Kind: DigestRequest, At: at, Value: uint64(snapshots)}, 0)
	}
	if full {
		s.pushReliable(&Arrival{Kind: FullStateRequest, At: at}, 0)
	}
	return nil
}
