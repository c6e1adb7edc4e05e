package codec

import (
	"math"

	"github.com/netloop/netloop/internal/wire"
)

// A quaternion is sent as its smallest three: of the four components of a unit quaternion the
// largest follows from the others, and as q and -q are one rotation it can be made positive. With n
// bits and M = 2^(n-1) - 1 the other three, which are within ±1/√2, are whole numbers of steps of
// 1/(√2·M):
//
//	word = largest:2 a:n b:n c:n  in that order from the top; a, b, c in the order of the
//	                              components without the largest, each as steps + M + 1, which
//	                              is never 0
//	word = 0                      four zeros: a rotation that was never set, or is not shown
//
// So a component of 0 remains 0, and the capture of a restored word is the same word, which
// requires a rule for components that are nearly equal: in whole numbers, with R = 2·M² - Σsteps²,
// the square of the largest one, no other is larger, and a component before it is half a step
// smaller.

// The bits of a component. With 3 the worst rotation is off by about 20 degrees, with 9 by a
// quarter of a degree; 20 is the precision of a float32 and the most that fits a word.
const (
	minQuatBits = 3
	maxQuatBits = 20
)

// quatSize returns the number of bytes of a whole quaternion.
func quatSize(n int) int { return (3*n + 2 + 7) / 8 }

// packQuat normalises the four floats and returns their word. A quaternion without a direction is
// zero.
func packQuat(q *[4]float32, n int) (w uint64, clamped int) {
	var norm, most float64
	at := 0
	for i, f := range q {
		c := float64(f)
		norm += c * c // The product is exact: fused or not, the sum is the same.
		if a := math.Abs(c); a > most {
			most, at = a, i
		}
	}
	switch {
	case norm == 0:
		return 0, 0
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return 0, 1
	}
	m := int64(1)<<(n-1) - 1
	scale := math.Sqrt2 / math.Sqrt(norm)
	if q[at] < 0 {
		scale = -scale
	}
	var s [3]int64
	for i, j := 0, 0; i < 4; i++ {
		if i != at {
			unit := float64(q[i]) * scale
			s[j] = int64(math.RoundToEven(unit * float64(m)))
			j++
		}
	}
	for i := settle(&s, at, m); i >= 0; i = settle(&s, at, m) {
		if s[i] > 0 { // Rounding made it as large as the largest.
			s[i]--
		} else {
			s[i]++
		}
	}
	w = uint64(at)
	for _, c := range s {
		w = w<<n | uint64(c+m+1)
	}
	return w, 0
}

// settle returns the index of a component that violates the rule on the largest, or -1.
func settle(s *[3]int64, at int, m int64) int {
	r := 2*m*m - s[0]*s[0] - s[1]*s[1] - s[2]*s[2]
	for i, c := range s {
		c = max(c, -c)
		if i < at && c*c+c >= r || c*c > r {
			return i
		}
	}
	return -1
}

// splitQuat splits a word that is not 0 into steps and the largest component's index.
func splitQuat(w uint64, n int) (s [3]int64, at int) {
	m, bits := int64(1)<<(n-1)-1, uint64(1)<<n-1
	for i := 2; i >= 0; i-- {
		s[i] = int64(w&bits) - m - 1
		w >>= n
	}
	return s, int(w)
}

// soundQuat reports whether packQuat could have made the word.
func soundQuat(w uint64, n int) bool {
	if w == 0 {
		return true
	}
	m := int64(1)<<(n-1) - 1
	s, at := splitQuat(w, n)
	return min(s[0], s[1], s[2]) >= -m && settle(&s, at, m) < 0
}

// unpackQuat converts a word into a unit quaternion.
func unpackQuat(q *[4]float32, w uint64, n int) {
	if w == 0 {
		*q = [4]float32{}
		return
	}
	m := int64(1)<<(n-1) - 1
	s, at := splitQuat(w, n)
	unit := math.Sqrt(float64(2 * m * m))
	for i, j := 0, 0; i < 4; i++ {
		if i != at {
			q[i] = float32(float64(s[j]) / unit)
			j++
		}
	}
	q[at] = float32(math.Sqrt(float64(2*m*m-s[0]*s[0]-s[1]*s[1]-s[2]*s[2])) / unit)
}

// appendQuat writes the word in quatSize bytes, the lowest first.
func appendQuat(dst []byte, w uint64, n int) []byte {
	for range quatSize(n) {
		dst = append(dst, byte(w))
		w >>= 8
	}
	return dst
}

func readQuat(r *wire.Reader, n int) (w uint64) {
	for i, b := range r.Bytes(quatSize(n)) {
		w |= uint64(b) << (8 * i)
	}
	return w
}

// appendQuatDiff writes the difference of the word from base: with the same largest component the
// differences of the others, zigzag and bit by bit interleaved, so that three small ones make one
// small number; otherwise, or if it is shorter, the word.
//
//	difference = interleaved << 1  |  word << 1 | 1
func appendQuatDiff(dst []byte, w, base uint64, n int) []byte {
	whole := w<<1 | 1
	if w == 0 || base == 0 || (w^base)>>(3*n) != 0 {
		return wire.AppendUvarint(dst, whole)
	}
	a, _ := splitQuat(w, n)
	b, _ := splitQuat(base, n)
	var mixed uint64
	for i := range a {
		mixed |= spread(wire.Zigzag(a[i]-b[i])) << i
	}
	return wire.AppendUvarint(dst, min(mixed<<1, whole))
}

func readQuatDiff(r *wire.Reader, base uint64, n int) uint64 {
	v := r.Uvarint()
	if v&1 != 0 {
		return v >> 1
	}
	if base == 0 {
		r.Fail(ErrRange)
		return 0
	}
	s, at := splitQuat(base, n)
	w, m := uint64(at), int64(1)<<(n-1)-1
	for i := range s {
		c := s[i] + wire.Unzigzag(gather(v>>1>>i))
		if c < -m || c > m {
			r.Fail(ErrRange)
			return 0
		}
		w = w<<n | uint64(c+m+1)
	}
	return w
}

// spread moves bit i of v, which has at most 21, to bit 3·i, and gather moves them back.
func spread(v uint64) (w uint64) {
	for i := range 21 {
		w |= v >> i & 1 << (3 * i)
	}
	return w
}

func gather(w uint64) (v uint64) {
	for i := range 21 {
		v |= w >> (3 * i) & 1 << i
	}
	return v
}
