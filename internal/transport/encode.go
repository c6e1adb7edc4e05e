package transport

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The envelopes are appended by hand, because they are on the hot path: no reflection and no
// allocation. Tests compare each of them with proto.Marshal. The layouts are those of
// proto/netloop/v1:
//
//	Datagram   1 number  2 acks  3 time_request  4 time_reply  5 state  6 messages…  7 padding
//	           8 inputs  9 input_status  10 mispredicted
//	Frame      4 message | 5 epoch | 6 digest_request | 7 close | 8 overload | 11 state |
//	           12 state_applied | 13 time_scale | 14 accepted | 15 messages_received |
//	           17 move | 18 moved, behind a varint length
//	Message    1 method  2 stage  3 call  4 reply  5 code  6 text  7 payload  8 tick

// Field numbers of Datagram.
const (
	fieldNumber protowire.Number = 1 + iota
	fieldAcks
	fieldTimeRequest
	fieldTimeReply
	fieldState
	fieldMessages
	fieldPadding
	fieldInputs
	fieldInputStatus
	fieldMispredicted
)

// Field numbers of Frame.
const (
	frameHello protowire.Number = 1 + iota
	frameWelcome
	frameRefused
	frameMessage
	frameEpoch
	frameDigest
	frameClose
	frameOverload
	frameSchemaPart
	frameSchemaAccepted
	frameState
	frameStateApplied
	frameTimeScale
	frameAccepted
	frameReceived
	frameClosing
	frameMove
	frameMoved
	frameUnknown // the first number that this version does not define
)

const (
	// numStages is the highest stage of a message.
	numStages = 7
	// stageStep is the distance between two stages on the wire.
	stageStep = 10
	// maxMessageHead bounds the tags and lengths around an encoded message.
	maxMessageHead = 8
	// maxFrameMessage bounds an encoded Message so that its frame fits.
	maxFrameMessage = MaxFrame - maxMessageHead
	// maxDatagramMessage bounds an encoded Message so that it fits a datagram after the number
	// alone.
	maxDatagramMessage = MaxDatagram - 11 - maxMessageHead
)

// sizeField is the size of a varint field with a tag of one byte; the value 0 is left out.
func sizeField(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

func sizeBytesField(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(n)
}

func appendField(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.VarintType)
	return protowire.AppendVarint(dst, v)
}

// appendHead appends the tag and the length of a field of n bytes.
func appendHead(dst []byte, num protowire.Number, n int) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(n))
}

func nanos(d time.Duration) uint64 { return uint64(max(d, 0)) }

// enum returns an enum as protobuf encodes it: sign-extended.
func enum(v uint32) uint64 { return uint64(int64(int32(v))) }

// sizeMessage is the size of the encoded Message.
func sizeMessage(m *Message) int {
	n := sizeField(uint64(m.Method)) + sizeField(stageStep*uint64(m.Stage)) + sizeField(m.Call)
	if m.Reply {
		n += 2
	}
	return n + sizeField(enum(m.Code)) + sizeBytesField(len(m.Text)) + sizeBytesField(len(m.Payload)) + sizeField(m.Tick)
}

func appendMessage(dst []byte, m *Message) []byte {
	dst = appendField(dst, 1, uint64(m.Method))
	dst = appendField(dst, 2, stageStep*uint64(m.Stage))
	dst = appendField(dst, 3, m.Call)
	if m.Reply {
		dst = appendField(dst, 4, 1)
	}
	dst = appendField(dst, 5, enum(m.Code))
	if len(m.Text) > 0 {
		dst = append(appendHead(dst, 6, len(m.Text)), m.Text...)
	}
	if len(m.Payload) > 0 {
		dst = append(appendHead(dst, 7, len(m.Payload)), m.Payload...)
	}
	return appendField(dst, 8, m.Tick)
}

// appendDatagramMessage appends a message of the given size as a field of a datagram.
func appendDatagramMessage(dst []byte, m *Message, size int) []byte {
	return appendMessage(appendHead(dst, fieldMessages, size), m)
}

// appendFrameHead appends a frame's length and the head of its only field.
func appendFrameHead(dst []byte, num protowire.Number, size int) []byte {
	dst = protowire.AppendVarint(dst, uint64(protowire.SizeTag(num)+protowire.SizeBytes(size)))
	return appendHead(dst, num, size)
}

// appendMessageFrame appends a message of the given size as a frame.
func appendMessageFrame(dst []byte, m *Message, size int) []byte {
	return appendMessage(appendFrameHead(dst, frameMessage, size), m)
}

func appendEpochFrame(dst []byte, e Epoch) []byte {
	at := nanos(e.At)
	dst = appendFrameHead(dst, frameEpoch, sizeField(e.Tick)+sizeField(at))
	return appendField(appendField(dst, 1, e.Tick), 2, at)
}

