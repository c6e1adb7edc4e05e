package wire

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// Bits are written and read lowest first: the first bit of a stream is bit 0 of its first byte, and
// the first bit of a number is its lowest.
//
//	Len     a number of unknown size: the number of its bits, n, then the n-1 below its highest
//	Rice    a number of about k bits: its quotient by 2^k in unary, then k bits; from a quotient
//	        of riceUnary on the remainder, with the number of its bits above k
//
//	len(v)     = gamma(n + 1) v:n-1           n = number of bits of v, 0 for 0
//	gamma(v)   = 0^(n-1) 1 v:n-1              n = number of bits of v, which is not 0
//	rice(v, k) = 1^q 0 v:k                    q = v >> k, below riceUnary
//	           | 1^riceUnary gamma((w >> k) + 1) w:k   w = v - (riceUnary << k)

// riceUnary is the quotient from which a Rice code continues as an exponential code. A plain Rice
// code of a number that is larger than expected could have any length.
const riceUnary = 3

// MaxRice limits the parameter of a Rice code.
const MaxRice = 40

// MaxLenBits returns the largest number of bits that PutLen writes for a number of n bits.
func MaxLenBits(n int) int { return 2*bits.Len(uint(n+1)) - 1 + max(n-1, 0) }

// MaxRiceBits returns the largest number of bits that PutRice writes for a number of n bits, for
// any parameter up to MaxRice.
func MaxRiceBits(n int) int { return max(2*n+1, MaxRice+1) + riceUnary }

// LenBits returns the number of bits that PutLen writes for v.
func LenBits(v uint64) int { return MaxLenBits(bits.Len64(v)) }

// RiceBits returns how many bits PutRice takes.
func RiceBits(v uint64, k uint) int {
	if q := v >> k; q < riceUnary {
		return int(uint(q) + 1 + k)
	}
	v -= riceUnary << k
	return riceUnary + 2*bits.Len64(v>>k+1) - 1 + int(k)
}

// BitWriter appends bits to bytes. The zero value is empty. The output is in Bytes after Flush.
type BitWriter struct {
	b   []byte
	acc uint64
	n   uint // bits in acc, below 64

	Scratch []byte // for the caller: values first encoded as bytes
}

// Reset drops the contents and starts to append to b.
func (w *BitWriter) Reset(b []byte) { w.b, w.acc, w.n = b, 0, 0 }

// Len returns the number of bits written, flushed or not.
func (w *BitWriter) Len() int { return 8*len(w.b) + int(w.n) }

// Put writes the lowest n bits of v, at most 64; the others must be 0.
func (w *BitWriter) Put(v uint64, n uint) {
	w.acc |= v << w.n
	if w.n += n; w.n >= 64 {
		w.b = binary.LittleEndian.AppendUint64(w.b, w.acc)
		w.n -= 64
		w.acc = v >> (n - w.n)
	}
}

// Bit writes one bit.
func (w *BitWriter) Bit(set bool) {
	var v uint64
	if set {
		v = 1
	}
	w.Put(v, 1)
}

// Flush fills the last byte with zeros and returns the number of these bits.
func (w *BitWriter) Flush() (padding int) {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.b = append(w.b, byte(w.acc))
		w.acc >>= 8
		padding = int(8-w.n) & 7
	}
	return padding
}

// Bytes returns the output up to the last Flush.
func (w *BitWriter) Bytes() []byte { return w.b }

// Mark is a position to rewind to.
type Mark struct {
	len int
	acc uint64
	n   uint
}

// Mark returns the position of the next bit.
func (w *BitWriter) Mark() Mark { return Mark{len(w.b), w.acc, w.n} }

// Rewind drops the bits written after the mark.
func (w *BitWriter) Rewind(m Mark) { w.b, w.acc, w.n = w.b[:m.len], m.acc, m.n }

// PutLen writes a number of unknown size.
func (w *BitWriter) PutLen(v uint64) {
	n := uint(bits.Len64(v))
	code, size := gamma(n + 1)
	rest := max(n, 1) - 1
	v &^= 1 << rest
	if size+rest <= 64 {
		w.Put(code|v<<size, size+rest)
		return
	}
	w.Put(code, size)
	w.Put(v, rest)
}

// gamma returns the code of a number from 1 to 2^32 - 1.
func gamma(v uint) (code uint64, size uint) {
	n := uint(bits.Len(v)) - 1
	return (uint64(v)<<1&^(2<<n) | 1) << n, 2*n + 1
}

// PutRice writes a number of about k bits.
func (w *BitWriter) PutRice(v uint64, k uint) {
	if q := v >> k; q < riceUnary {
		w.Put(v&(1<<k-1)<<(q+1)|(1<<q-1), uint(q)+1+k)
		return
	}
	v -= riceUnary << k
	low := v & (1<<k - 1)
	if high := v>>k + 1; high < 1<<32 {
		code, size := gamma(uint(high))
		if code, size = code<<riceUnary|(1<<riceUnary-1), size+riceUnary; size+k <= 64 {
			w.Put(code|low<<size, size+k)
			return
		}
	}
	w.Put(1<<riceUnary-1, riceUnary)
	w.putGamma(v>>k + 1)
	w.Put(low, k)
}

// putGamma writes a number that is not 0.
func (w *BitWriter) putGamma(v uint64) {
	n := uint(bits.Len64(v)) - 1
	w.Put(0, n)
	w.Put(v<<1&^(2<<n)|1, n+1)
}

// PutBytes writes whole bytes.
func (w *BitWriter) PutBytes(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		w.Put(binary.LittleEndian.Uint64(b), 64)
	}
	for _, c := range b {
		w.Put(uint64(c), 8)
	}
}

