package replica

import (
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

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
func (r *Replica) compare(h *packet.Header) {
	if !h.HasDigest {
		return
	}
	own := uint64(state.HashStart)
	for slot, o := range r.objects.Slots {
		if o != nil {
			own = state.HashObject(own, o, o.Life, o.ValueHash(r.masks.of(slot), &r.bytes))
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
