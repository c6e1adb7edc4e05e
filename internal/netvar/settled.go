package netvar

// Settled reports whether the client has all that it shall have, as of the last capture, and has
// said so: nothing is owed to it, and nothing was asked for that a snapshot has to answer.
func (p *Peer) Settled() bool {
	return !p.owed.some() && !p.blank.some() && len(p.large.list) == 0 && p.digests == 0 && p.first.left == 0
}

// Still reports whether the next capture would find nothing to do, whatever its tick.
func (w *World) Still() bool {
	return max(len(w.dirty), len(w.gone), len(w.holds.late), len(w.unjudged), len(w.doubtful), len(w.fresh)) == 0
}

// some reports whether anything is in the set.
func (b bitset) some() bool {
	for _, word := range b {
		if word != 0 {
			return true
		}
	}
	return false
}