func appendOverloadFrame(dst []byte, o Overload) []byte {
	level := uint64(o.Level) + 1 // 0 means unset.
	dst = appendFrameHead(dst, frameOverload, sizeField(level)+sizeField(uint64(o.SendEvery)))
	return appendField(appendField(dst, 1, level), 2, uint64(o.SendEvery))
}

func appendTimeScaleFrame(dst []byte, t TimeScale) []byte {
	fields := [...]uint64{t.Num, t.Den, t.Tick, nanos(t.At), t.Fraction}
	size := 0
	for _, v := range fields {
		size += sizeField(v)
	}
	dst = appendFrameHead(dst, frameTimeScale, size)
	for i, v := range fields {
		dst = appendField(dst, protowire.Number(1+i), v)
	}
	return dst
}

func appendStateFrame(dst, record []byte) []byte {
	return append(appendFrameHead(dst, frameState, len(record)), record...)
}

// appendCountFrame appends a frame that contains only a number.
func appendCountFrame(dst []byte, num protowire.Number, n uint64) []byte {
	return appendField(appendFrameHead(dst, num, sizeField(n)), 1, n)
}

func appendDigestFrame(dst []byte, snapshots uint32, full bool) []byte {
	var f uint64
	if full {
		f = 1
	}
	dst = appendFrameHead(dst, frameDigest, sizeField(uint64(snapshots))+sizeField(f))
	return appendField(appendField(dst, 1, uint64(snapshots)), 2, f)
}

func appendCloseFrame(dst []byte, c Closed) []byte {
	code := enum(uint32(c.Code))
	dst = appendFrameHead(dst, frameClose, sizeField(code)+sizeBytesField(len(c.Text)))
	dst = appendField(dst, 1, code)
	if len(c.Text) > 0 {
		dst = append(appendHead(dst, 2, len(c.Text)), c.Text...)
	}
	return dst
}

// appendPadding pads a datagram that begins at base to a size, or slightly beyond.
func appendPadding(dst []byte, base, size int) []byte {
	if n := size - (len(dst) - base); n > 0 {
		dst = append(appendHead(dst, fieldPadding, n), make([]byte, n)...)
	}
	return dst
}

func appendNumber(dst []byte, n uint64) []byte { return appendField(dst, fieldNumber, n) }

// CutNumber returns the number of a datagram of [Link.SendDatagrams], and its other fields.
func CutNumber(datagram []byte) (number uint64, rest []byte) {
	number, n := protowire.ConsumeVarint(datagram[1:])
	return number, datagram[1+n:]
}

// PutNumber returns a datagram that consists of a number and the fields in b[at:]. at must be at
// least 11, the largest size of a number: PutNumber writes the number into the bytes before at.
func PutNumber(b []byte, at int, number uint64) (datagram []byte) {
	start := at - sizeField(number)
	appendNumber(b[:start], number)
	return b[start:]
}

func appendTimeRequest(dst []byte, sent time.Duration) []byte {
	dst = appendHead(dst, fieldTimeRequest, sizeField(nanos(sent)))
	return appendField(dst, 1, nanos(sent))
}

func appendTimeReply(dst []byte, request, received, sent time.Duration) []byte {
	size := sizeField(nanos(request)) + sizeField(nanos(received)) + sizeField(nanos(sent))
	dst = appendHead(dst, fieldTimeReply, size)
	dst = appendField(dst, 1, nanos(request))
	dst = appendField(dst, 2, nanos(received))
	return appendField(dst, 3, nanos(sent))
}

func appendInputs(dst, packet []byte) []byte {
	if len(packet) == 0 {
		return dst
	}
	return append(appendHead(dst, fieldInputs, len(packet)), packet...)
}

// maxInputStatus is the length of the longest encoded field. A duration in µs has at most 9 bytes.
const maxInputStatus = 2 + 11 + 4 + 9 + 11 + 2

func appendInputStatus(dst []byte, s InputStatus) []byte {
	early := protowire.EncodeZigZag(s.Early.Microseconds())
	size := sizeField(s.Newest) + sizeField(uint64(s.Before)) + sizeField(early) + sizeField(s.Missed) + sizeField(uint64(s.Generation))
	dst = appendHead(dst, fieldInputStatus, size)
	dst = appendField(dst, 1, s.Newest)
	dst = appendField(dst, 2, uint64(s.Before))
	dst = appendField(dst, 3, early)
	dst = appendField(dst, 4, s.Missed)
	return appendField(dst, 5, uint64(s.Generation))
}

// maxMispredicted is the length of the longest encoded field: a tag, and a number below 2⁵³.
const maxMispredicted = 1 + 8

func appendState(dst, packet []byte) []byte {
	if len(packet) == 0 {
		return dst
	}
	return append(appendHead(dst, fieldState, len(packet)), packet...)
}
