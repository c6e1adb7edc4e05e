package netvar

import "github.com/netloop/netloop/internal/netvar/state"

// receipts is a ring, by tick, of the snapshots of the last Horizon ticks that a client has
// acknowledged. A resume keeps it, because the client still draws these snapshots.
type receipts struct {
	ring [state.Horizon]receipt
}

// receipt is the state of one snapshot.
type receipt struct {
	tick    uint32 // low bits, as on the wire
	missing uint8  // number of packets not acknowledged
	some    bool   // at least one packet is acknowledged
	first   bool   // with it the client has its first state
}

// cut records a snapshot that was sent in the given number of packets. first reports whether the
// client has its first state with it.
func (r *receipts) cut(tick uint64, packets int, first bool) {
	r.ring[tick%state.Horizon] = receipt{tick: uint32(tick), missing: uint8(packets), first: first}
}

// acknowledged records the acknowledgement of one packet. It reports whether the client knows by it
// that it has its first state.
func (r *receipts) acknowledged(tick uint64) (first bool) {
	k := &r.ring[tick%state.Horizon]
	if k.tick != uint32(tick) {
		return false
	}
	k.missing, k.some = k.missing-1, true
	return k.missing == 0 && k.first
}

// Has reports whether the client has acknowledged a packet of the snapshot of a tick, which must be
// one of the last Horizon ticks.
func (p *Peer) Has(tick uint64) bool {
	k := &p.receipts.ring[tick%state.Horizon]
	return k.some && k.tick == uint32(tick)
}

// HasWhole reports whether the client has acknowledged all packets of the snapshot of a tick, which
// must be one of the last Horizon ticks.
func (p *Peer) HasWhole(tick uint64) bool {
	return p.Has(tick) && p.receipts.ring[tick%state.Horizon].missing == 0
}

// HasBetween reports whether the client has a whole snapshot strictly between two of the last
// Horizon ticks.
func (p *Peer) HasBetween(from, to uint64) bool {
	for t := from + 1; t < to; t++ {
		if p.HasWhole(t) {
			return true
		}
	}
	return false
}

// Around returns the ticks of the nearest snapshots around a tick that the client has completely:
// the newest one that is not later, and the oldest one that is later. 0: there is none.
func (p *Peer) Around(tick uint64) (from, to uint64) {
	least := p.tick - min(p.tick, state.Horizon-1)
	for t := min(tick, p.tick); t >= max(least, 1) && from == 0; t-- {
		if p.HasWhole(t) {
			from = t
		}
	}
	for t := max(tick+1, least); t <= p.tick && to == 0; t++ {
		if p.HasWhole(t) {
			to = t
		}
	}
	return from, to
}
