package codec

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// The distance of a leaf is its value minus the expected value (aim.go). Its number of bits is
// estimated from the extrapolated change (aim.size), from the change of the trend (aim.bend), and
// from the distances of the previous leaves in its run, such as the other components of a vector.
// The estimate gives k, the parameter of its Rice code:
//
//	distance = rice(zigzag, k) | len(zigzag)     the latter without an estimate
//
// The distance of a float without a step takes at most one bit more than the float:
//
//	distance = 0 (rice | len) | 1 float          the shorter one

// expected holds the sizes of neighbouring distances, from which the next size is estimated.
type expected struct {
	run   uint16 // run of the previous leaf
	sizes [2]int // sizes of the last two distances in this run, in bits; -1: none
}

func (x *expected) next(run uint16) {
	if x.run != run {
		x.run, x.sizes = run, [2]int{-1, -1}
	}
}

func (x *expected) note(distance uint64) {
	x.sizes[1] = x.sizes[0]
	x.sizes[0] = bits.Len64(magnitude(distance))
}

// magnitude returns |v| of a two's complement number. It has no branch, because a processor could
// not predict the branch.
func magnitude(v uint64) uint64 {
	sign := uint64(int64(v) >> 63)
	return (v ^ sign) - sign
}

// parameter returns the parameter of the Rice code of a distance, or false without an estimate. The
// weights are those that needed the fewest bits in tests with many kinds of motion.
func (x *expected) parameter(a aim) (k uint, ok bool) {
	near, v, u := max(x.sizes[0], x.sizes[1]), int(a.size), int(a.bend)
	switch {
	case near < 0 && a.floor == noTrend:
		return 0, false
	case near < 0 && v == 0 && u <= 0:
		return 0, true
	case v == 0 && u <= 0:
		k = uint(max(0, near-1))
	case u < 0 && near < 0:
		k = uint(max(int(a.floor), v/2+2))
	case u < 0:
		k = uint(max(int(a.floor), (3*v+4*near+6)/8))
	case near < 0:
		k = uint(7*v+6*u+14) / 16
	default:
		k = uint(5*v+4*u+7*near+7) / 16
	}
	return min(k, wire.MaxRice), true
}

func (x *expected) put(w *wire.BitWriter, distance uint64, a aim) {
	if k, ok := x.parameter(a); ok {
		w.PutRice(wire.Zigzag(int64(distance)), k)
	} else {
		w.PutLen(wire.Zigzag(int64(distance)))
	}
	x.note(distance)
}

func (x *expected) take(r *wire.BitReader, a aim) (distance uint64) {
	if k, ok := x.parameter(a); ok {
		distance = uint64(wire.Unzigzag(r.Rice(k)))
	} else {
		distance = uint64(wire.Unzigzag(r.Len()))
	}
	x.note(distance)
	return distance
}

// floatBits returns the number of bits of a float.
func (l *leaf) floatBits() int {
	if l.kind == Float32 {
		return 32
	}
	return 64
}

// putFloat writes the float with the word to, which is expected at a place on its line: the
// distance, or the bits of the float if they are fewer.
func (l *leaf) putFloat(w *wire.BitWriter, x *expected, to, place uint64, a aim) {
	distance := l.line(to) - place
	v, size := wire.Zigzag(int64(distance)), l.floatBits()
	k, ok := x.parameter(a)
	if ok && wire.RiceBits(v, k) <= size {
		w.Put(0, 1)
		w.PutRice(v, k)
	} else if !ok && wire.LenBits(v) <= size {
		w.Put(0, 1)
		w.PutLen(v)
	} else {
		w.Put(1, 1)
		w.Put(to, uint(size))
	}
	x.note(distance)
}

func (l *leaf) takeFloat(r *wire.BitReader, x *expected, place uint64, a aim) (w uint64) {
	if !r.Bit() {
		return l.unline(place + x.take(r, a))
	}
	w = r.Take(uint(l.floatBits()))
	x.note(l.line(w) - place)
	return w
}
