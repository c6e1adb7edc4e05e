package netvar

import "math"

// What is encoded for one client serves all clients that need the same in this tick: the variants
// of an object (residual) and the runs of 64 neighbours (run). Each of these has a bounded number
// of places, and what gets none is encoded for its client alone. While
// there are places, whoever asks gets one. After that the place goes for which the fewest clients
// come back. Otherwise a few clients that acknowledge like nobody else could keep all others from
// sharing, if only they had joined first.

// crowds counts at each capture how many clients lead from the same origin: from their newest mark
// and the mark where the trend comes from. A client with holes may choose another origin after all.
// It is not counted there, so that the places of others are a little safer than they need be.
type crowds struct {
	tick   uint64
	count  [maxMarks]*[maxMarks]uint32 // by the age of the one, and its distance from the other
	newest [maxMarks]uint32            // by the age of the one
}

// begin forgets all clients, for a capture.
func (s *crowds) begin(tick uint64) {
	for age, n := range s.newest {
		if n > 0 {
			clear(s.count[age][:])
		}
	}
	clear(s.newest[:])
	s.tick = tick
}

// add counts a client.
func (s *crowds) add(m *marks) {
	if m.newest == 0 {
		return
	}
	if age := s.tick - m.newest; age < maxMarks {
		s.newest[age]++
		if s.count[age] == nil { // Few ages ever come, and of a world without clients none.
			s.count[age] = new([maxMarks]uint32)
		}
		s.count[age][m.newest-m.trendFrom(m.newest, s.tick)]++
	}
}

// sharing returns how many clients lead from the same origin. It counts none whose newest mark is
// longer ago than marks reach back.
func (s *crowds) sharing(from origin) uint32 {
	age := s.tick - from.asOf
	if age >= maxMarks || s.newest[age] == 0 {
		return 0
	}
	return s.count[age][from.asOf-from.trendFrom]
}

// between returns how many clients have their newest mark since a tick and before another.
func (s *crowds) between(since, before uint64) (n uint32) {
	for tick := max(since, s.tick-min(s.tick, maxMarks-1)); tick < min(before, s.tick); tick++ {
		n += s.newest[s.tick-tick]
	}
	return n
}

// crowd is how many clients may ask for a variant of an object: for a full one whoever is new, and
// for one that leads from a version those of which this was the newest as of their mark.
func (w *World) crowd(o *Object, from basis) uint32 {
	switch {
	case from.asOf == 0:
		return math.MaxUint32
	case from.exact:
		if i := o.hist.floor(from.asOf, o.changed); i >= 0 && i+1 < int(o.hist.n) {
			return w.crowds.between(from.asOf, o.hist.tick(i+1))
		}
		return 0
	}
	return w.crowds.sharing(from.origin)
}

// share is a place that is taken.
type share struct {
	crowd uint32 // how many clients may ask for what is there
	asked uint32 // how many of them have asked
	by    uint64 // the snapshot that has asked last: the place stays taken until that is cut
}

// shares are the places of one list.
type shares struct {
	list []share
	like uint // how many newcomers found only places of crowds as large as theirs
}

// oneIn is of how many such newcomers one gets a place. If each did, and there were a few more of
// them than places, nobody would find what it has asked for before.
const oneIn = 4

// ask notes that a snapshot takes what is in a place, and returns how many have.
func (s *shares) ask(i int, snapshot uint64) uint32 {
	a := &s.list[i]
	if a.by != snapshot {
		a.asked++
	}
	a.by = snapshot
	return a.asked
}

// admit returns the place that a newcomer gets, or -1. If none is left, a place goes for which
// every client has asked that may, or else one of a smaller crowd. Now and then a place of a crowd
// as large goes, if nobody has asked for it again.
func (s *shares) admit(most int, crowd uint32, snapshot uint64) int {
	if n := len(s.list); n < most {
		s.list = append(s.list, share{crowd, 1, snapshot})
		return n
	}
	gone := -1
	for i := range s.list {
		if a := &s.list[i]; a.by != snapshot && a.yields(crowd) && (gone < 0 || a.before(&s.list[gone])) {
			gone = i
		}
	}
	if gone < 0 {
		return -1
	}
	if a := &s.list[gone]; a.rank() != nobodyIsLeft && a.crowd == crowd {
		if s.like++; s.like%oneIn != 0 {
			return -1
		}
	}
	s.list[gone] = share{crowd, 1, snapshot}
	return gone
}

// The ranks of places, in the order in which they go.
const (
	nobodyIsLeft = iota // everybody who may ask for it has
	askedOnce
	askedAgain
)

// rank is that of a place.
func (a *share) rank() int {
	switch {
	case a.asked >= a.crowd:
		return nobodyIsLeft
	case a.asked == 1:
		return askedOnce
	}
	return askedAgain
}

// yields reports whether a place may go for a newcomer of such a crowd.
func (a *share) yields(crowd uint32) bool {
	return a.crowd < crowd || a.rank() == nobodyIsLeft || a.crowd == crowd && a.asked == 1
}

// before reports whether a place goes rather than another one.
func (a *share) before(b *share) bool {
	if x, y := a.rank(), b.rank(); x != y {
		return x < y
	}
	return a.crowd < b.crowd
}

// reset empties all places.
func (s *shares) reset() { s.list, s.like = s.list[:0], 0 }

// admit returns where a variant of an object is kept, or -1. If no place is left, a variant of a
// smaller crowd goes, but not more often than there are places, since its bits stay in the arena.
func (c *residuals) admit(w *World, o *Object, from basis) int {
	if n := c.n; n < maxResiduals {
		c.n++
		c.crowds = append(c.crowds[:n], w.crowd(o, from))
		return n
	}
	if c.gone == maxResiduals {
		return -1
	}
	gone, crowd := -1, w.crowd(o, from)
	for i, other := range c.crowds {
		if other < crowd && (gone < 0 || other < c.crowds[gone]) {
			gone = i
		}
	}
	if gone >= 0 {
		c.crowds[gone] = crowd
		c.gone++
	}
	return gone
}

// unsharedRun returns a run that has no place and serves one client, until its snapshot is cut.
func (w *World) unsharedRun() *run {
	if w.unsharedUsed == len(w.unshared) {
		w.unshared = append(w.unshared, new(run))
	}
	w.unsharedUsed++
	return w.unshared[w.unsharedUsed-1]
}
