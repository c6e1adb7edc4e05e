package netvar

// What is encoded for one client serves all clients that need the same in this tick: the variants
// of an object (residual) and the runs of 64 neighbours (run). Each of these has a bounded number
// of places. Once all are taken, a newcomer gets a random one of them. So a few clients that
// acknowledge like nobody else, and have joined first, keep the others from sharing only until each
// of those has asked once. Taking the oldest place would be worse: with a few more origins than
// places nobody would find what it has asked for before.

// places are those of one list.
type places struct {
	by   []uint64 // by place: the snapshot that has asked last, which needs it until that is cut
	dice dice
}

// ask notes that a snapshot takes what is in a place.
func (s *places) ask(i int, snapshot uint64) { s.by[i] = snapshot }

// admit returns the place that a newcomer gets, or -1.
func (s *places) admit(most int, snapshot uint64) int {
	if n := len(s.by); n < most {
		s.by = append(s.by, snapshot)
		return n
	}
	i := s.dice.below(most)
	if s.by[i] == snapshot {
		return -1
	}
	s.by[i] = snapshot
	return i
}

// dice draws random numbers by the generator of Numerical Recipes.
type dice uint32

// below draws a number below n.
func (d *dice) below(n int) int {
	*d = *d*1664525 + 1013904223
	return int(uint64(*d) * uint64(n) >> 32)
}

// reset empties all places.
func (s *places) reset() { s.by = s.by[:0] }

// maxGone is how many variants of an object go for others in a tick: their bits stay in the arena.
const maxGone = 3 * maxResiduals

// admit returns where a variant of an object is kept, or -1.
func (c *residuals) admit(w *World) int {
	if n := c.n; n < maxResiduals {
		c.n++
		return n
	}
	if c.gone == maxGone {
		return -1
	}
	c.gone++
	return w.dice.below(maxResiduals)
}

// unsharedRun returns a run that has no place and serves one client, until its snapshot is cut.
func (w *World) unsharedRun() *run {
	if w.unsharedUsed == len(w.unshared) {
		w.unshared = append(w.unshared, new(run))
	}
	w.unsharedUsed++
	return w.unshared[w.unsharedUsed-1]
}
