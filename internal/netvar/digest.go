package netvar

import (
	"github.com/netloop/netloop/internal/wire"
)

// A digest is one number for the state that a client must have, computed from captured values:
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

// digestSlots bounds the slots that the digests of all clients visit in a tick, on average: about
// half a millisecond. A digest beyond the bound is sent with a later snapshot.
const digestSlots = 1 << 14

// reserve schedules a client's next digest. Clients are served in the order of their requests.
func (w *World) reserve(p *Peer) {
	start := max(w.hashing, w.tick*digestSlots, (p.tick+1)*digestSlots)
	w.hashing = start + uint64(len(p.entries))
	p.turn = start / digestSlots
}

// digest adds a digest to the header of a snapshot if the client has asked for one and the tick
// that reserve has set is reached.
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

// Digest returns the digest of the client's state as of the last capture.
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

// valueHash returns the hash of the fields that the client may read of the object in a slot.
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

// wholeHash returns the hash of all fields of an object.
func (w *World) wholeHash(o *Object) uint64 {
	if o.hashed != o.changed {
		w.stats.Hashed++
	}
	return o.valueHash(nil, &w.bytes)
}

// valueHash hashes class, owner and newest version: the leaves of the mask, or all if the mask is
// empty. It caches the hash, so the mask must be the same for all calls with one version.
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

// maskedHash is the cached hash of a version without the fields of the withheld rules.
type maskedHash struct {
	version, hash uint64
	withheld      Rules
}

// maxMaskedHashes bounds the cached hashes of an object, one for each set of rules: games have an
// owner and a few teams.
const maxMaskedHashes = 8

// maskedHash returns the cached hash for a set of rules. If there is none, it returns an empty one,
// in place of the oldest if the cache is full.
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

// StateDigest returns the digest of all objects as of their last capture: that of a client that has
// all of them, without lifetimes.
func (w *World) StateDigest() uint64 {
	h := uint64(fnvStart)
	for _, o := range w.slots {
		if o != nil && o.published() {
			h = fnvUint64(fnvUint64(h, uint64(o.id)), w.wholeHash(o))
		}
	}
	return h
}

// DigestState is the result of comparing a client's state with a digest.
type DigestState uint8

const (
	// The newest snapshot has no digest, is not complete, or did not contain all pending changes.
	DigestNone  DigestState = iota
	DigestEqual             // server and client agree
	// They differ although no change was pending. This is a fault: ask for the full state.
	DigestUnequal
)

// Digest returns the result for the newest applied snapshot, and its tick. It is overwritten by the
// next snapshot, so call it after each Apply that completes one.
func (r *Replica) Digest() (DigestState, uint64) { return r.verdict, r.tick }

// compare checks the digest of a snapshot, once all of its packets are applied.
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
