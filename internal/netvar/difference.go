package netvar

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// Besides the digest of the state, a recording has digests of a tick's changes, so that a replay
// can name the first value that differs:
//
//	digests = sum:4 weighted:4 (class:uvarint mask hash:2*)*
//
// For each changed field of the mask there is the sum of 16-bit hashes of the changed values. If it
// differs, the field differs. No hash is 0, so a field that one more object has changed always
// differs. The other two are sums over all objects: of their hashes, and of the hashes times the
// slot plus one. If one object differs, by d, the second sum differs by (1 + slot)·d: the quotient
// gives the slot of the object. About 40 bytes a tick of a game with four classes.

// sumsSize is the size of the two sums over all objects.
const sumsSize = 8

// AppendChangeDigests appends the digests of the last capture.
func (w *World) AppendChangeDigests(dst []byte) []byte {
	fields := w.changedFields()
	sum, weighted := w.objectSums()
	dst = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, sum), weighted)
	for class, digests := range fields {
		dst = appendFieldDigests(dst, class, digests)
	}
	return dst
}

// objectSums returns the sums over all objects.
func (w *World) objectSums() (sum, weighted uint32) {
	for o := range w.Captured() {
		h := uint32(state.HashUint64(w.wholeHash(o), uint64(o.ID())) >> 32)
		sum += h
		weighted += h * uint32(1+o.Slot())
	}
	return sum, weighted
}

// changedFields returns the sums of the changed values, by class and field, in memory that the next
// call uses again.
func (w *World) changedFields() [][]uint16 {
	if w.fieldDigests == nil {
		for _, c := range w.table.Classes() {
			w.fieldDigests = append(w.fieldDigests, make([]uint16, 1+c.Plan().Leaves()))
		}
	}
	for _, digests := range w.fieldDigests {
		clear(digests)
	}
	for o := range w.Captured() {
		if o.Changed() != w.tick {
			continue
		}
		c, v := o.WireClass(), o.Newest()
		digests := w.fieldDigests[c.Index()]
		for i, at := range o.Fields {
			if at == w.tick {
				digests[i] += max(uint16(state.HashUint64(uint64(o.ID()), c.FieldHash(i, &v))>>32), 1)
			}
		}
	}
	return w.fieldDigests
}

func appendFieldDigests(dst []byte, class int, digests []uint16) []byte {
	begin := len(dst)
	dst = wire.AppendUvarint(dst, uint64(class))
	mask, any := len(dst), false
	dst = append(dst, make([]byte, (len(digests)+7)/8)...)
	for i, d := range digests {
		if d != 0 {
			dst[mask+i>>3] |= 1 << (i & 7)
			dst, any = binary.LittleEndian.AppendUint16(dst, d), true
		}
	}
	if !any {
		return dst[:begin]
	}
	return dst
}

// maxNamed bounds the fields that NameDifference names.
const maxNamed = 8

// NameDifference names the object and the fields with values that differ from those of another
// world, by its digests of the same tick. It returns "" if the digests do not identify them.
func (w *World) NameDifference(digests []byte) string {
	r := wire.NewReader(digests)
	sums := r.Bytes(sumsSize)
	if r.Err() != nil {
		return ""
	}
	object := w.differing(binary.LittleEndian.Uint32(sums), binary.LittleEndian.Uint32(sums[4:]))
	var names []string
	theirs := w.readFieldDigests(&r)
	for class, ours := range w.changedFields() {
		c := w.table.Classes()[class]
		for i := range ours {
			if ours[i] == theirs[class][i] {
				continue
			}
			names = append(names, c.Name()+"."+c.FieldName(i))
		}
	}
	if len(names) > maxNamed {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", len(names)-maxNamed))
	}
	switch list := strings.Join(names, ", "); {
	case list == "":
		return object
	case object == "":
		return list + " of several objects"
	default:
		return list + " of " + object
	}
}

// readFieldDigests reads digests, of unknown classes and fields too.
func (w *World) readFieldDigests(r *wire.Reader) [][]uint16 {
	all := make([][]uint16, len(w.table.Classes()))
	for i, c := range w.table.Classes() {
		all[i] = make([]uint16, 1+c.Plan().Leaves())
	}
	for r.Len() > 0 && r.Err() == nil {
		class := r.Uvarint()
		if class >= uint64(len(all)) {
			break
		}
		mask := r.Bytes((len(all[class]) + 7) / 8)
		for i := range all[class] {
			if r.Err() != nil || mask[i>>3]>>(i&7)&1 == 0 {
				continue
			}
			if d := r.Bytes(2); r.Err() == nil {
				all[class][i] = binary.LittleEndian.Uint16(d)
			}
		}
	}
	return all
}

// differing names the only object whose hash differs; "" is none, or several.
func (w *World) differing(sum, weighted uint32) string {
	ours, oursWeighted := w.objectSums()
	d, slot := ours-sum, -1
	for i := range uint32(packet.MaxSlots) {
		if d == 0 || (1+i)*d != oursWeighted-weighted {
			continue
		}
		if slot >= 0 {
			return ""
		}
		slot = int(i)
	}
	switch {
	case slot < 0:
		return ""
	case slot >= len(w.objects.Slots) || w.objects.Slots[slot] == nil || !w.objects.Slots[slot].Published():
		return fmt.Sprintf("an object in slot %d, which the replay does not have", slot)
	}
	return "object " + w.objects.Slots[slot].ID().String()
}
