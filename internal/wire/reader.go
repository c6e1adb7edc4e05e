package wire

import (
	"encoding/binary"
	"errors"
)

// The errors of a Reader. They do not contain the position, so that callers can count them by kind.
var (
	ErrShort    = errors.New("wire: input ends early")
	ErrOverflow = errors.New("wire: varint longer than 64 bits")
	ErrTrailing = errors.New("wire: bytes after the end")
	ErrLimit    = errors.New("wire: length over its limit")
)

// Reader reads primitives from one byte slice. After the first error every read returns
// zero and Err keeps that error. Slices that it returns alias the input.
type Reader struct {
	b   []byte
	off int
	err error
}

// NewReader reads from b, which must not change while the reader is in use.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Fail records err unless there is one already: for checks by the caller.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
		r.off = len(r.b)
	}
}

// Offset returns the number of bytes read so far; after an error it is the length of the input.
func (r *Reader) Offset() int { return r.off }

// Len returns the number of unread bytes.
func (r *Reader) Len() int { return len(r.b) - r.off }

// Since returns the bytes between an earlier Offset and the current one. After an error it is
// empty.
func (r *Reader) Since(off int) []byte {
	if r.err != nil {
		return nil
	}
	return r.b[off:r.off:r.off]
}

// Done returns the first error, or ErrTrailing if bytes are left.
func (r *Reader) Done() error {
	if r.err == nil && r.off != len(r.b) {
		r.Fail(ErrTrailing)
	}
	return r.err
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.off >= len(r.b) {
		r.Fail(ErrShort)
		return 0
	}
	v := r.b[r.off]
	r.off++
	return v
}

// Uvarint reads the output of AppendUvarint.
func (r *Reader) Uvarint() uint64 {
	if r.off < len(r.b) && r.b[r.off] < 0x80 {
		v := r.b[r.off]
		r.off++
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b[r.off:])
	if n <= 0 {
		if n == 0 {
			r.Fail(ErrShort)
		} else {
			r.Fail(ErrOverflow)
		}
		return 0
	}
	r.off += n
	return v
}

// Zigzag reads the output of AppendZigzag.
func (r *Reader) Zigzag() int64 { return Unzigzag(r.Uvarint()) }

// Uint32 reads four little-endian bytes.
func (r *Reader) Uint32() uint32 {
	if r.Len() < 4 {
		r.Fail(ErrShort)
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b[r.off:])
	r.off += 4
	return v
}

// Uint64 reads eight little-endian bytes.
func (r *Reader) Uint64() uint64 {
	if r.Len() < 8 {
		r.Fail(ErrShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b[r.off:])
	r.off += 8
	return v
}

// Bytes reads exactly n bytes; the result aliases the input.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > r.Len() {
		r.Fail(ErrShort)
		return nil
	}
	b := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Count reads a uvarint of at most limit, and of at most the number of items of least bytes each
// that fit the unread bytes. So a length never makes a decoder reserve more memory than the input
// can fill.
func (r *Reader) Count(limit, least int) int {
	v := r.Uvarint()
	if r.err != nil {
		return 0
	}
	if v > uint64(limit) {
		r.Fail(ErrLimit)
		return 0
	}
	if least > 0 && v > uint64(r.Len()/least) {
		r.Fail(ErrShort)
		return 0
	}
	return int(v)
}

// Block reads a uvarint length of at most limit and that many bytes; the result aliases the input.
func (r *Reader) Block(limit int) []byte { return r.Bytes(r.Count(limit, 1)) }
