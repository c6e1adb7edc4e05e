package netvar

import (
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

func fnvObject(h uint64, o *Object, life, value uint64) uint64 {
	h = fnvUint64(h, uint64(o.id))
	h = fnvUint32(h, uint32(life))
	return fnvUint64(h, value)
}

// digestSlots is how many slots the digests of all clients together look at in a tick, on average:
// about half a millisecond. A digest whose turn has not come goes with a later snapshot.
const digestSlots = 1 << 14

// reserve gives a client its turn for a digest: those who have asked first get theirs first.
func (w *World) reserve(p *Peer) {
	start := max(w.hashing, w.tick*digestSlots, (p.tick+1)*digestSlots)
	w.hashing = start + uint64(len(p.entries))
	p.turn = start / digestSlots
}

// digest puts a digest into the header of a snapshot if the client has asked for one and its turn
// has come.
func (c *cutter) digest() {
	p := c.p
	if p.digests == 0 || c.header.Tick < p.turn {
		return
	}
	c.header.HasDigest, c.header.Digest = true, p.w.Digest(p)
	if p.digests--; p.digests > 0 {
		p.w.reserve(p)
	}
}

// Digest returns the digest of what the client shall have as of the last capture.
func (w *World) Digest(p *Peer) uint64 {
	w.stats.Digests++
	w.stats.DigestSlots += uint64(len(p.entries))
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
		return w.wholeHash(o)
	}
	m := o.maskedHash(withheld)
	if m.version != o.changed {
		w.stats.Hashed++
		w.reading.mask = o.class.appendMask(w.reading.mask[:0], withheld)
		m.version, m.hash = o.changed, o.hashNewest(w.reading.mask, &w.bytes)
	}
	return m.hash
}

// wholeHash returns that of all of an object.
func (w *World) wholeHash(o *Object) uint64 {
	if o.hashed != o.changed {
		w.stats.Hashed++
	}
	return o.valueHash(nil, &w.bytes)
}

// valueHash hashes class, owner and the newest version, of which a mask may be read, or all of it
// if there is none. It remembers the hash, so the mask must be the same for all of one version.
func (o *Object) valueHash(mask []byte, scratch *[]byte) uint64 {
	if o.hashed != o.changed {
		o.hash, o.hashed = o.hashNewest(mask, scratch), o.changed
	}
	return o.hash
}

func (o *Object) hashNewest(mask []byte, scratch *[]byte) uint64 {
	v, b := o.hist.newest(), wire.AppendUvarint((*scratch)[:0], uint64(o.class.index))
	if len(mask) > 0 {
		b = o.class.appendMasked(b, &v, mask)
	} else {
		b = o.class.appendFull(b, &v)
	}
	*scratch = b
	return fnv(fnvStart, b)
}

// maskedHash is what a digest takes of a version for those who may not read some of it.
type maskedHash struct {
	version, hash uint64
	withheld      Rules
}

// maxMaskedHashes bounds the sets of rules whose hashes an object remembers: games have an owner
// and a few teams.
const maxMaskedHashes = 8

// maskedHash returns what the object remembers for a set of rules, or room for it.
func (o *Object) maskedHash(withheld Rules) *maskedHash {
	oldest := 0
	for i := range o.masked {
		switch m := &o.masked[i]; {
		case m.withheld == withheld:
			return m
		case m.version < o.masked[oldest].version:
			oldest = i
		}
	}
	if len(o.masked) < maxMaskedHashes {
		oldest = len(o.masked)
		o.masked = append(o.masked, maskedHash{})
	}
	o.masked[oldest] = maskedHash{withheld: withheld}
	return &o.masked[oldest]
}

// StateDigest returns the digest of all objects as they were last captured: what Digest is
// for a client that has everything, without lifetimes.
func (w *World) StateDigest() uint64 {
	h := uint64(fnvStart)
	for _, o := range w.slots {
		if o != nil && o.published() {
			h = fnvUint64(fnvUint64(h, uint64(o.id)), w.wholeHash(o))
		}
	}
	return h
}

// DigestState is the result of a comparison.
type DigestState uint8

const (
	// The newest snapshot carries none, is not whole yet, or more was owed.
	DigestNone  DigestState = iota
	DigestEqual             // server and client agree
	// They do not, though nothing was owed: a fault; ask for the full state.
	DigestUnequal
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
		if o != nil {
			own = fnvObject(own, o, o.life, o.valueHash(r.masks.mask(slot), &r.bytes))
		}
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
