package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"testing"
	"testing/quick"
)

func TestVarintsRoundTripInTheirLength(t *testing.T) {
	check := func(v uint64, shift uint8) bool {
		v >>= shift & 63
		b := AppendZigzag(AppendUvarint(nil, v), int64(v))
		r := NewReader(b)
		u, n := r.Uvarint(), r.Offset()
		return u == v && n == UvarintLen(v) && r.Zigzag() == int64(v) && r.Done() == nil
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	for _, v := range []int64{0, -1, 1, math.MinInt64, math.MaxInt64} {
		if Unzigzag(Zigzag(v)) != v {
			t.Errorf("zigzag loses %d", v)
		}
	}
}

func TestFirstErrorSticks(t *testing.T) {
	r := NewReader([]byte{1, 2, 3})
	if r.Uint32(); !errors.Is(r.Err(), ErrShort) {
		t.Fatalf("error %v", r.Err())
	}
	r.Fail(ErrLimit)
	if r.Byte() != 0 || r.Uvarint() != 0 || r.Uint64() != 0 || r.Bytes(1) != nil || r.Len() != 0 || r.Since(0) != nil {
		t.Error("a failed reader still reads")
	}
	if !errors.Is(r.Done(), ErrShort) {
		t.Errorf("error %v, want the first one", r.Err())
	}
}

// A read that fails returns zero, too.
func TestReaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		read func(*Reader) int
		want error
	}{
		"end":              {nil, func(r *Reader) int { return int(r.Byte()) }, ErrShort},
		"open varint":      {[]byte{0x81}, func(r *Reader) int { return int(r.Uvarint()) }, ErrShort},
		"long varint":      {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, func(r *Reader) int { return int(r.Uvarint()) }, ErrOverflow},
		"three bytes":      {[]byte{1, 1, 1}, func(r *Reader) int { return int(r.Uint32()) }, ErrShort},
		"seven bytes":      {[]byte{1, 1, 1, 1, 1, 1, 1}, func(r *Reader) int { return int(r.Uint64()) }, ErrShort},
		"trailing":         {[]byte{1}, func(*Reader) int { return 0 }, ErrTrailing},
		"negative":         {[]byte{1}, func(r *Reader) int { return len(r.Bytes(-1)) }, ErrShort},
		"over limit":       {[]byte{3, 0, 0, 0}, func(r *Reader) int { return len(r.Block(2)) }, ErrLimit},
		"count over limit": {[]byte{3, 0, 0, 0}, func(r *Reader) int { return r.Count(2, 1) }, ErrLimit},
		"count over bytes": {[]byte{3, 0, 0, 0}, func(r *Reader) int { return r.Count(9, 2) }, ErrShort},
		"no count":         {nil, func(r *Reader) int { return r.Count(9, 2) }, ErrShort},
	} {
		r := NewReader(c.in)
		n := c.read(&r)
		if err := r.Done(); !errors.Is(err, c.want) || n != 0 {
			t.Errorf("%s: %d, %v, want %v", name, n, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		in   []byte
		read func(*BitReader) uint64
		want error
	}{
		"bits":                 {[]byte{0xff}, func(r *BitReader) uint64 { return r.Take(9) }, ErrShort},
		"a long number":        {[]byte{0xff}, func(r *BitReader) uint64 { return r.Take(57) &^ 0xff }, ErrShort},
		"no length":            {[]byte{0}, func(r *BitReader) uint64 { return r.Len() }, ErrShort},
		"half a length":        {[]byte{0x40}, func(r *BitReader) uint64 { return r.Len() }, ErrShort},
		"no end of a length":   {make([]byte, 8), func(r *BitReader) uint64 { return r.Len() }, ErrShort},
		"a quotient":           {[]byte{0xfb}, func(r *BitReader) uint64 { return r.Rice(6) }, ErrShort},
		"no quotient":          {nil, func(r *BitReader) uint64 { return r.Rice(0) }, ErrShort},
		"a code of a quotient": {[]byte{7}, func(r *BitReader) uint64 { return r.Rice(0) }, ErrShort},
		"bytes":                {[]byte{1, 2}, func(r *BitReader) uint64 { return uint64(len(r.TakeBytes(nil, 3))) }, ErrShort},
		"negative":             {[]byte{1, 2}, func(r *BitReader) uint64 { return uint64(len(r.TakeBytes(nil, -1))) }, ErrShort},
	} {
		r := NewBitReader(c.in, 0)
		if n := c.read(&r); !errors.Is(r.Err(), c.want) || n != 0 || r.Left() != 0 {
			t.Errorf("%s: %d, %v, want %v", name, n, r.Err(), c.want)
		}
	}
}

// Count refuses a length that overflows an int when multiplied by the size of its items.
func TestCountDoesNotOverflow(t *testing.T) {
	const half = 1 << (bits.UintSize / 2)
	for _, least := range []int{half, 2 * half, math.MaxInt, 0} {
		r := NewReader(AppendUvarint(nil, half))
		n := r.Count(math.MaxInt, least)
		if least == 0 && (n != half || r.Err() != nil) || least > 0 && (n != 0 || !errors.Is(r.Err(), ErrShort)) {
			t.Errorf("%d things of %d bytes: %d, %v", half, least, n, r.Err())
		}
	}
	for n := range 12 {
		r := NewReader(append(AppendUvarint(nil, uint64(n)), make([]byte, 20)...))
		if fits := r.Count(100, 2) == n && r.Err() == nil; fits != (n <= 10) {
			t.Errorf("%d things of 2 bytes in 20 bytes: %v", n, r.Err())
		}
	}
}

func TestWidenTickIsExactWithinHalfARange(t *testing.T) {
	check := func(near uint64, d int32) bool {
		near = near>>8 + 1<<33
		tick := near + uint64(int64(d))
		return WidenTick(near, uint32(tick)) == tick
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		near uint64
		low  uint32
		want uint64
	}{
		{0, 0, 0}, {0, 5, 5}, {5, 0, 0}, {0, math.MaxUint32, math.MaxUint32},
		{math.MaxUint32, 3, 1<<32 + 3}, {1<<32 + 3, math.MaxUint32, math.MaxUint32},
	} {
		if got := WidenTick(c.near, c.low); got != c.want {
			t.Errorf("WidenTick(%d, %d) = %d, want %d", c.near, c.low, got, c.want)
		}
	}
}

// No input makes the reader panic or read beyond its end.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, []byte{1, 2, 3, 0xff, 0x80, 9})
	f.Add([]byte{4, 5, 1}, []byte{0x80, 0x80, 0x80})
	f.Fuzz(func(t *testing.T, ops, in []byte) {
		r := NewReader(in)
		for _, op := range ops {
			before := r.Offset()
			switch op % 7 {
			case 0:
				r.Byte()
			case 1:
				r.Uvarint()
			case 2:
				r.Uint32()
			case 3:
				r.Uint64()
			case 4:
				r.Bytes(int(op))
			case 5:
				r.Block(int(op))
			case 6:
				r.Count(int(op), 3)
			}
			if r.Offset() < before || r.Offset() > len(in) || r.Len() < 0 {
				t.Fatalf("offset %d of %d after %d", r.Offset(), len(in), before)
			}
		}
	})
}

