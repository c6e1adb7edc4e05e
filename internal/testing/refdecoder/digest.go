package refdecoder

import "encoding/binary"

// Digest compares what the reader shows with what the server says.
type Digest int

// The results of a comparison.
const (
	Unknown Digest = iota // there was no digest, or it said nothing
	Equal
	Unequal
)

// Sum is the digest of everything that is shown.
func (r *Reader) Sum() uint64 { return r.digest() }

// digest is that of everything that is shown.
func (r *Reader) digest() uint64 {
	var all []byte
	for _, o := range r.Objects() {
		all = binary.LittleEndian.AppendUint64(all, o.ID)
		all = binary.LittleEndian.AppendUint32(all, uint32(o.Lifetime))
		all = binary.LittleEndian.AppendUint64(all, hash(o.hashed(&r.Classes[o.Class])))
	}
	return hash(all)
}

// hashed are the bytes of which the value of one object is made.
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
