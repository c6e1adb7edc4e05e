package netvar

// All clients that need the same encoding in a tick share it: the encodings of an object (residual)
// and the runs of a block (run). Each cache has a bounded number of places. If all places are
// taken, a new entry replaces a random entry. So early clients with unusual acknowledgements delay
// the sharing between other clients only until each of those has requested its encoding once. To
// replace the oldest entry would be worse: with slightly more origins than places, no client would
// find its entry again.

// places is the state from which the entry to replace in a full cache is chosen.
type places struct {
	by  []uint64 // by place: the last snapshot that uses it, during which it is not replaced
	rng rng
}

// ask records that a snapshot uses a place.
func (s *places) ask(i int, snapshot uint64) { s.by[i] = snapshot }

// add returns the place for a new entry, or -1 if the cache is full and the snapshot itself uses
// the randomly chosen place.
func (s *places) add(most int, snapshot uint64) int {
	if n := len(s.by); n < most {
		s.by = append(s.by, snapshot)
		return n
	}
	i := s.rng.below(most)
	if s.by[i] == snapshot {
		return -1
	}
	s.by[i] = snapshot
	return i
}

// rng is the linear congruential generator of Numerical Recipes, by its state.
type rng uint32

// below returns a random number below n.
func (d *rng) below(n int) int {
	*d = *d*1664525 + 1013904223
	return int(uint64(*d) * uint64(n) >> 32)
}

// reset empties all places.
func (s *places) reset() { s.by = s.by[:0] }

// unsharedRun returns a run that is not cached. It serves one client until its snapshot is cut.
func (w *World) unsharedRun() *run {
	if w.unsharedUsed == len(w.unshared) {
		w.unshared = append(w.unshared, new(run))
	}
	w.unsharedUsed++
	return w.unshared[w.unsharedUsed-1]
}
