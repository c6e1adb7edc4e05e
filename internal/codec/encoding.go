package codec

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// Encoding encodes the values of a pointer type that has its own encoding: protobuf messages. The
// codec does not depend on protobuf; the caller of Compile passes the functions. Each takes the
// address of the field, which contains a pointer.
//
//	value = 0 for nil  |  length + 1, then the bytes
type Encoding struct {
	// Name is the type's name on both sides.
	Name string
	// Append appends the bytes of the value, which is not nil: the same bytes for equal values.
	Append func(dst []byte, field unsafe.Pointer) ([]byte, error)
	// Check returns an error if Store would reject the bytes.
	Check func(b []byte) error
	// Store makes the pointer refer to a new value that shares no memory with the bytes.
	Store func(field unsafe.Pointer, b []byte) error
	// JSON returns the value of valid bytes as JSON, for AppendJSON. If it is nil, the value is a
	// base64 string.
	JSON func(b []byte) ([]byte, error)
	// Heap estimates the number of bytes that Store allocates for valid bytes. It uses their
	// contents and not their number, because few bytes may decode to a large value.
	Heap func(b []byte) int
	// Clone makes the pointer, which is not nil, refer to a deep copy.
	Clone func(field unsafe.Pointer)
}

// Encodings finds the encoding of a type, or returns nil.
type Encodings func(reflect.Type) *Encoding

// ErrEncoding is the error of a message whose bytes Encoding.Check or Encoding.Store rejects.
var ErrEncoding = errors.New("codec: bytes that are no message of the type of their field")

// appendProto writes the message of the field at q. A message that is too long, or that
// Encoding.Append rejects, is written as nil and counted in rep.
func (l *leaf) appendProto(dst []byte, q unsafe.Pointer, rep *report) []byte {
	if *(*unsafe.Pointer)(q) == nil {
		return append(dst, 0)
	}
	start := len(dst)
	out, err := l.encoding.Append(dst, q)
	n := len(out) - start
	if err != nil || n > l.max {
		if rep.cut(l); rep.over == l && err != nil {
			rep.err = err
		}
		return append(dst, 0)
	}
	var head [10]byte
	size := len(wire.AppendUvarint(head[:0], uint64(n)+1))
	out = append(out, head[:size]...)
	copy(out[start+size:], out[start:start+n])
	copy(out[start:], head[:size])
	return out
}

// proto reads the bytes of a message. there is false for nil and after an error.
func (l *leaf) proto(r *wire.Reader) (b []byte, there bool) {
	n := r.Uvarint()
	if n > uint64(l.max)+1 {
		r.Fail(wire.ErrLimit)
		return nil, false
	}
	if n == 0 {
		return nil, false
	}
	b = r.Bytes(int(n - 1))
	return b, r.Err() == nil
}

func (l *leaf) skipProto(r *wire.Reader) {
	if b, there := l.proto(r); there && !l.absent && l.encoding.Check(b) != nil {
		r.Fail(ErrEncoding)
	}
}

func (l *leaf) storeProto(q unsafe.Pointer, r *wire.Reader) {
	b, there := l.proto(r)
	if !there {
		*(*unsafe.Pointer)(q) = nil
	} else if l.encoding.Store(q, b) != nil {
		*(*unsafe.Pointer)(q) = nil
		r.Fail(ErrEncoding)
	}
}
