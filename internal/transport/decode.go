package transport

import (
	"errors"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	errStage = errors.New("transport: unknown stage")
	errFrame = errors.New("transport: malformed frame")
)

// The fields that this version knows. Their numbers and types are those of proto/netloop/v1, as in
// encode.go.
var (
	datagramFields = layout{
		fieldNumber: varint | once, fieldAcks: sized | once, fieldTimeRequest: sized | once,
		fieldTimeReply: sized | once, fieldState: sized | once, fieldMessages: sized,
		fieldInputs: sized | once, fieldInputStatus: sized | once, fieldMispredicted: varint | once,
	}
	datagramMessages = layout{fieldMessages: sized}
	frameFields      = layout{
		frameHello: sized, frameWelcome: sized, frameRefused: sized, frameMessage: sized, frameEpoch: sized,
		frameDigest: sized, frameClose: sized, frameOverload: sized, frameSchemaPart: sized,
		frameSchemaAccepted: sized, frameState: sized, frameStateApplied: sized, frameTimeScale: sized,
		frameAccepted: sized, frameReceived: sized, frameClosing: sized, frameMove: sized, frameMoved: sized,
	}
	messageFields = layout{1: varint, 2: varint, 3: varint, 4: varint, 5: varint, 6: sized, 7: sized, 8: varint}
	acksFields    = layout{1: varint, 2: sized | once | strict} // Runs are packed, in one field.
	timesFields   = layout{1: varint, 2: varint, 3: varint}
	epochFields   = layout{1: varint, 2: varint}
	digestFields  = layout{1: varint, 2: varint}
	countFields   = layout{1: varint}
	moveFields    = layout{1: sized}
	movedFields   = layout{1: sized, 2: sized | once}
	// The fields of a Destination and of an Address.
	destinationFields = layout{1: sized}
	addressFields     = layout{1: sized, 2: sized, 3: sized, 4: sized}
	closeFields       = layout{1: varint, 2: sized}
	timeScaleFields   = layout{1: varint, 2: varint, 3: varint, 4: varint, 5: varint}
	overloadFields    = layout{1: varint, 2: varint}
	statusFields      = layout{1: varint, 2: varint, 3: varint, 4: varint, 5: varint}
)

// datagram is a datagram with a valid envelope. Its slices point into the bytes.
type datagram struct {
	number      uint64
	acks        []byte // nil: none
	state       []byte // nil: none
	messages    []byte // the datagram from its first message on; nil: none
	hasRequest  bool
	requestSent time.Duration
	hasReply    bool
	reply       [3]time.Duration
	inputs      []byte // nil: none
	status      *InputStatus

	mispredicted uint64 // 0: none
}

// parseDatagram checks a whole envelope. Messages are only delimited: a malformed message does not
// invalidate the others.
func parseDatagram(b []byte) (d datagram, err error) {
	w := walk(b, &datagramFields)
	for w.next() {
		switch w.num {
		case fieldNumber:
			d.number = w.value
		case fieldAcks:
			d.acks = w.bytes
		case fieldTimeRequest:
			var t [3]time.Duration
			t, w.err = parseTimes(w.bytes)
			d.hasRequest, d.requestSent = true, t[0]
		case fieldTimeReply:
			d.hasReply = true
			d.reply, w.err = parseTimes(w.bytes)
		case fieldState:
			d.state = w.bytes
		case fieldMessages:
			if d.messages == nil {
				d.messages = w.field
			}
		case fieldInputs:
			d.inputs = w.bytes
		case fieldInputStatus:
			d.status, w.err = parseInputStatus(w.bytes)
		case fieldMispredicted:
			d.mispredicted = min(w.value, maxCount)
		}
	}
	if w.err == nil && d.number == 0 {
		return d, errFrame
	}
	return d, w.err
}

// maxCount bounds the mispredictions of a report, so that JSON and a page show the exact number.
const maxCount = 1<<53 - 1

// parseTimes reads a TimeRequest or a TimeReply: fields 1 to 3 are times.
func parseTimes(b []byte) (t [3]time.Duration, err error) {
	w := walk(b, &timesFields)
	for w.next() {
		t[w.num-1] = w.time()
	}
	return t, w.err
}

