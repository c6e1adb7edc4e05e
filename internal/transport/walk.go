package transport

import (
	"errors"
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	errWire  = errors.New("transport: malformed protobuf")
	errTwice = errors.New("transport: field is repeated")
	errTime  = errors.New("transport: time is out of range")
	errText  = errors.New("transport: text is too long or not UTF-8")
)

// layout holds the wire type of each known field of a message, at the index of the field's number.
type layout [frameUnknown]fieldType

// fieldType is the wire type of a known field, with flags for strict checks. The zero value is an
// unknown field.
type fieldType uint8

const (
	varint = 1 + fieldType(protowire.VarintType)
	sized  = 1 + fieldType(protowire.BytesType) // length-delimited

	once   fieldType = 1 << 6 // The field may occur once only.
	strict fieldType = 1 << 7 // The field must have this wire type.
)

// walker iterates over the known fields of one message, in their order on the wire:
//
//	w := walk(b, &epochFields)
//	for w.next() {
//		switch w.num { case 1: e.Tick = w.value … }
//	}
//	return e, w.err
//
// The walker skips unknown fields. Like every protobuf reader it treats a known number with another
// wire type as an unknown field. The first error ends the walk, whether the walker found it or the
// loop, which sets err.
type walker struct {
	rest  []byte
	known *layout
	seen  uint16 // fields with the flag once that have occurred, one bit per number

	num   protowire.Number
	field []byte // the message from this field on
	value uint64 // of a varint
	bytes []byte // of a length-delimited field; points into the message
	err   error
}

func walk(b []byte, known *layout) walker { return walker{rest: b, known: known} }

// next steps to the next known field. It reports false at the end of the message, and after
// an error.
func (w *walker) next() bool {
	for len(w.rest) > 0 && w.err == nil {
		num, typ, head := protowire.ConsumeTag(w.rest)
		if head < 0 || num > protowire.MaxValidNumber { // ConsumeTag accepts larger numbers.
			w.err = errWire
			break
		}
		body := w.rest[head:]
		var n int
		switch typ {
		case protowire.VarintType:
			w.value, n = protowire.ConsumeVarint(body)
		case protowire.BytesType:
			w.bytes, n = protowire.ConsumeBytes(body)
		default:
			n = protowire.ConsumeFieldValue(num, typ, body)
		}
		if n < 0 {
			w.err = errWire
			break
		}
		w.num, w.field, w.rest = num, w.rest, body[n:]
		if w.takes(typ) {
			return true
		}
	}
	return false
}

// takes reports whether the layout has the field, and sets err for a violation of its flags.
func (w *walker) takes(typ protowire.Type) bool {
	if int(w.num) >= len(w.known) {
		return false
	}
	t := w.known[w.num]
	if t&^(once|strict) != 1+fieldType(typ) {
		if t&strict != 0 {
			w.err = errWire
		}
		return false
	}
	if t&once != 0 {
		if w.seen&(1<<w.num) != 0 {
			w.err = errTwice
		}
		w.seen |= 1 << w.num
	}
	return w.err == nil
}

// time returns the field's varint as a time.
func (w *walker) time() time.Duration {
	if w.value > math.MaxInt64 {
		w.err = errTime
		return 0
	}
	return time.Duration(w.value)
}

// text returns the field's bytes as a text for people.
func (w *walker) text() string {
	if len(w.bytes) > MaxText || !utf8.Valid(w.bytes) {
		w.err = errText
		return ""
	}
	return string(w.bytes)
}