// TestVarintsAreThoseOfTheStandardLibrary has the values next to a change of the length.
func TestVarintsAreThoseOfTheStandardLibrary(t *testing.T) {
	for _, v := range []uint64{0, 127, 128, 1<<14 - 1, 1 << 14, math.MaxUint64} {
		got, want := AppendUvarint(nil, v), binary.AppendUvarint(nil, v)
		if !bytes.Equal(got, want) || UvarintLen(v) != len(want) {
			t.Errorf("%d is % x of length %d, want % x", v, got, UvarintLen(v), want)
		}
	}
}

// TestBytesAreReadToTheEnd reads none, some, and the last one.
func TestBytesAreReadToTheEnd(t *testing.T) {
	r := NewReader([]byte{1, 2, 3})
	for n, want := range []string{"", "\x01", "\x02\x03"} {
		if got := r.Bytes(n); string(got) != want || got == nil || r.Err() != nil {
			t.Errorf("%d bytes are %q, %v", n, got, r.Err())
		}
	}
	if got := r.Since(1); string(got) != "\x02\x03" || cap(got) != 2 {
		t.Errorf("since the second one %q was read", got)
	}
	if r.Bytes(1) != nil || !errors.Is(r.Err(), ErrShort) {
		t.Errorf("a byte after the end: %v", r.Err())
	}
}
