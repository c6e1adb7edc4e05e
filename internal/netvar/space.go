package netvar

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
)

// MaxEyes bounds the eyes of a client in one space: a split screen, a map and a camera or two.
const MaxEyes = 8

// MaxSpaces bounds the spaces of a world, because each client may have a seat in all of them.
const MaxSpaces = 16

// Space limits the view of each client to objects near one of its eyes, for the classes that the
// space holds. The audience of an object must admit the client too. A client without eyes sees no
// object of the space, except its own.
type Space struct {
	w      *World
	number int
	index  *grid.Index
	owner  func(owner uint64) *Peer // nil: owners see no more than others
	seats  []*seat                  // by eye
	free   []int                    // unused eyes
	shut   []int                    // eyes that are unused after the next Settle
	moving []*seat                  // seats with eyes set since the last capture
	taken  []*seat                  // seats with an eye that follows an object
	doubts []*seat                  // seats with suspects
	doubt  func(slot, eye int)      // adds a suspect
}

// position is the space of a class, and the function that locates its objects.
type position struct {
	space *Space
	at    func(live unsafe.Pointer) (x, y, z float64)
}

// Eye is a point from which a client sees: that of an object in the space, or a fixed one.
type Eye struct {
	Object  *Object // nil: use X, Y, Z
	X, Y, Z float64
}

// seat is the state of one client in a space.
type seat struct {
	p        *Peer // nil once the client is closed
	eyes     []eye
	wanted   []Eye  // from the next capture on, while the seat is moving
	suspects bitset // slots that may have entered or left the range

	moving, taken, doubtful bool // in the list of that name
}

type eye struct {
	id     int
	object *Object
}

// NewSpace adds a space to the world. owner may be nil. It returns the client behind an owner, or
// nil; that client always sees the owner's objects.
func (w *World) NewSpace(s grid.Shape, owner func(owner uint64) *Peer) (*Space, error) {
	if len(w.spaces) == MaxSpaces {
		return nil, fmt.Errorf("%d grids are the most that a room has", MaxSpaces)
	}
	sp := &Space{w: w, number: len(w.spaces), index: grid.New(s), owner: owner}
	sp.doubt = sp.suspect
	w.spaces = append(w.spaces, sp)
	return sp, nil
}

// Hold adds a class to the space. at returns the position of an object from its live value, and is
// called when an edited object is captured. The class must have no objects yet, and be in no other
// space.
func (s *Space) Hold(c *Class, at func(live unsafe.Pointer) (x, y, z float64)) error {
	switch p := &s.w.positions[c.index]; {
	case p.space != nil:
		return fmt.Errorf("class %q is on a grid already", c.name)
	case s.w.classes[c.index].count() > 0:
		return fmt.Errorf("class %q has objects already", c.name)
	default:
		*p = position{s, at}
		return nil
	}
}

// Holds reports whether the objects of a class are in the space.
func (s *Space) Holds(c *Class) bool { return s.w.positions[c.index].space == s }

// SetEyes sets the eyes of a client, at most MaxEyes, from the next capture on. An eye without a
// place in the space, such as an object of a class that it does not hold, sees nothing. For a
// closed client the call has no effect.
func (s *Space) SetEyes(p *Peer, eyes ...Eye) {
	if slices.Contains(s.w.peers, p) {
		s.setEyes(p, eyes)
	}
}

func (s *Space) setEyes(p *Peer, eyes []Eye) {
	t := s.seat(p)
	t.wanted = append(t.wanted[:0], eyes[:min(len(eyes), MaxEyes)]...)
	if !t.moving {
		t.moving = true
		s.moving = append(s.moving, t)
	}
}

func (s *Space) seat(p *Peer) *seat {
	for len(p.seats) <= s.number {
		p.seats = append(p.seats, nil)
	}
	if p.seats[s.number] == nil {
		p.seats[s.number] = &seat{p: p}
	}
	return p.seats[s.number]
}

// place puts a captured object into its cell.
func (s *Space) place(o *Object) {
	slot := o.id.slot()
	if c := s.cellOf(o); o.published() {
		s.index.MoveThing(slot, c)
	} else {
		s.index.AddThing(slot, c)
	}
}

func (s *Space) cellOf(o *Object) grid.Cell {
	c, bad := s.index.Cell(s.w.positions[o.class.index].at(o.live))
	if bad {
		s.w.stats.BadPositions++
	}
	return c
}

// leave removes a despawned object. Eyes that follow it keep their position.
func (s *Space) leave(o *Object) { s.index.RemoveThing(o.id.slot()) }

