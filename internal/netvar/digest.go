package netvar

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// A digest is what a client shall have, as one number, made from captured values:
//
//	digest = FNV-1a over, in slot order, id:8 lifetime:4 value:8 of each object
//	value  = FNV-1a over class:uvarint [mask] owner:uvarint fields, of those that may be read
//
// FNV-1a (64 bits): start with 0xcbf29ce484222325; for each byte xor it, then multiply by
// 0x100000001b3.
const (
	fnvStart = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

func fnv(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

func fnvUint64(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ v&0xff) * fnvPrime
		v >>= 8
	}
	return h
}

func fnvUint32(h uint64, v uint32) uint64 {
	for range 4 {
		h = (h ^ uint64(v&0xff)) * fnvPrime
		v >>= 8
	}
	return h
}

func appendHashed(dst []byte, c *Class, v *codec.Values) []byte {
	return c.appendFull(wire.AppendUvarint(dst, uint64(c.index)), v)
}

func fnvObject(h uint64, o *Object, life, value uint64) uint64 {
	h = fnvUint64(h, uint64(o.id))
	h = fnvUint32(h, uint32(life))
	return fnvUint64(h, value)
}

// maskedHash is valueHash for who may read the fields of the mask alone.
func (o *Object) maskedHash(mask []byte, scratch *[]byte) uint64 {
	v := o.hist.newest()
	*scratch = o.class.appendMasked(wire.AppendUvarint((*scratch)[:0], uint64(o.class.index)), &v, mask)
	return fnv(fnvStart, *scratch)
}

// Digest returns the digest of what the client shall have as of the last capture.
func (w *World) Digest(p *Peer) uint64 {
	h := uint64(fnvStart)
	for slot := range p.entries {
		if e := &p.entries[slot]; e.phase == shown {
			h = fnvObject(h, w.slots[slot], e.life, w.valueHash(p, slot))
		}
	}
	return h
}

// valueHash returns that of what the client may read of the object in a slot.
func (w *World) valueHash(p *Peer, slot int) uint64 {
	o := w.slots[slot]
	withheld := p.view(slot).withheld
	if withheld == 0 {
		return o.valueHash(&w.bytes)
	}
	w.reading.mask = o.class.appendMask(w.reading.mask[:0], withheld)
	return o.maskedHash(w.reading.mask, &w.bytes)
}

// StateDigest returns the digest of all objects as they were last captured: what Digest is
// for a client that has everything, without lifetimes.
func (w *World) StateDigest() uint64 {
	h := uint64(fnvStart)
	for _, o := range w.slots {
		if o != nil && o.published() {
			h = fnvUint64(fnvUint64(h, uint64(o.id)), o.valueHash(&w.bytes))
		}
	}
	return h
}

// DigestState is the result of a comparison.
type DigestState uint8

const (
	DigestNone    DigestState = iota // the newest snapshot carries none, is not whole yet, or more was owed
	DigestEqual                      // server and client agree
	DigestUnequal                    // they do not, though nothing was owed: a fault; ask for the full state
)

// Digest tells how the newest applied snapshot compares, and its tick. It speaks of that one
// alone, so ask after each Apply that completes a snapshot.
func (r *Replica) Digest() (DigestState, uint64) { return r.verdict, r.tick }

// compare is called once all packets of a snapshot are applied.
func (r *Replica) compare(h *header) {
	if !h.HasDigest {
		return
	}
	own := uint64(fnvStart)
	for slot, o := range r.slots {
		if o == nil {
			continue
		}
		var value uint64
		if mask := r.masks.of(slot); len(mask) > 0 {
			value = o.maskedHash(mask, &r.bytes)
		} else {
			value = o.valueHash(&r.bytes)
		}
		own = fnvObject(own, o, o.life, value)
	}
	switch {
	case own == h.Digest:
		r.verdict = DigestEqual
		r.stats.DigestsEqual++
	case h.Complete:
		r.verdict = DigestUnequal
		r.stats.DigestsUnequal++
	}
}
