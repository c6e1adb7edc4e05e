package netvar

import (
	"iter"

	"github.com/netloop/netloop/internal/netvar/state"
)

// digestSlots bounds the slots that the digests of all clients visit in a tick, on average: about
// half a millisecond. A digest above the bound is sent with a later snapshot.
const digestSlots = 1 << 14

// reserve schedules a client's next digest. Clients are served in the order of their requests.
func (w *World) reserve(p *Peer) {
	start := max(w.hashing, w.tick*digestSlots, (p.tick+1)*digestSlots)
	w.hashing = start + uint64(len(p.entries))
	p.turn = start / digestSlots
}

// digest adds a digest to the header of a snapshot if the client has requested one and the tick
// from reserve is reached.
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
	h := uint64(state.HashStart)
	for slot := range p.entries {
		if e := &p.entries[slot]; e.phase == shown {
			h = state.HashObject(h, w.objects.Slots[slot], e.life, w.valueHash(p, slot))
		}
	}
	return h
}

// valueHash returns the hash of the fields that the client may read of the object in a slot.
func (w *World) valueHash(p *Peer, slot int) uint64 {
	o := w.objects.Slots[slot]
	withheld := p.View(slot).Withheld
	if withheld == 0 {
		return w.wholeHash(o)
	}
	m := w.masked[slot].of(withheld)
	if m.version != o.Changed() {
		w.stats.Hashed++
		w.mask = o.WireClass().AppendMask(w.mask[:0], withheld)
		m.version, m.hash = o.Changed(), o.HashNewest(w.mask, &w.bytes)
	}
	return m.hash
}

// wholeHash returns the hash of all fields of an object.
func (w *World) wholeHash(o *state.Object) uint64 {
	if o.Hashed != o.Changed() {
		w.stats.Hashed++
	}
	return o.ValueHash(nil, &w.bytes)
}

// maskedHash is the cached hash of a version without the fields of the withheld rules.
type maskedHash struct {
	version, hash uint64
	withheld      state.Rules
}

// maxMaskedHashes bounds the cached hashes of an object, one for each set of rules: games have an
// owner and a few teams.
const maxMaskedHashes = 8

// maskedHashes are the cached hashes of an object.
type maskedHashes []maskedHash

// of returns the cached hash for a set of rules. If there is none, it returns an empty entry, which
// replaces the oldest entry if the cache is full.
func (s *maskedHashes) of(withheld state.Rules) *maskedHash {
	list, oldest := *s, 0
	for i := range list {
		switch m := &list[i]; {
		case m.withheld == withheld:
			return m
		case m.version < list[oldest].version:
			oldest = i
		}
	}
	if len(list) < maxMaskedHashes {
		oldest = len(list)
		list = append(list, maskedHash{})
		*s = list
	}
	list[oldest] = maskedHash{withheld: withheld}
	return &list[oldest]
}

// Captured iterates over the objects of the last capture, in the order of ids: without objects that
// were spawned since, and with objects that were despawned since.
func (w *World) Captured() iter.Seq[*state.Object] {
	return func(yield func(*state.Object) bool) {
		for _, o := range w.objects.Slots {
			if o != nil && o.Published() && !yield(o) {
				return
			}
		}
	}
}

// StateDigest returns the digest of all objects as of their last capture. Unlike the digest of a
// client it covers all objects and all fields, and no lifetimes.
func (w *World) StateDigest() uint64 {
	h := uint64(state.HashStart)
	for o := range w.Captured() {
		h = state.HashUint64(state.HashUint64(h, uint64(o.ID())), w.wholeHash(o))
	}
	return h
}
