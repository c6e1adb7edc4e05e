package state

import (
	"strconv"
	"strings"
)

// ID names an object. The slot is in the upper 32 bits, so that ids are sorted in the order of
// iteration, and the generation of that slot is in the lower 32 bits. 0 names no object.
type ID uint64

func MakeID(slot int, gen uint32) ID { return ID(slot)<<32 | ID(gen) }

func (id ID) Slot() int { return int(id >> 32) }

func (id ID) Gen() uint32 { return uint32(id) }

// String returns slot and generation, for people.
func (id ID) String() string { return string(id.Append(nil)) }

// Append appends the String to dst.
func (id ID) Append(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(id.Slot()), 10), '.')
	return strconv.AppendUint(dst, uint64(id.Gen()), 10)
}

// ParseID parses the format of ID.String.
func ParseID(text string) (ID, bool) {
	before, after, ok := strings.Cut(text, ".")
	slot, err := strconv.ParseUint(before, 10, 16)
	gen, err2 := strconv.ParseUint(after, 10, 32)
	return MakeID(int(slot), uint32(gen)), ok && err == nil && err2 == nil
}
