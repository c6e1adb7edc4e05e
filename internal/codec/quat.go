package codec

import (
	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

// appendQuat writes the word in quat.Size bytes, the lowest first.
func appendQuat(dst []byte, w uint64, n int) []byte {
	for range quat.Size(n) {
		dst = append(dst, byte(w))
		w >>= 8
	}
	return dst
}

func readQuat(r *wire.Reader, n int) (w uint64) {
	for i, b := range r.Bytes(quat.Size(n)) {
		w |= uint64(b) << (8 * i)
	}
	return w
}

// appendQuatDiff writes the difference of the word from base. If both have the same largest
// component, it writes the differences of the other three, in zigzag form and interleaved bit by
// bit, so that three small numbers become one small number. Otherwise, or if it is shorter, it
// writes the word.
//
//	difference = interleaved << 1  |  word << 1 | 1
func appendQuatDiff(dst []byte, w, base uint64, n int) []byte {
	whole := w<<1 | 1
	if w == 0 || base == 0 || (w^base)>>(3*n) != 0 {
		return wire.AppendUvarint(dst, whole)
	}
	a, _ := quat.Split(w, n)
	b, _ := quat.Split(base, n)
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
	s, at := quat.Split(base, n)
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

// spread moves bit i of v, which has at most 21 bits, to bit 3·i. gather moves the bits back.
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
