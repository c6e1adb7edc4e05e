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
	errTwice = errors.New("transport: a field that may come once came twice")
	errAcks  = errors.New("transport: malformed acknowledgement ranges")
	errTime  = errors.New("transport: a time is out of range")
	errStage = errors.New("transport: unknown stage")
	errText  = errors.New("transport: text is too long or not UTF-8")
	errFrame = errors.New("transport: malformed frame")
)

// fields walks the fields of a message:
//
//	for f := (fields{b: b}); f.next(); {
//		if f.err != nil { return f.err }
//		switch { case f.num == 1 && f.typ == protowire.VarintType: … f.value … }
//	}
//
// Like every protobuf reader it takes a known number of another wire type for an unknown
// field, and skips it.
type fields struct {
	b     []byte
	num   protowire.Number
	typ   protowire.Type
	value uint64 // of a varint
	bytes []byte // of a length-delimited field
	err   error
}

// next steps to the next field. It reports true once more for an error.
func (f *fields) next() bool {
	if len(f.b) == 0 || f.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(f.b)
	if n < 0 || num > protowire.MaxValidNumber { // ConsumeTag lets larger numbers through.
		f.err = errWire
		return true
	}
	f.num, f.typ = num, typ
	f.b = f.b[n:]
	switch typ {
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(f.b)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(f.b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, f.b)
	}
	if n < 0 {
		f.err = errWire
		return true
	}
	f.b = f.b[n:]
	return true
}

// datagram is a datagram whose envelope is sound. Its slices point into the bytes.
type datagram struct {
	number      uint64
	acks        []byte // nil: none
	state       []byte // nil: none
	messages    []byte // where the first message begins, to walk again
	hasRequest  bool
	requestSent time.Duration
	hasReply    bool
	reply       [3]time.Duration
}

// parseDatagram checks a whole envelope. Messages are only delimited: what is in one is
// nobody's trouble but its own.
func parseDatagram(b []byte) (d datagram, err error) {
	var seen uint8 // by field number
	for f := (fields{b: b}); ; {
		before := f.b
		if !f.next() {
			break
		}
		if f.err != nil {
			return d, f.err
		}
		if f.num > fieldMessages || f.typ != datagramTypes[f.num] {
			continue
		}
		if f.num == fieldMessages {
			if d.messages == nil {
				d.messages = before
			}
			continue
		}
		if seen&(1<<f.num) != 0 {
			return d, errTwice
		}
		seen |= 1 << f.num
		if err := d.take(&f); err != nil {
			return d, err
		}
	}
	if d.number == 0 {
		return d, errFrame
	}
	return d, nil
}

// datagramTypes is the wire type of each field; that of number 0 is one that no field has.
var datagramTypes = [...]protowire.Type{
	0:                protowire.EndGroupType,
	fieldNumber:      protowire.VarintType,
	fieldAcks:        protowire.BytesType,
	fieldTimeRequest: protowire.BytesType,
	fieldTimeReply:   protowire.BytesType,
	fieldState:       protowire.BytesType,
	fieldMessages:    protowire.BytesType,
}

// take takes one field of the envelope.
func (d *datagram) take(f *fields) (err error) {
	switch f.num {
	case fieldNumber:
		d.number = f.value
	case fieldAcks:
		d.acks = f.bytes
	case fieldState:
		d.state = f.bytes
	case fieldTimeRequest:
		var t [3]time.Duration
		t, err = parseTimes(f.bytes)
		d.hasRequest, d.requestSent = true, t[0]
	case fieldTimeReply:
		d.hasReply = true
		d.reply, err = parseTimes(f.bytes)
	}
	return err
}

// parseTimes reads a TimeRequest or a TimeReply: fields 1 to 3 are times.
func parseTimes(b []byte) (t [3]time.Duration, err error) {
	for f := (fields{b: b}); f.next(); {
		if f.err != nil {
			return t, f.err
		}
		if f.num > 3 || f.typ != protowire.VarintType {
			continue
		}
		if t[f.num-1], err = duration(f.value); err != nil {
			return t, err
		}
	}
	return t, nil
}

func duration(v uint64) (time.Duration, error) {
	if v > math.MaxInt64 {
		return 0, errTime
	}
	return time.Duration(v), nil
}

