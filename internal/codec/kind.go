package codec

import (
	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

// Kind is the type of one leaf, or of a Type. The numbers are internal: the wire has other numbers.
type Kind uint8

// Invalid is the zero Kind, which is not a kind.
const Invalid Kind = 0

// The kinds up to Instant fit one 64-bit word each; those after it are blobs: bytes in their
// wire form.
const (
	Bool Kind = 1 + iota
	Int8
	Int16
	Int32
	Int64
	Int
	Uint8
	Uint16
	Uint32
	Uint64
	Uint
	Float32
	Float64
	Quant32 // float32 as a count of steps
	Quant64 // float64 as a count of steps
	Range32 // float32 as a count of steps above the least of its range
	Range64 // float64 as a count of steps above the least of its range
	Quat    // four float32 as the smallest three
	RefKind
	InstantKind

	String
	Bytes
	ByteArray
	Slice
	Map   // also a set, whose entries have only keys
	Proto // with an Encoding (encoding.go)

	endOfKinds // the guard test counts up to here

	// Kinds of a Type only: a plan contains their parts instead.
	Array
	Struct
)

// onWire returns the kind on the wire.
func (k Kind) onWire() Kind {
	switch k {
	case Int:
		return Int64
	case Uint:
		return Uint64
	default:
		return k
	}
}

// Blob reports whether values of this kind are stored as bytes and not as one word.
func (k Kind) Blob() bool { return k >= String }

func (k Kind) String() string {
	switch k {
	case Bool:
		return "bool"
	case Int8:
		return "int8"
	case Int16:
		return "int16"
	case Int32:
		return "int32"
	case Int64, Int:
		return "int64"
	case Uint8:
		return "uint8"
	case Uint16:
		return "uint16"
	case Uint32:
		return "uint32"
	case Uint64, Uint:
		return "uint64"
	case Float32, Quant32, Range32:
		return "float32"
	case Float64, Quant64, Range64:
		return "float64"
	case Quat:
		return "quat"
	case RefKind:
		return "ref"
	case InstantKind:
		return "instant"
	case String:
		return "string"
	case Bytes:
		return "bytes"
	case ByteArray:
		return "bytearray"
	case Slice:
		return "slice"
	case Map:
		return "map"
	case Proto:
		return "proto"
	case Array:
		return "array"
	case Struct:
		return "struct"
	case Invalid, endOfKinds:
	}
	return "invalid"
}

// Steps reports whether a value of kind k is a count of steps.
func (k Kind) Steps() bool { return k >= Quant32 && k <= Range64 }

// keys reports whether values of kind k can be keys: they are equal only if they are the same on
// the wire, and both sides order them alike.
func (k Kind) keys() bool { return k >= Int8 && k <= Uint || k == RefKind || k == String }

// plain reports whether deltas compute directly with a word of kind k. Words of floats are not
// plain: leaf.line converts them first.
func (k Kind) plain() bool { return k >= Int8 && k <= Uint || k.Steps() || k == InstantKind }

// list reports whether a value of kind k consists of elements that change separately.
func (k Kind) list() bool { return k == Slice || k == Map }

// ranged reports whether a value of kind k is a count of steps with its own range.
func (k Kind) ranged() bool { return k == Range32 || k == Range64 }

// maxSteps returns the largest number of steps from 0 of kind k: the range of an int32, and of the
// exact integers of a float64.
func (k Kind) maxSteps() int64 {
	if k == Quant64 || k == Range64 {
		return 1 << 53
	}
	return 1<<31 - 1
}

// maxWire returns the largest number of bytes of a word in a message or full record, and maxDiff
// the largest number of bytes of its difference.
func (l *leaf) maxWire() int {
	switch l.kind {
	case Range32, Range64:
		return wire.UvarintLen(l.span)
	case Quat:
		return quat.Size(l.max)
	case Bool:
		return 1
	case Int8, Uint8:
		return 2
	case Int16, Uint16:
		return 3
	case Int32, Uint32, Quant32:
		return 5
	case Float32:
		return 4
	case Float64, Quant64:
		return 8
	default:
		return 10
	}
}

func (l *leaf) maxDiff() int {
	switch l.kind {
	case Range32, Range64:
		return wire.UvarintLen(2 * l.span)
	case Quat:
		return wire.UvarintLen(1<<(3*l.max+3) - 1)
	case Bool:
		return 0
	case Float32:
		return 5
	case Float64:
		return 10
	default: // one bit more than the value itself, which still fits the varint
		return l.maxWire()
	}
}

// minWire returns the smallest number of bytes of a value, so that a reader rejects a count of
// elements that the remaining bytes cannot hold.
func (l *leaf) minWire() int {
	switch l.kind {
	case Float32:
		return 4
	case Float64:
		return 8
	case ByteArray:
		return l.max
	case Quat:
		return quat.Size(l.max)
	default:
		return 1
	}
}
