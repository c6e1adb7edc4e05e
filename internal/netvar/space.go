package netvar

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
)

// MaxEyes bounds the eyes of a client in one space: a split screen, a map and a camera or two.
const MaxEyes = 8

// MaxSpaces bounds the spaces of a world: each client has a seat in all of them.
const MaxSpaces = 16

// Space shows to each client what is near one of its eyes: objects of the classes that lie in it,
// beside what their audiences say; both must admit. Who has no eye in it sees nothing of it.
type Space struct {
	w      *World
	number int
	index  *grid.Index
	owner  func(owner uint64) *Peer // nil: owners see no more than others
	seats  []*seat                  // by eye
	free   []int                    // eyes that nobody has
	shut   []int                    // eyes that nobody has after the next Settle
	moving []*seat                  // whose eyes were set since the last capture
	taken  []*seat                  // with an eye that is in an object
	doubts []*seat                  // with suspects
	doubt  func(slot, eye int)      // notes a suspect
}

// position is where the objects of a class lie.
type position struct {
	space *Space
	at    func(live unsafe.Pointer) (x, y, z float64)
}

// Eye is a point from which a client sees: an object of the space, or a place.
type Eye struct {
	Object  *Object // nil: the place
	X, Y, Z float64
}

// seat is what a space knows of one client.
type seat struct {
	p        *Peer // nil once the client has gone
	eyes     []eye
	wanted   []Eye  // from the next capture on, while it is moving
	suspects bitset // slots that may have come near or gone

	moving, taken, doubtful bool // is in the list of that name
}

type eye struct {
	id     int
	object *Object
}

// NewSpace makes a space of the world. owner, if it is not nil, returns the client, or nil, that
// owns what this owner owns, which it then always sees.
func (w *World) NewSpace(s grid.Shape, owner func(owner uint64) *Peer) (*Space, error) {
	if len(w.spaces) == MaxSpaces {
		return nil, fmt.Errorf("%d grids are the most that a room has", MaxSpaces)
	}
	sp := &Space{w: w, number: len(w.spaces), index: grid.New(s), owner: owner}
	sp.doubt = sp.suspect
	w.spaces = append(w.spaces, sp)
	return sp, nil
}

// Hold puts the objects of a class into the space, at the place that the function finds in their
// live value: it is asked at the capture of an edited object. The class has no objects yet, and is
// in no other space.
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

// Holds tells whether the objects of a class lie in the space.
func (s *Space) Holds(c *Class) bool { return s.w.positions[c.index].space == s }

// SetEyes lets a client see from these from the next capture on, at most MaxEyes. What has no place
// in the space, as an object of a class that it does not hold, sees nothing. A client that was
// closed gets none.
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

// leave takes a despawned object out. Eyes that follow it stay where they are.
func (s *Space) leave(o *Object) { s.index.RemoveThing(o.id.slot()) }

// admits tells whether a client may see an object: it is near one of its eyes, or was and is not
// far yet.
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

// ownerOf returns the client that sees o wherever it is, or nil.
func (s *Space) ownerOf(o *Object) *Peer {
	if s.owner == nil || o.owner == 0 {
		return nil
	}
	return s.owner(o.owner)
}

// moveEyes moves the eyes, and notes what of all pairs of client and object is to be judged.
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

// take gives a client the eyes that it wants.
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
	t.eyes = slices.Delete(t.eyes, len(t.wanted), len(t.eyes)) // It lets go of the objects.
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

// follow moves the eyes that are in objects, and tells whether there are any. One whose object is
// gone stays where it was.
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

// suspectAround suspects an object that is new: nobody has it, so of all clients only those near
// it, and its owner, may see it.
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

// judgeSuspects asks for the pairs that moveEyes has noted. All of these objects live and are
// published, since what has died is in no cell any more.
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

// close takes away the eyes of a client that goes.
func (s *Space) close(p *Peer) {
	s.setEyes(p, nil)
	s.seat(p).p = nil
}

// Cost says how many cells were visited, and how many pairs suspected, since the space was made.
func (s *Space) Cost() (cells, pairs uint64) { return s.index.Cost() }

// inSpace tells whether the objects of a class lie in a space.
func (w *World) inSpace(c *Class) bool { return w.positions[c.index].space != nil }
