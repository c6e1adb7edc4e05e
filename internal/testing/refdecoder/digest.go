package refdecoder

import "encoding/binary"

// Digest is the result of comparing the reader's objects with the server's digest.
type Digest int

// The results of a comparison.
const (
	Unknown Digest = iota // no digest, or an undecided one
	Equal
	Unequal
)

// Sum is the digest of all objects.
func (r *Reader) Sum() uint64 { return r.digest() }

// digest is the digest of all objects.
func (r *Reader) digest() uint64 {
	var all []byte
	for _, o := range r.Objects() {
		all = binary.LittleEndian.AppendUint64(all, o.ID)
		all = binary.LittleEndian.AppendUint32(all, uint32(o.Lifetime))
		all = binary.LittleEndian.AppendUint64(all, hash(o.hashed(&r.Classes[o.Class])))
	}
	return hash(all)
}

// hashed returns the hashed bytes of one object.
func (o *Object) hashed(c *Class) []byte {
	b := binary.AppendUvarint(nil, uint64(o.Class))
	if o.Mask != nil {
		mask := make([]byte, (len(o.Mask)+7)/8)
		for i, may := range o.Mask {
			if may {
				mask[i/8] |= 1 << (i % 8)
			}
		}
		b = append(b, mask...)
	}
	v := o.Newest()
	b = binary.AppendUvarint(b, v.Owner)
	for i := range c.Leaves {
		if o.Mask == nil || o.Mask[i] {
			b = appendValue(b, &c.Leaves[i], v.Fields[i])
		}
	}
	return b
}

// hash is FNV-1a of 64 bits.
func hash(b []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range b {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}
