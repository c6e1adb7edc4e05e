package refdecoder

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// Value is the value of a leaf. It is never changed once it is made.
type Value struct {
	// Number is the value of an integer, a bool, an instant in nanoseconds, the id of a
	// reference, a float in steps as the number of steps, any other float as its bit pattern, and
	// a quaternion as its word. Signed values are in two's complement.
	Number uint64
	// Bytes is the content of a string, a byte string, a byte array or a protobuf message.
	Bytes []byte
	// Present is true for a protobuf message, and false for none.
	Present bool
	// Elements are the elements of a slice, map or set, each with its leaves.
	Elements [][]Value
}

// same compares two values of one leaf.
func same(a, b Value) bool {
	return a.Number == b.Number && a.Present == b.Present && bytes.Equal(a.Bytes, b.Bytes) &&
		slices.EqualFunc(a.Elements, b.Elements, func(a, b []Value) bool { return slices.EqualFunc(a, b, same) })
}

// Same compares the values of some leaves.
func Same(a, b []Value) bool { return slices.EqualFunc(a, b, same) }

// zero is the zero value of a leaf.
func (l *Leaf) zero() (v Value) {
	switch {
	case l.ranged():
		v.Number = uint64(min(max(0, l.Low), l.High))
	case l.Kind == kindArray8:
		v.Bytes = make([]byte, l.Max)
	}
	return v
}

// zeros are the zero values of some leaves.
func zeros(leaves []Leaf) (fields []Value) {
	for i := range leaves {
		fields = append(fields, leaves[i].zero())
	}
	return fields
}

// number returns a number as a value. It refuses a number that the field cannot hold.
func (l *Leaf) number(n uint64) Value {
	if !l.holds(n) {
		refuse("%s: a value beyond its field", l.Name)
	}
	return Value{Number: n}
}

func (l *Leaf) holds(n uint64) bool {
	within := func(low, high int64) bool { return int64(n) >= low && int64(n) <= high }
	switch l.Kind {
	case kindBool:
		return n <= 1
	case kindInt8:
		return within(math.MinInt8, math.MaxInt8)
	case kindInt16:
		return within(math.MinInt16, math.MaxInt16)
	case kindInt32:
		return within(math.MinInt32, math.MaxInt32)
	case kindUint8:
		return n <= math.MaxUint8
	case kindUint16:
		return n <= math.MaxUint16
	case kindUint32:
		return n <= math.MaxUint32
	case kindFloat32:
		if l.stepped() {
			return within(-math.MaxInt32, math.MaxInt32)
		}
		return n <= math.MaxUint32 && !math.IsNaN(float64(math.Float32frombits(uint32(n))))
	case kindFloat64:
		if l.stepped() {
			return within(-1<<53, 1<<53)
		}
		return !math.IsNaN(math.Float64frombits(n))
	case kindRange32, kindRange64:
		return within(l.Low, l.High)
	case kindQuat:
		return l.isWord(n)
	}
	return true // 64 bits hold any
}

// Float is the value of a float.
func (l *Leaf) Float(v Value) float64 {
	switch {
	case l.stepped():
		return float64(int64(v.Number)) * float64(l.Num) / float64(l.Den)
	case l.Kind == kindFloat32:
		return float64(math.Float32frombits(uint32(v.Number)))
	}
	return math.Float64frombits(v.Number)
}

// value reads a value in its whole form.
func (r *byteReader) value(l *Leaf) Value {
	switch l.Kind {
	case kindBool:
		return l.number(uint64(r.u8()))
	case kindInt8, kindInt16, kindInt32, kindInt64, kindInstant:
		return l.number(uint64(r.zigzag()))
	case kindUint8, kindUint16, kindUint32, kindUint64, kindRef:
		return l.number(r.uvarint())
	case kindFloat32, kindFloat64:
		switch {
		case l.stepped():
			return l.number(uint64(r.zigzag()))
		case l.Kind == kindFloat32:
			return l.number(uint64(r.u32()))
		}
		return l.number(r.u64())
	case kindRange32, kindRange64:
		n := r.uvarint()
		if n > uint64(l.High-l.Low) {
			refuse("%s: a value beyond its range", l.Name)
		}
		return l.number(uint64(l.Low) + n)
	case kindQuat:
		return l.number(littleEndian(r.bytes(l.wordSize())))
	case kindString, kindBytes:
		return Value{Bytes: r.bytes(l.limited(r.uvarint()))}
	case kindArray8:
		return Value{Bytes: r.bytes(l.Max)}
	case kindProto:
		n := r.uvarint()
		if n == 0 {
			return Value{}
		}
		return Value{Present: true, Bytes: r.bytes(l.limited(n - 1))}
	}
	return r.list(l)
}

func (l *Leaf) limited(n uint64) uint64 {
	if n > l.Max {
		refuse("%s: %d, over its limit", l.Name, n)
	}
	return n
}

// fields reads a plain struct: its leaves one after the other.
func (r *byteReader) fields(leaves []Leaf) []Value {
	fields := make([]Value, 0, len(leaves))
	for i := range leaves {
		fields = append(fields, r.value(&leaves[i]))
	}
	return fields
}

// AppendFields writes leaves in their whole form.
func AppendFields(b []byte, leaves []Leaf, fields []Value) []byte {
	for i := range leaves {
		b = appendValue(b, &leaves[i], fields[i])
	}
	return b
}

func appendValue(b []byte, l *Leaf, v Value) []byte {
	switch l.Kind {
	case kindBool:
		return append(b, byte(v.Number))
	case kindInt8, kindInt16, kindInt32, kindInt64, kindInstant:
		return binary.AppendUvarint(b, zigzag(int64(v.Number)))
	case kindUint8, kindUint16, kindUint32, kindUint64, kindRef:
		return binary.AppendUvarint(b, v.Number)
	case kindFloat32, kindFloat64:
		switch {
		case l.stepped():
			return binary.AppendUvarint(b, zigzag(int64(v.Number)))
		case l.Kind == kindFloat32:
			return binary.LittleEndian.AppendUint32(b, uint32(v.Number))
		}
		return binary.LittleEndian.AppendUint64(b, v.Number)
	case kindRange32, kindRange64:
		return binary.AppendUvarint(b, v.Number-uint64(l.Low))
	case kindQuat:
		return append(b, binary.LittleEndian.AppendUint64(nil, v.Number)[:l.wordSize()]...)
	case kindString, kindBytes:
		return append(binary.AppendUvarint(b, uint64(len(v.Bytes))), v.Bytes...)
	case kindArray8:
		return append(b, v.Bytes...)
	case kindProto:
		if !v.Present {
			return append(b, 0)
		}
		return append(binary.AppendUvarint(b, uint64(len(v.Bytes))+1), v.Bytes...)
	}
	b = binary.AppendUvarint(b, uint64(len(v.Elements)))
	for _, e := range v.Elements {
		b = AppendFields(b, l.Element, e)
	}
	return b
}

// ReadFields reads a plain struct that takes all of b.
func ReadFields(b []byte, leaves []Leaf) (fields []Value, err error) {
	defer caught(&err)
	r := byteReader{b}
	fields = r.fields(leaves)
	r.end()
	return fields, nil
}

func littleEndian(b []byte) (v uint64) {
	for i, b := range b {
		v |= uint64(b) << (8 * i)
	}
	return v
}
