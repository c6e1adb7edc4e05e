package state

import "github.com/netloop/netloop/internal/wire"

// A digest is one number for the state that a client must have, computed from captured values:
//
//	digest = FNV-1a over, in slot order, id:8 lifetime:4 value:8 of each object
//	value  = FNV-1a over class:uvarint [mask] owner:uvarint fields, of those that may be read
//
// FNV-1a (64 bits): start with 0xcbf29ce484222325; for each byte xor it, then multiply by
// 0x100000001b3.
const (
	HashStart = 0xcbf29ce484222325
	hashPrime = 0x100000001b3
)

func HashBytes(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * hashPrime
	}
	return h
}

func HashUint64(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * hashPrime
		v >>= 8
	}
	return h
}

func HashUint32(h uint64, v uint32) uint64 {
	for range 4 {
		h = (h ^ uint64(v&0xff)) * hashPrime
		v >>= 8
	}
	return h
}

func HashObject(h uint64, o *Object, life, value uint64) uint64 {
	h = HashUint64(h, uint64(o.id))
	h = HashUint32(h, uint32(life))
	return HashUint64(h, value)
}

// ValueHash hashes class, owner and newest version: the leaves of the mask, or all if the mask is
// empty. It caches the hash, so the mask must be the same for all calls with one version.
func (o *Object) ValueHash(mask []byte, scratch *[]byte) uint64 {
	if o.Hashed != o.changed {
		o.hash, o.Hashed = o.HashNewest(mask, scratch), o.changed
	}
	return o.hash
}

func (o *Object) HashNewest(mask []byte, scratch *[]byte) uint64 {
	v, b := o.Hist.Newest(), wire.AppendUvarint((*scratch)[:0], uint64(o.class.index))
	if len(mask) > 0 {
		b = o.class.AppendMasked(b, &v, mask)
	} else {
		b = o.class.appendFull(b, &v)
	}
	*scratch = b
	return HashBytes(HashStart, b)
}
