package wire

import (
	"bytes"
	"errors"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// numbers returns numbers of all lengths, and the borders between the forms of a code.
func numbers() (list []uint64) {
	for n := range 64 {
		for d := range uint64(9) {
			list = append(list, 1<<n-1+d-4, 1<<n+d)
		}
	}
	return append(list, 0, ^uint64(0))
}

func TestBitsRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for start := range 64 {
		var w BitWriter
		w.Reset(make([]byte, 3))
		w.Put(random.Uint64()&(1<<start-1), uint(start))
		type item struct {
			v    uint64
			kind int
			k    uint
		}
		var items []item
		for _, v := range numbers() {
			k := uint(random.IntN(MaxRice + 1))
			n := bits.Len64(v)
			before := w.Len()
			switch kind := random.IntN(4); kind {
			case 0:
				w.PutLen(v)
				if got := w.Len() - before; got > MaxLenBits(n) {
					t.Fatalf("len(%d): %d bits, at most %d", v, got, MaxLenBits(n))
				}
				items = append(items, item{v, kind, 0})
			case 1:
				w.PutRice(v, k)
				if got := w.Len() - before; got > MaxRiceBits(n) {
					t.Fatalf("rice(%d, %d): %d bits, at most %d", v, k, got, MaxRiceBits(n))
				}
				items = append(items, item{v, kind, k})
			case 2:
				w.Put(v, 64)
				items = append(items, item{v, kind, 0})
			default:
				w.PutBytes([]byte{byte(v), 1, 2, 3, 4, 5, 6, 7, 8, 9})
				items = append(items, item{v & 0xff, kind, 0})
			}
		}
		padding := w.Flush()
		r := NewBitReader(w.Bytes()[3:], padding)
		r.Take(uint(start))
		for i, it := range items {
			var got uint64
			switch it.kind {
			case 0:
				got = r.Len()
			case 1:
				got = r.Rice(it.k)
			case 2:
				got = r.Take(64)
			default:
				b := r.TakeBytes(nil, 10)
				if !bytes.Equal(b, []byte{byte(it.v), 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
					t.Fatalf("bytes %x", b)
				}
				got = uint64(b[0])
			}
			if got != it.v || r.Err() != nil {
				t.Fatalf("item %d %+v: got %d, %v", i, it, got, r.Err())
			}
		}
		if r.Left() != 0 {
			t.Fatalf("%d bits left", r.Left())
		}
	}
}

// A Rice code of more than 64 bits is refused, by its gamma or by the result, and a code of 64 bits
// is read.
func TestRiceCodesAreLimitedTo64Bits(t *testing.T) {
	read, refused := 0, 0
	for k := range uint(MaxRice + 1) {
		for zeros := uint(0); zeros <= 66; zeros++ {
			for _, more := range []uint64{0, 1, 1<<63 - 1, ^uint64(0) - 4, ^uint64(0)} {
				var w BitWriter
				w.Put(1<<riceUnary-1, riceUnary)
				w.Put(0, min(zeros, 33))
				w.Put(0, zeros-min(zeros, 33))
				w.Put(1, 1)
				high, low := new(big.Int).Lsh(big.NewInt(1), zeros), new(big.Int)
				for i := range zeros + k {
					bit := uint(more >> (i % 64) & 1)
					w.Put(uint64(bit), 1)
					if i < zeros {
						high.SetBit(high, int(i), bit)
					} else {
						low.SetBit(low, int(i-zeros), bit)
					}
				}
				padding := w.Flush()
				want := new(big.Int).Lsh(new(big.Int).Add(high, big.NewInt(riceUnary-1)), k)
				want.Add(want, low)
				r := NewBitReader(w.Bytes(), padding)
				switch v := r.Rice(k); {
				case high.BitLen() > 64 || want.BitLen() > 64:
					if refused++; v != 0 || !errors.Is(r.Err(), ErrCode) {
						t.Fatalf("rice(%d) of a gamma with %d zeros: %d, %v, want none", k, zeros, v, r.Err())
					}
				default:
					if read++; v != want.Uint64() || r.Err() != nil || r.Left() > 0 {
						t.Fatalf("rice(%d) of a gamma with %d zeros: %d, %v, want %d", k, zeros, v, r.Err(), want)
					}
				}
			}
		}
	}
	if read < 1000 || refused < 1000 {
		t.Errorf("%d were read and %d refused", read, refused)
	}
}

func TestBitsCopyAndRewind(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	all := make([]byte, 64)
	for i := range all {
		all[i] = byte(random.Uint32())
	}
	for range 500 {
		var w BitWriter
		from := all[:random.IntN(len(all)+1)]
		lead, n := uint(random.IntN(64)), random.IntN(8*len(from)+1)
		start := random.IntN(n + 1)
		w.Put(0, lead)
		m := w.Mark()
		w.PutBits(from, random.IntN(8*len(from)+1))
		w.Rewind(m)
		w.PutBits(from, n)
		w.PutRange(from, start, n)
		w.Put(1, 1)
		padding := w.Flush()
		r := NewBitReader(w.Bytes(), padding)
		r.Take(lead)
		want := NewBitReader(from, 0)
		for range n {
			if r.Bit() != want.Bit() {
				t.Fatal("a bit differs")
			}
		}
		want = NewBitReader(from, 0)
		for i := range n {
			if bit := want.Bit(); i >= start && r.Bit() != bit {
				t.Fatal("a bit of a range differs")
			}
		}
		if !r.Bit() || r.Left() != 0 || r.Err() != nil {
			t.Fatal("the end differs")
		}
	}
}

func FuzzBitReader(f *testing.F) {
	f.Add([]byte{0xff, 0, 1, 2, 3}, byte(3))
	f.Fuzz(func(t *testing.T, b []byte, k byte) {
		for kind := range 4 {
			r := NewBitReader(b, int(k&7))
			for r.Err() == nil && r.Left() > 0 {
				left := r.Left()
				switch kind {
				case 0:
					r.Len()
				case 1:
					r.Rice(uint(k) % (MaxRice + 1))
				case 2:
					r.Take(uint(k)%64 + 1)
				default:
					r.TakeBytes(nil, int(k)+1)
				}
				if r.Left() >= left {
					t.Fatal("no bits were read")
				}
			}
			if r.Err() != nil && (r.Len() != 0 || r.Rice(3) != 0 || r.Take(9) != 0) {
				t.Fatal("numbers after an error")
			}
		}
	})
}

// LenBits and RiceBits return the exact sizes, and MaxLenBits that of the largest number of n bits.
func TestSizesAreKnownBeforeWriting(t *testing.T) {
	for _, v := range numbers() {
		var w BitWriter
		if w.PutLen(v); w.Len() != LenBits(v) {
			t.Errorf("len(%d): %d bits, want %d", v, w.Len(), LenBits(v))
		}
		for k := range uint(MaxRice + 1) {
			var w BitWriter
			if w.PutRice(v, k); w.Len() != RiceBits(v, k) {
				t.Errorf("rice(%d, %d): %d bits, want %d", v, k, w.Len(), RiceBits(v, k))
			}
		}
	}
	for n := range 65 {
		var w BitWriter
		if w.PutLen(1<<n - 1); w.Len() != MaxLenBits(n) {
			t.Errorf("the largest number of %d bits takes %d, want %d", n, w.Len(), MaxLenBits(n))
		}
	}
}

// TestLengthsOfMoreThan64BitsAreRefused has the largest length, and codes above it.
func TestLengthsOfMoreThan64BitsAreRefused(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want error
	}{{65, nil}, {66, ErrCode}, {127, ErrCode}, {128, ErrCode}} {
		var w BitWriter
		w.putGamma(c.bits)
		w.Put(0, 64)
		w.Put(0, 64)
		padding := w.Flush()
		r := NewBitReader(w.Bytes(), padding)
		if v := r.Len(); !errors.Is(r.Err(), c.want) || c.want == nil && v != 1<<63 {
			t.Errorf("a number of %d bits: %d, %v; want %v", c.bits-1, v, r.Err(), c.want)
		}
	}
}
