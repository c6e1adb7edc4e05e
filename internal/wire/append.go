package wire

import "encoding/binary"

// AppendUvarint appends v in base 128, least significant group first (at most 10 bytes).
func AppendUvarint(dst []byte, v uint64) []byte {
	if v < 0x80 { // the case of most ages, masks and slot steps, so it has a fast branch
		return append(dst, byte(v))
	}
	return binary.AppendUvarint(dst, v)
}

// AppendZigzag appends v so that small magnitudes of either sign are short.
func AppendZigzag(dst []byte, v int64) []byte { return AppendUvarint(dst, Zigzag(v)) }

// AppendUint32 appends v in little-endian order.
func AppendUint32(dst []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(dst, v) }

// AppendUint64 appends v in little-endian order.
func AppendUint64(dst []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(dst, v) }

// AppendString appends the length of s as a uvarint and then its bytes.
func AppendString(dst []byte, s string) []byte {
	return append(AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendBytes appends the length of b as a uvarint and then its bytes.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendUvarint(dst, uint64(len(b))), b...)
}

// Zigzag maps 0, -1, 1, -2 … to 0, 1, 2, 3 ….
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag is the inverse of [Zigzag].
func Unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// UvarintLen returns the number of bytes that [AppendUvarint] takes for v.
func UvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
