package grid

// Index holds things and the eyes that see them, each numbered from 0.
type Index struct {
	Shape
	things, eyes layer
	movedThings  []move
	movedEyes    []move
	suspected    uint64
}

// move is a change of cell since the last Settle. An eye may begin or end without a cell.
type move struct {
	id      int32
	from    Cell
	to      Cell // of an eye
	was, is bool // whether from and to are cells
}

// New makes an empty index.
func New(s Shape) *Index { return &Index{Shape: s} }

// Thing returns the cell of a thing. It reports false if the thing is not in the index.
func (x *Index) Thing(id int) (Cell, bool) { return x.things.at(id) }

// Eye returns the cell of an eye as of the last Settle. It reports false if the eye is not in the
// index.
func (x *Index) Eye(id int) (Cell, bool) { return x.eyes.at(id) }

// AddThing adds a thing. Settle does not report its pairs: see Seen.
func (x *Index) AddThing(id int, at Cell) { x.things.put(id, at) }

// MoveThing moves a thing that is in the index, at most once between two calls of Settle.
func (x *Index) MoveThing(id int, to Cell) {
	if from, _ := x.things.at(id); from != to {
		x.things.put(id, to)
		x.movedThings = append(x.movedThings, move{id: int32(id), from: from, was: true})
	}
}

// RemoveThing removes a thing, which must not have been moved since the last Settle. Settle does
// not report its pairs.
func (x *Index) RemoveThing(id int) { x.things.remove(id) }

// MoveEye makes the next Settle move an eye to a cell, or remove it if is is false. It may be
// called at most once for an eye between two calls of Settle.
func (x *Index) MoveEye(id int, to Cell, is bool) {
	from, was := x.eyes.at(id)
	if was != is || from != to {
		x.movedEyes = append(x.movedEyes, move{id: int32(id), from: from, to: to, was: was, is: is})
	}
}

// Settle applies the moves of eyes since the last call, and calls suspect for pairs of a thing and
// an eye of which at least one has moved: for each pair that has become Inside or Outside, perhaps
// more than once, and for some other pairs.
func (x *Index) Settle(suspect func(thing, eye int)) {
	report := func(thing, eye int) {
		x.suspected++
		suspect(thing, eye)
	}
	// First visit the moved things with the eyes at their old cells, then the moved eyes with the
	// things at their new cells.
	for _, m := range x.movedThings {
		m.to, m.is = x.things.at(int(m.id))
		x.walk(&x.eyes, &m, func(eye int) { report(int(m.id), eye) })
	}
	x.movedThings = x.movedThings[:0]
	for _, m := range x.movedEyes {
		if m.is {
			x.eyes.put(int(m.id), m.to)
		} else {
			x.eyes.remove(int(m.id))
		}
		x.walk(&x.things, &m, func(thing int) { report(thing, int(m.id)) })
	}
	x.movedEyes = x.movedEyes[:0]
}

// Seen calls suspect for each pair of the thing, which may be new, and an eye to which it was
// Inside at the last Settle.
func (x *Index) Seen(id int, suspect func(thing, eye int)) {
	at, ok := x.things.at(id)
	if !ok {
		return
	}
	x.eyes.around(at, x.near, func(from Cell, first int32) {
		if x.Zone(at, from) != Inside {
			return
		}
		for k := first; k != 0; k = x.eyes.things[k-1].next {
			x.suspected++
			suspect(id, int(k-1))
		}
	})
}

// walk calls fn for each eye (if m is the move of a thing) or thing (if m is the move of an eye)
// that the move may have brought Inside or Outside.
func (x *Index) walk(others *layer, m *move, fn func(id int)) {
	visit := func(at Cell, first int32) {
		was, is := Outside, Outside
		if m.was {
			was = x.Zone(m.from, at)
		}
		if m.is {
			is = x.Zone(m.to, at)
		}
		if matters(was, is) {
			for k := first; k != 0; k = others.things[k-1].next {
				fn(int(k - 1))
			}
		}
	}
	// Pairs that become Outside are around the start of the move, pairs that become Inside around
	// its end. After a move to an adjacent cell the latter are within reach of the start as well,
	// because the margin is at least a cell.
	if m.was {
		others.around(m.from, x.reach, visit)
	}
	if m.is && !(m.was && m.from.within(m.to, 1)) {
		others.around(m.to, x.near, func(at Cell, first int32) {
			if !m.was || !at.within(m.from, x.reach) {
				visit(at, first)
			}
		})
	}
}

// Cost returns the total number of visited cells and of suspected pairs.
func (x *Index) Cost() (cells, pairs uint64) { return x.things.looked + x.eyes.looked, x.suspected }