// parseInputStatus reads an InputStatus.
func parseInputStatus(b []byte) (*InputStatus, error) {
	s := new(InputStatus)
	w := walk(b, &statusFields)
	for w.next() {
		switch w.num {
		case 1:
			s.Newest = w.value
		case 2:
			s.Before = uint16(w.value)
		case 3:
			us := protowire.DecodeZigZag(w.value)
			s.Early = time.Duration(min(max(us, -maxEarly), maxEarly)) * time.Microsecond
		case 4:
			s.Missed = w.value
		case 5:
			s.Generation = uint8(w.value % 4)
		}
	}
	return s, w.err
}

// maxEarly bounds, in microseconds, the reported earliness of an input: no lead is as long.
const maxEarly = int64(time.Hour / time.Microsecond)

// parseMessage reads a Message. Payload points into b.
func parseMessage(b []byte) (m Message, err error) {
	w := walk(b, &messageFields)
	for w.next() {
		switch w.num {
		case 1:
			m.Method = uint32(w.value)
		case 2:
			m.Stage, w.err = parseStage(int32(w.value))
		case 3:
			m.Call = w.value
		case 4:
			m.Reply = protowire.DecodeBool(w.value)
		case 5:
			m.Code = uint32(w.value)
		case 6:
			m.Text = w.text()
		case 7:
			m.Payload = w.bytes
		case 8:
			m.Tick = w.value
		}
	}
	return m, w.err
}

func parseStage(v int32) (uint8, error) {
	if v < 0 || v%stageStep != 0 || v/stageStep > numStages {
		return 0, errStage
	}
	return uint8(v / stageStep), nil
}

// parseFrame finds the only known field of a frame. kind is 0 if this version knows none.
func parseFrame(b []byte) (kind protowire.Number, body []byte, err error) {
	w := walk(b, &frameFields)
	for w.next() {
		if kind != 0 {
			w.err = errTwice
		}
		kind, body = w.num, w.bytes
	}
	return kind, body, w.err
}

func parseEpoch(b []byte) (e Epoch, err error) {
	w := walk(b, &epochFields)
	for w.next() {
		switch w.num {
		case 1:
			e.Tick = w.value
		case 2:
			e.At = w.time()
		}
	}
	return e, w.err
}

func parseDigest(b []byte) (snapshots uint32, full bool, err error) {
	w := walk(b, &digestFields)
	for w.next() {
		switch w.num {
		case 1:
			snapshots = uint32(w.value)
		case 2:
			full = protowire.DecodeBool(w.value)
		}
	}
	return snapshots, full, w.err
}

// parseCount reads a frame that contains only a number.
func parseCount(b []byte) (n uint64, err error) {
	w := walk(b, &countFields)
	for w.next() {
		n = w.value
	}
	return n, w.err
}

// parseMove reads a frame that contains only a ticket.
func parseMove(b []byte) (ticket string, err error) {
	w := walk(b, &moveFields)
	for w.next() {
		ticket = w.text()
	}
	if w.err == nil && (ticket == "" || len(ticket) > maxTicketText) {
		w.err = errFrame
	}
	return ticket, w.err
}

// parseMoved reads a frame moved; to is nil if the room is on this server.
func parseMoved(b []byte) (ticket string, to Destination, err error) {
	if ticket, err = parseMove(b); err != nil {
		return "", nil, err
	}
	w := walk(b, &movedFields)
	for w.next() {
		if w.num == 2 {
			to, w.err = parseDestination(w.bytes)
		}
	}
	return ticket, to, w.err
}

func parseClose(b []byte) (c Closed, err error) {
	c.Remote = true
	w := walk(b, &closeFields)
	for w.next() {
		switch w.num {
		case 1:
			c.Code = Code(uint32(w.value))
		case 2:
			c.Text = w.text()
		}
	}
	return c, w.err
}

// parseTimeScale reads a scale of scaled time. Package loop checks whether the speed is valid.
func parseTimeScale(b []byte) (t TimeScale, err error) {
	w := walk(b, &timeScaleFields)
	for w.next() {
		switch w.num {
		case 1:
			t.Num = w.value
		case 2:
			t.Den = w.value
		case 3:
			t.Tick = w.value
		case 4:
			t.At = w.time()
		case 5:
			t.Fraction = w.value
		}
	}
	return t, w.err
}

// parseOverload reads an unset level as none, and a level unknown to this version as the highest
// that fits.
func parseOverload(b []byte) (o Overload, err error) {
	w := walk(b, &overloadFields)
	for w.next() {
		switch w.num {
		case 1:
			o.Level = uint8(min(max(w.value, 1)-1, math.MaxUint8))
		case 2:
			o.SendEvery = uint32(min(w.value, math.MaxUint32))
		}
	}
	return o, w.err
}
