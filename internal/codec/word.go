package codec

import (
	"errors"
	"math"
	"strconv"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

// Instant is a point in game time. The codec also recognises a struct in which the only named field
// is an unexported Instant.
type Instant struct{ At time.Duration }

// ErrRange is the error for a value outside the range of its field, including NaN.
var ErrRange = errors.New("codec: value out of the range of its field")

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// load reads the word of l from the struct at v, in wire precision; clamped is 1 if the value was
// changed to fit (NaN, infinity, or outside the range of steps).
func (l *leaf) load(v unsafe.Pointer) (w uint64, clamped int) {
	q := unsafe.Add(v, l.off)
	switch l.kind {
	case Bool:
		return b2u(*(*bool)(q)), 0
	case Int8:
		return uint64(int64(*(*int8)(q))), 0
	case Int16:
		return uint64(int64(*(*int16)(q))), 0
	case Int32:
		return uint64(int64(*(*int32)(q))), 0
	case Int64:
		return uint64(*(*int64)(q)), 0
	case Int:
		return uint64(int64(*(*int)(q))), 0
	case Uint8:
		return uint64(*(*uint8)(q)), 0
	case Uint16:
		return uint64(*(*uint16)(q)), 0
	case Uint32:
		return uint64(*(*uint32)(q)), 0
	case Uint64:
		return *(*uint64)(q), 0
	case Uint:
		return uint64(*(*uint)(q)), 0
	case Float32:
		f := *(*float32)(q)
		if f != f {
			return 0, 1
		}
		return uint64(math.Float32bits(f)), 0
	case Float64:
		f := *(*float64)(q)
		if f != f {
			return 0, 1
		}
		return math.Float64bits(f), 0
	case Quant32, Range32:
		return l.steps(float64(*(*float32)(q)))
	case Quant64, Range64:
		return l.steps(*(*float64)(q))
	case Quat:
		return quat.Pack((*[4]float32)(q), l.max)
	case RefKind:
		return (*Ref)(q).ID, 0
	case InstantKind:
		return uint64((*Instant)(q).At), 0
	default:
		panic("codec: load of a kind that is no word: " + l.kind.String())
	}
}

// steps rounds f to a whole number of steps. It uses two operations with one rounding each, and no
// sum after a product, so that the result is the same with and without fused multiply-add.
func (l *leaf) steps(f float64) (uint64, int) {
	s := f * l.den
	if l.num != 1 {
		s /= l.num
	}
	s = math.RoundToEven(s)
	switch {
	case s >= l.least && s <= l.most:
		return uint64(int64(s)), 0
	case s > l.most:
		return uint64(int64(l.most)), 1
	case s < l.least:
		return uint64(int64(l.least)), 1
	default: // NaN
		return l.zero(), 1
	}
}

// zero returns the word for a missing value and for NaN: 0, or the value in its range that is
// nearest to 0.
func (l *leaf) zero() uint64 {
	if l.kind.ranged() {
		return uint64(int64(min(max(0, l.least), l.most)))
	}
	return 0
}

// store writes the word into the struct at v. The word has passed check.
func (l *leaf) store(v unsafe.Pointer, w uint64) {
	q := unsafe.Add(v, l.off)
	switch l.kind {
	case Bool:
		*(*bool)(q) = w != 0
	case Int8, Uint8:
		*(*uint8)(q) = uint8(w)
	case Int16, Uint16:
		*(*uint16)(q) = uint16(w)
	case Int32, Uint32, Float32:
		*(*uint32)(q) = uint32(w)
	case Int64, Uint64, Float64, RefKind, InstantKind:
		*(*uint64)(q) = w
	case Int, Uint:
		*(*uint)(q) = uint(w)
	case Quant32, Range32:
		*(*float32)(q) = float32(l.value(float64(int64(w))))
	case Quant64, Range64:
		*(*float64)(q) = l.value(float64(int64(w)))
	case Quat:
		quat.Unpack((*[4]float32)(q), w, l.max)
	default:
		panic("codec: store of a kind that is no word: " + l.kind.String())
	}
}

// value converts a number of steps to a value. It multiplies by the unit of the leaf if that is
// exact, because a division takes longer than all other operations on a number.
func (l *leaf) value(steps float64) float64 {
	if l.unit != 0 {
		return steps * l.unit
	}
	return steps * l.num / l.den
}

// interval returns the smallest word that the field can hold, and the distance from it to the
// largest word.
func (l *leaf) interval() (low, span uint64) {
	signed := func(bits int) (uint64, uint64) { return ^uint64(0) << (bits - 1), 1<<bits - 1 }
	switch l.kind {
	case Bool:
		return 0, 1
	case Int8:
		return signed(8)
	case Int16:
		return signed(16)
	case Int32:
		return signed(32)
	case Int:
		return signed(strconv.IntSize)
	case Uint8:
		return 0, math.MaxUint8
	case Uint16:
		return 0, math.MaxUint16
	case Uint32, Float32:
		return 0, math.MaxUint32
	case Uint:
		return 0, math.MaxUint
	case Quant32, Quant64, Range32, Range64:
		return uint64(int64(l.least)), uint64(int64(l.most - l.least))
	case Quat:
		return 0, 1<<(3*l.max+2) - 1
	default:
		return 0, math.MaxUint64
	}
}

// check reports whether the field can hold the word.
func (l *leaf) check(w uint64) bool {
	if w-l.low > l.span {
		return false
	}
	switch l.kind {
	case Float32:
		f := math.Float32frombits(uint32(w))
		return f == f
	case Float64:
		f := math.Float64frombits(w)
		return f == f
	case Quat:
		return quat.Sound(w, l.max)
	default:
		return true
	}
}

// appendWord writes the whole word, in the form of messages and full records.
func (l *leaf) appendWord(dst []byte, w uint64) []byte {
	switch l.kind {
	case Bool:
		return append(dst, byte(w))
	case Int8, Int16, Int32, Int64, Int, Quant32, Quant64, InstantKind:
		return wire.AppendZigzag(dst, int64(w))
	case Uint8, Uint16, Uint32, Uint64, Uint, RefKind:
		return wire.AppendUvarint(dst, w)
	case Range32, Range64:
		return wire.AppendUvarint(dst, w-l.low)
	case Quat:
		return appendQuat(dst, w, l.max)
	case Float32:
		return wire.AppendUint32(dst, uint32(w))
	case Float64:
		return wire.AppendUint64(dst, w)
	default:
		panic("codec: no whole form for " + l.kind.String())
	}
}

func (l *leaf) readWord(r *wire.Reader) uint64 {
	var w uint64
	switch l.kind {
	case Bool:
		w = uint64(r.Byte())
	case Int8, Int16, Int32, Int64, Int, Quant32, Quant64, InstantKind:
		w = uint64(r.Zigzag())
	case Uint8, Uint16, Uint32, Uint64, Uint, RefKind:
		w = r.Uvarint()
	case Range32, Range64:
		w = l.low + r.Uvarint()
	case Quat:
		w = readQuat(r, l.max)
	case Float32:
		w = uint64(r.Uint32())
	case Float64:
		w = r.Uint64()
	}
	if !l.check(w) {
		r.Fail(ErrRange)
		return 0
	}
	return w
}

// appendDiff writes the difference of w from base; the two differ. The value of a bool is therefore
// implied, and takes no bytes. The difference of floats is the distance of their bit patterns,
// which is small for near values.
func (l *leaf) appendDiff(dst []byte, w, base uint64) []byte {
	switch l.kind {
	case Bool:
		return dst
	case Float32:
		return wire.AppendZigzag(dst, int64(int32(uint32(w)-uint32(base))))
	case Quat:
		return appendQuatDiff(dst, w, base, l.max)
	default:
		return wire.AppendZigzag(dst, int64(w-base))
	}
}

func (l *leaf) readDiff(r *wire.Reader, base uint64) uint64 {
	var w uint64
	switch l.kind {
	case Bool:
		w = base ^ 1
	case Float32:
		d := r.Zigzag()
		if d != int64(int32(d)) {
			r.Fail(ErrRange)
			return 0
		}
		w = uint64(uint32(base) + uint32(d))
	case Quat:
		w = readQuatDiff(r, base, l.max)
	default:
		w = base + uint64(r.Zigzag())
	}
	if !l.check(w) {
		r.Fail(ErrRange)
		return 0
	}
	return w
}
