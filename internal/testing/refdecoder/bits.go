package refdecoder

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Conventions of docs/WIRE.md: numbers in whole bytes.

type byteReader struct{ b []byte }

func (r *byteReader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		refuse("an end in the middle")
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *byteReader) u8() byte { return r.bytes(1)[0] }

func (r *byteReader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }

func (r *byteReader) u64() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

func (r *byteReader) uvarint() (v uint64) {
	for i := range 10 {
		b := r.u8()
		if i == 9 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v
		}
	}
	refuse("a uvarint of more than 64 bits")
	return 0
}

func (r *byteReader) zigzag() int64 { return unzigzag(r.uvarint()) }

func (r *byteReader) end() {
	if len(r.b) > 0 {
		refuse("bytes after the end")
	}
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

// Numbers of bits.

type bitReader struct {
	bits   []bool
	at     int
	trends int // number of moving leaves, for tests of coverage
}

func newBitReader(b []byte, padding int) *bitReader {
	r := new(bitReader)
	for _, b := range b {
		for i := range 8 {
			r.bits = append(r.bits, b>>i&1 == 1)
		}
	}
	if padding > len(r.bits) {
		refuse("more padding than bits")
	}
	r.bits = r.bits[:len(r.bits)-padding]
	return r
}

func (r *bitReader) left() int { return len(r.bits) - r.at }

func (r *bitReader) bit() bool {
	if r.left() == 0 {
		refuse("bits end in the middle")
	}
	r.at++
	return r.bits[r.at-1]
}

// take is v:k.
func (r *bitReader) take(k int) (v uint64) {
	for i := range k {
		if r.bit() {
			v |= 1 << i
		}
	}
	return v
}

func (r *bitReader) gamma() uint64 {
	n := 1
	for !r.bit() {
		n++
	}
	if n > 64 {
		refuse("a gamma of more than 64 bits")
	}
	return 1<<(n-1) | r.take(n-1)
}

func (r *bitReader) len() uint64 {
	switch n := r.gamma() - 1; {
	case n == 0:
		return 0
	case n > 64:
		refuse("a len of more than 64 bits")
		return 0
	default:
		return 1<<(n-1) | r.take(int(n-1))
	}
}

func (r *bitReader) rice(k int) uint64 {
	for q := range uint64(3) {
		if !r.bit() {
			return q<<k | r.take(k)
		}
	}
	high := r.gamma() - 1
	if high > math.MaxUint64>>k {
		refuse("a rice of more than 64 bits")
	}
	w := high<<k | r.take(k)
	v, carry := bits.Add64(w, 3<<k, 0)
	if carry != 0 {
		refuse("a rice of more than 64 bits")
	}
	return v
}

func (r *bitReader) wholeBytes(n uint64) []byte {
	if n > uint64(r.left())/8 {
		refuse("bits end in the middle")
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.take(8))
	}
	return b
}