// PutBits writes the first n bits of the bytes.
func (w *BitWriter) PutBits(b []byte, n int) {
	if words := n >> 6; words > 0 {
		i := len(w.b)
		to := slices.Grow(w.b, 8*words)[:i+8*words]
		acc, at := w.acc, w.n&63
		for from := b[:8*words]; len(from) >= 8 && i <= len(to)-8; i += 8 {
			v := binary.LittleEndian.Uint64(from)
			binary.LittleEndian.PutUint64(to[i:], acc|v<<at)
			acc = v >> 1 >> (63 - at) // 0 if it was written completely
			from = from[8:]
		}
		w.b, w.acc, b, n = to, acc, b[8*words:], n&63
	}
	if n > 0 && len(b) >= 8 {
		w.Put(binary.LittleEndian.Uint64(b)&(1<<n-1), uint(n))
		return
	}
	for ; n >= 8; b, n = b[1:], n-8 {
		w.Put(uint64(b[0]), 8)
	}
	if n > 0 {
		w.Put(uint64(b[0])&(1<<n-1), uint(n))
	}
}

// PutRange writes the bits from from up to to of the bytes.
func (w *BitWriter) PutRange(b []byte, from, to int) {
	if rest := from & 7; rest > 0 && from < to {
		n := min(8-rest, to-from)
		w.Put(uint64(b[from>>3]>>rest)&(1<<n-1), uint(n))
		from += n
	}
	w.PutBits(b[from>>3:], to-from)
}

// ErrCode is the error of a Len or Rice code of a number that does not fit 64 bits.
var ErrCode = errors.New("wire: code is not that of a number")

// BitReader reads bits from one byte slice. After the first error every read returns zero and
// Err keeps that error.
type BitReader struct {
	b    []byte
	at   int // in bits
	left int
	err  error
}

// NewBitReader returns a reader of the bits of b except the last padding bits, at most 7, which
// Flush has added.
func NewBitReader(b []byte, padding int) BitReader {
	r := BitReader{b: b, left: 8*len(b) - padding}
	if r.left < 0 {
		r.Fail(ErrShort)
	}
	return r
}

// Err returns the first error, or nil.
func (r *BitReader) Err() error { return r.err }

// Fail records err unless there is one already.
func (r *BitReader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.left = 0
}

// Left returns the number of unread bits; after an error it is 0.
func (r *BitReader) Left() int { return r.left }

// At returns the number of bits read so far.
func (r *BitReader) At() int { return r.at }

// peek returns the next bits, at least 57 of them; those beyond the end are 0.
func (r *BitReader) peek() uint64 {
	i := r.at >> 3
	if i+8 <= len(r.b) {
		return binary.LittleEndian.Uint64(r.b[i:]) >> (r.at & 7)
	}
	var v uint64
	for k := 0; i+k < len(r.b); k++ {
		v |= uint64(r.b[i+k]) << (8 * k)
	}
	return v >> (r.at & 7)
}

func (r *BitReader) skip(n uint) bool {
	if int(n) > r.left {
		r.Fail(ErrShort)
		return false
	}
	r.at += int(n)
	r.left -= int(n)
	return true
}

// Take reads n bits, at most 64.
func (r *BitReader) Take(n uint) uint64 {
	if n > 56 {
		low := r.Take(32)
		return low | r.Take(n-32)<<32
	}
	v := r.peek() & (1<<n - 1)
	if !r.skip(n) {
		return 0
	}
	return v
}

// Bit reads one bit.
func (r *BitReader) Bit() bool { return r.Take(1) != 0 }

// Len reads the output of PutLen.
func (r *BitReader) Len() uint64 {
	switch n := r.gamma(7); {
	case n <= 1: // 1, or 0 after an error
		return 0
	case n > 65:
		r.Fail(ErrCode)
		return 0
	default:
		return 1<<(n-2) | r.Take(uint(n-2))
	}
}

// gamma reads the gamma code of a number of at most most bits. It returns 0 only after an error.
func (r *BitReader) gamma(most int) uint64 {
	zeros := 0
	for {
		v := r.peek()
		if v != 0 {
			n := bits.TrailingZeros64(v)
			zeros += n
			if !r.skip(uint(n) + 1) {
				return 0
			}
			break
		}
		if zeros += 56; !r.skip(56) {
			return 0
		}
	}
	if zeros >= most {
		r.Fail(ErrCode)
		return 0
	}
	v := 1<<zeros | r.Take(uint(zeros))
	if r.err != nil {
		return 0
	}
	return v
}

// Rice reads the output of PutRice.
func (r *BitReader) Rice(k uint) uint64 {
	v := r.peek()
	if q := uint(bits.TrailingZeros64(^v)); q < riceUnary { // v holds all bits: k <= MaxRice
		if !r.skip(q + 1 + k) {
			return 0
		}
		return uint64(q)<<k | v>>(q+1)&(1<<k-1)
	}
	if !r.skip(riceUnary) {
		return 0
	}
	high := r.gamma(min(65-int(k), 64))
	if high == 0 {
		return 0
	}
	high--
	w := high<<k | r.Take(k)
	if high>>(64-k) != 0 || w+riceUnary<<k < w {
		r.Fail(ErrCode)
		return 0
	}
	return w + riceUnary<<k
}

// TakeBytes appends n bytes to dst, fewer only after an error.
func (r *BitReader) TakeBytes(dst []byte, n int) []byte {
	if n < 0 || n > r.left>>3 {
		r.Fail(ErrShort)
		return dst
	}
	for ; n >= 7; n -= 7 {
		v := r.Take(56)
		dst = append(dst, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48))
	}
	for range n {
		dst = append(dst, byte(r.Take(8)))
	}
	return dst
}
