package netvar

// Settled reports whether the client has acknowledged its whole state as of the last capture, knows
// that its first state is complete, and no digest is requested. The last object of a first state
// may be a record on the stream: the client learns only by the next snapshot that none is missing.
func (p *Peer) Settled() bool {
	return !p.pending.Some() && !p.neverSent.Some() && len(p.large.list) == 0 && p.digests == 0 && p.first.left == 0 && p.first.told
}

// Still reports whether the next capture would have no effect, at any tick.
func (w *World) Still() bool {
	return max(len(w.dirty), len(w.gone), len(w.holds.late)) == 0 && w.Map.Settled()
}