// admits reports whether a client may see an object: it is near one of the client's eyes, or
// visible and within the margin, or the client's own.
func (s *Space) admits(o *Object, p *Peer) bool {
	if s.ownerOf(o) == p {
		return true
	}
	if s.number >= len(p.seats) || p.seats[s.number] == nil {
		return false
	}
	at, ok := s.index.Thing(o.id.slot())
	if !ok { // not captured yet
		at = s.cellOf(o)
	}
	nearest := grid.Outside
	for _, e := range p.seats[s.number].eyes {
		if from, ok := s.index.Eye(e.id); ok {
			nearest = max(nearest, s.index.Zone(at, from))
		}
	}
	return nearest == grid.Inside || nearest == grid.Border && p.shows(o)
}

// ownerOf returns the client that always sees o, or nil.
func (s *Space) ownerOf(o *Object) *Peer {
	if s.owner == nil || o.owner == 0 {
		return nil
	}
	return s.owner(o.owner)
}

// moveEyes moves the eyes, and stores the pairs of client and object that must be judged.
func (s *Space) moveEyes() {
	for _, t := range s.moving {
		t.moving = false
		s.take(t)
	}
	clear(s.moving)
	s.moving = s.moving[:0]
	kept := s.taken[:0]
	for _, t := range s.taken {
		if t.taken = s.follow(t); t.taken {
			kept = append(kept, t)
		}
	}
	clear(s.taken[len(kept):])
	s.taken = kept
	s.index.Settle(s.doubt)
	for _, id := range s.shut {
		s.seats[id] = nil
	}
	s.free, s.shut = append(s.free, s.shut...), s.shut[:0]
}

// take applies the wanted eyes of a client.
func (s *Space) take(t *seat) {
	for i, want := range t.wanted {
		if i == len(t.eyes) {
			t.eyes = append(t.eyes, eye{id: s.newEye(t)})
		}
		e := &t.eyes[i]
		e.object = want.Object
		if want.Object == nil {
			at, bad := s.index.Cell(want.X, want.Y, want.Z)
			if bad {
				s.w.stats.BadPositions++
			}
			s.index.MoveEye(e.id, at, true)
			continue
		}
		if _, ok := s.index.Thing(want.Object.id.slot()); !ok || !want.Object.alive {
			e.object = nil
			s.index.MoveEye(e.id, grid.Cell{}, false)
		} else if !t.taken {
			t.taken = true
			s.taken = append(s.taken, t)
		}
	}
	for _, e := range t.eyes[len(t.wanted):] {
		s.index.MoveEye(e.id, grid.Cell{}, false)
		s.shut = append(s.shut, e.id)
	}
	t.eyes = slices.Delete(t.eyes, len(t.wanted), len(t.eyes)) // drops the objects too
	clear(t.wanted)
}

func (s *Space) newEye(t *seat) int {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		s.seats[id] = t
		return id
	}
	s.seats = append(s.seats, t)
	return len(s.seats) - 1
}

// follow moves the eyes that follow objects, and reports whether there are any. If the object is
// dead, its eye keeps the position.
func (s *Space) follow(t *seat) (any bool) {
	for i := range t.eyes {
		e := &t.eyes[i]
		switch {
		case e.object == nil:
		case !e.object.alive:
			e.object = nil
		default:
			at, _ := s.index.Thing(e.object.id.slot())
			s.index.MoveEye(e.id, at, true)
			any = true
		}
	}
	return any
}

// suspectAround suspects a new object for the clients near it and for its owner. No client has it
// yet, so the others need no check.
func (s *Space) suspectAround(o *Object) {
	slot := o.id.slot()
	s.index.Seen(slot, s.doubt)
	if p := s.ownerOf(o); p != nil {
		s.suspectFor(slot, s.seat(p))
	}
}

func (s *Space) suspect(slot, eye int) {
	if t := s.seats[eye]; t.p != nil {
		s.suspectFor(slot, t)
	}
}

func (s *Space) suspectFor(slot int, t *seat) {
	if t.suspects.set(slot); !t.doubtful {
		t.doubtful = true
		s.doubts = append(s.doubts, t)
	}
}

// judgeSuspects judges the pairs that moveEyes has stored. All of these objects are alive and
// published, because dead objects are in no cell.
func (s *Space) judgeSuspects() {
	for _, t := range s.doubts {
		for slot := t.suspects.next(0); slot >= 0; slot = t.suspects.next(slot + 1) {
			s.w.judgeFor(s.w.slots[slot], t.p)
		}
		clear(t.suspects)
		t.doubtful = false
	}
	clear(s.doubts)
	s.doubts = s.doubts[:0]
}

// close removes the eyes of a client.
func (s *Space) close(p *Peer) {
	s.setEyes(p, nil)
	s.seat(p).p = nil
}

// Cost returns the number of visited cells and of suspected pairs, since the space was made.
func (s *Space) Cost() (cells, pairs uint64) { return s.index.Cost() }

// inSpace reports whether the objects of a class are in a space.
func (w *World) inSpace(c *Class) bool { return w.positions[c.index].space != nil }
