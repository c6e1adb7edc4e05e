package codec

import (
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// A distance has about as many bits as the shift of its leaf, as the bend of its trend, and as the
// distances of its neighbours: the other components of a vector. From these follows the parameter
// of its code:
//
//	distance = rice(zigzag, k) | len(zigzag)     the latter if its size is anybody's guess
//
// Of a float without a step no distance takes more than the float and one bit:
//
//	distance = 0 (rice | len) | 1 float          the shorter one

// expected is what the neighbours of a number let expect of it.
type expected struct {
	run   uint16 // of the leaf before
	sizes [2]int // of the last two distances in this run, in bits; -1 is none
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

// magnitude is |v| of a two's complement number. It has no branch, because a processor cannot guess
// which way that would go.
func magnitude(v uint64) uint64 {
	sign := uint64(int64(v) >> 63)
	return (v ^ sign) - sign
}

// parameter is that of the Rice code of a distance, or false if its size is anybody's guess. The
// weights are those with which many kinds of motion took the fewest bits.
func (x *expected) parameter(a aim) (k uint, ok bool) {
	near, v, u := max(x.sizes[0], x.sizes[1]), int(a.size), int(a.bend)
	switch {
	case near < 0 && !a.moving:
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

// floatBits is how long a float is.
func (l *leaf) floatBits() int {
	if l.kind == Float32 {
		return 32
	}
	return 64
}

// putFloat writes a float that is expected at a place of its line.
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