// parseMessage reads a Message. Payload points into b.
func parseMessage(b []byte) (m Message, err error) {
	for f := (fields{b: b}); f.next(); {
		if f.err != nil {
			return m, f.err
		}
		switch {
		case f.num == 2 && f.typ == protowire.VarintType:
			stage := int32(f.value)
			if stage < 0 || stage%stageStep != 0 || stage/stageStep > numStages {
				return m, errStage
			}
			m.Stage = uint8(stage / stageStep)
		case f.num < 6 && f.typ == protowire.VarintType:
			m.take(f.num, f.value)
		case f.num == 6 && f.typ == protowire.BytesType:
			if m.Text, err = text(f.bytes); err != nil {
				return m, err
			}
		case f.num == 7 && f.typ == protowire.BytesType:
			m.Payload = f.bytes
		case f.num == 8 && f.typ == protowire.VarintType:
			m.Tick = f.value
		}
	}
	return m, nil
}

// take takes one of the numbers of a message.
func (m *Message) take(num protowire.Number, v uint64) {
	switch num {
	case 1:
		m.Method = uint32(v)
	case 3:
		m.Call = v
	case 4:
		m.Reply = protowire.DecodeBool(v)
	case 5:
		m.Code = uint32(v)
	}
}

func text(b []byte) (string, error) {
	if len(b) > MaxText || !utf8.Valid(b) {
		return "", errText
	}
	return string(b), nil
}

// parseFrame finds the only known field of a frame; 0 when this version knows none of them.
func parseFrame(b []byte) (kind protowire.Number, body []byte, err error) {
	for f := (fields{b: b}); f.next(); {
		if f.err != nil {
			return 0, nil, f.err
		}
		if f.num >= frameUnknown || f.typ != protowire.BytesType {
			continue
		}
		if kind != 0 {
			return 0, nil, errTwice
		}
		kind, body = f.num, f.bytes
	}
	return kind, body, nil
}

func parseEpoch(b []byte) (e Epoch, err error) {
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return e, f.err
		case f.num == 1 && f.typ == protowire.VarintType:
			e.Tick = f.value
		case f.num == 2 && f.typ == protowire.VarintType:
			if e.At, err = duration(f.value); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

func parseDigest(b []byte) (snapshots uint32, full bool, err error) {
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return 0, false, f.err
		case f.num == 1 && f.typ == protowire.VarintType:
			snapshots = uint32(f.value)
		case f.num == 2 && f.typ == protowire.VarintType:
			full = protowire.DecodeBool(f.value)
		}
	}
	return snapshots, full, nil
}

func parseApplied(b []byte) (record uint64, err error) {
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return 0, f.err
		case f.num == 1 && f.typ == protowire.VarintType:
			record = f.value
		}
	}
	return record, nil
}

func parseClose(b []byte) (c Closed, err error) {
	c.Remote = true
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return c, f.err
		case f.num == 1 && f.typ == protowire.VarintType:
			c.Code = Code(uint32(f.value))
		case f.num == 2 && f.typ == protowire.BytesType:
			if c.Text, err = text(f.bytes); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// parseTimeScale reads a line of scaled time. Whether its speed is one is for package
// loop to say.
func parseTimeScale(b []byte) (t TimeScale, err error) {
	to := [...]*uint64{&t.Num, &t.Den, &t.Tick, nil, &t.Fraction}
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return t, f.err
		case f.num > 5 || f.typ != protowire.VarintType:
		case f.num == 4:
			if t.At, err = duration(f.value); err != nil {
				return t, err
			}
		default:
			*to[f.num-1] = f.value
		}
	}
	return t, nil
}

// parseOverload reads an unset level as none, and one that this version does not know as
// the highest that fits.
func parseOverload(b []byte) (o Overload, err error) {
	for f := (fields{b: b}); f.next(); {
		switch {
		case f.err != nil:
			return o, f.err
		case f.num == 1 && f.typ == protowire.VarintType:
			o.Level = uint8(min(max(f.value, 1)-1, math.MaxUint8))
		case f.num == 2 && f.typ == protowire.VarintType:
			o.SendEvery = uint32(min(f.value, math.MaxUint32))
		}
	}
	return o, nil
}
