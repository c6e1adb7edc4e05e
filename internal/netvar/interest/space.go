package interest

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/state"
)

// MaxViewpoints bounds the viewpoints of a client in one space: a split screen, a map and a camera
// or two.
const MaxViewpoints = 8

// MaxSpaces bounds the spaces of a world, because each client may have an observer in all of them.
const MaxSpaces = 16

// Space limits the view of each client to objects near one of its viewpoints, for the classes that
// the space holds. The audience of an object must include the client too. A client without
// viewpoints sees no object of the space, except its own.
type Space struct {
	m         *Map
	number    int
	index     *grid.Index
	owner     func(owner uint64) *Viewer // nil: owners have no special view
	observers []*observer                // by viewpoint
	free      []int                      // unused viewpoints
	shut      []int                      // viewpoints that are unused after the next Settle
	moving    []*observer                // observers with viewpoints set since the last capture
	taken     []*observer                // observers with a viewpoint that follows an object
	listed    []*observer                // observers with candidates
	add       func(slot, viewpoint int)  // addCandidate
}

// position is the space of a class, and the function that locates its objects.
type position struct {
	space *Space
	at    func(live unsafe.Pointer) (x, y, z float64)
}

// Viewpoint is a point from which a client sees: the position of an object in the space, or a fixed
// position.
type Viewpoint struct {
	Object  *state.Object // nil: use X, Y, Z
	X, Y, Z float64
}

// observer is the state of one client in a space.
type observer struct {
	v          *Viewer // nil once the client is closed
	viewpoints []viewpoint
	wanted     []Viewpoint // viewpoints from the next capture on, while the observer is moving
	candidates bitset.Set  // slots that may have entered or left the range

	moving, taken, listed bool // in the list of that name
}

type viewpoint struct {
	id     int
	object *state.Object
}

// NewSpace adds a space to the world, or returns an error if it has MaxSpaces. The function owner,
// which may be nil, returns the viewer of an owner's client, or nil. That client always sees the
// owner's objects.
func (m *Map) NewSpace(s grid.Shape, owner func(owner uint64) *Viewer) (*Space, error) {
	if len(m.spaces) == MaxSpaces {
		return nil, fmt.Errorf("%d grids are the most that a room has", MaxSpaces)
	}
	sp := &Space{m: m, number: len(m.spaces), index: grid.New(s), owner: owner}
	sp.add = sp.addCandidate
	m.spaces = append(m.spaces, sp)
	return sp, nil
}

// Hold adds a class to the space. at returns the position of an object from its live value, and is
// called when an edited object is captured. The class must have no objects yet, and be in no other
// space.
func (s *Space) Hold(c *state.Class, at func(live unsafe.Pointer) (x, y, z float64)) error {
	switch p := &s.m.positions[c.Index()]; {
	case p.space != nil:
		return fmt.Errorf("class %q is on a grid already", c.Name())
	case s.m.objects.Count(c) > 0:
		return fmt.Errorf("class %q has objects already", c.Name())
	default:
		*p = position{s, at}
		return nil
	}
}

// Holds reports whether the objects of a class are in the space.
func (s *Space) Holds(c *state.Class) bool { return s.m.positions[c.Index()].space == s }

// SetViewpoints sets the viewpoints of a client, at most MaxViewpoints, from the next capture on. A
// viewpoint without a place in the space, such as an object of a class that it does not hold, sees
// nothing. For a closed client the call has no effect.
func (s *Space) SetViewpoints(v *Viewer, viewpoints ...Viewpoint) {
	if slices.Contains(s.m.viewers, v) {
		s.setViewpoints(v, viewpoints)
	}
}

func (s *Space) setViewpoints(v *Viewer, viewpoints []Viewpoint) {
	t := s.observer(v)
	t.wanted = append(t.wanted[:0], viewpoints[:min(len(viewpoints), MaxViewpoints)]...)
	if !t.moving {
		t.moving = true
		s.moving = append(s.moving, t)
	}
}

func (s *Space) observer(v *Viewer) *observer {
	for len(v.observers) <= s.number {
		v.observers = append(v.observers, nil)
	}
	if v.observers[s.number] == nil {
		v.observers[s.number] = &observer{v: v}
	}
	return v.observers[s.number]
}

// Place puts a captured object of a space into its cell.
func (m *Map) Place(o *state.Object) {
	s, slot := m.spaceOf(o), o.Slot()
	if c := s.cellOf(o); o.Published() {
		s.index.MoveThing(slot, c)
	} else {
		s.index.AddThing(slot, c)
	}
}

func (s *Space) cellOf(o *state.Object) grid.Cell {
	c, bad := s.index.Cell(s.m.positions[o.WireClass().Index()].at(o.Live()))
	if bad {
		s.m.stats.BadPositions++
	}
	return c
}

// visible reports whether a client may see an object: the object is near one of the client's
// viewpoints, or already visible and within the margin, or the client owns it.
func (s *Space) visible(o *state.Object, v *Viewer) bool {
	if s.ownerOf(o) == v {
		return true
	}
	if s.number >= len(v.observers) || v.observers[s.number] == nil {
		return false
	}
	at, ok := s.index.Thing(o.Slot())
	if !ok { // not captured yet
		at = s.cellOf(o)
	}
	nearest := grid.Outside
	for _, e := range v.observers[s.number].viewpoints {
		if from, ok := s.index.Eye(e.id); ok {
			nearest = max(nearest, s.index.Zone(at, from))
		}
	}
	return nearest == grid.Inside || nearest == grid.Border && v.client.Shown(o.Slot())
}

// ownerOf returns the client that always sees o, or nil.
func (s *Space) ownerOf(o *state.Object) *Viewer {
	if s.owner == nil || o.Owner() == 0 {
		return nil
	}
	return s.owner(o.Owner())
}

// moveViewpoints moves the viewpoints, and stores the pairs of client and object that must be
// checked.
func (s *Space) moveViewpoints() {
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
	s.index.Settle(s.add)
	for _, id := range s.shut {
		s.observers[id] = nil
	}
	s.free, s.shut = append(s.free, s.shut...), s.shut[:0]
}

// take applies the wanted viewpoints of a client.
func (s *Space) take(t *observer) {
	for i, want := range t.wanted {
		if i == len(t.viewpoints) {
			t.viewpoints = append(t.viewpoints, viewpoint{id: s.newViewpoint(t)})
		}
		e := &t.viewpoints[i]
		e.object = want.Object
		if want.Object == nil {
			at, bad := s.index.Cell(want.X, want.Y, want.Z)
			if bad {
				s.m.stats.BadPositions++
			}
			s.index.MoveEye(e.id, at, true)
			continue
		}
		if _, ok := s.index.Thing(want.Object.Slot()); !ok || !want.Object.Alive() {
			e.object = nil
			s.index.MoveEye(e.id, grid.Cell{}, false)
		} else if !t.taken {
			t.taken = true
			s.taken = append(s.taken, t)
		}
	}
	for _, e := range t.viewpoints[len(t.wanted):] {
		s.index.MoveEye(e.id, grid.Cell{}, false)
		s.shut = append(s.shut, e.id)
	}
	t.viewpoints = slices.Delete(t.viewpoints, len(t.wanted), len(t.viewpoints))
	clear(t.wanted)
}

func (s *Space) newViewpoint(t *observer) int {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		s.observers[id] = t
		return id
	}
	s.observers = append(s.observers, t)
	return len(s.observers) - 1
}

// follow moves the viewpoints that follow objects, and reports whether there are any. If the object
// is dead, its viewpoint keeps the position.
func (s *Space) follow(t *observer) (any bool) {
	for i := range t.viewpoints {
		e := &t.viewpoints[i]
		switch {
		case e.object == nil:
		case !e.object.Alive():
			e.object = nil
		default:
			at, _ := s.index.Thing(e.object.Slot())
			s.index.MoveEye(e.id, at, true)
			any = true
		}
	}
	return any
}

// enter makes a new object a candidate for the clients near it and for its owner. No client has it
// yet, so other clients need no check.
func (s *Space) enter(o *state.Object) {
	slot := o.Slot()
	s.index.Seen(slot, s.add)
	if v := s.ownerOf(o); v != nil {
		s.addFor(slot, s.observer(v))
	}
}

func (s *Space) addCandidate(slot, viewpoint int) {
	if t := s.observers[viewpoint]; t.v != nil {
		s.addFor(slot, t)
	}
}

func (s *Space) addFor(slot int, t *observer) {
	if t.candidates.Add(slot); !t.listed {
		t.listed = true
		s.listed = append(s.listed, t)
	}
}

// checkCandidates checks the pairs that moveViewpoints has stored. All of these objects are alive
// and published, because dead objects are in no cell.
func (s *Space) checkCandidates() {
	for _, t := range s.listed {
		for slot := t.candidates.Next(0); slot >= 0; slot = t.candidates.Next(slot + 1) {
			s.m.check(s.m.objects.Slots[slot], t.v)
		}
		clear(t.candidates)
		t.listed = false
	}
	clear(s.listed)
	s.listed = s.listed[:0]
}

// close removes the viewpoints of a client.
func (s *Space) close(v *Viewer) {
	s.setViewpoints(v, nil)
	s.observer(v).v = nil
}

// Cost returns the number of visited cells and of candidate pairs, since the space was made.
func (s *Space) Cost() (cells, pairs uint64) { return s.index.Cost() }

// HasSpaces reports whether the world has a space.
func (m *Map) HasSpaces() bool { return len(m.spaces) > 0 }

// InSpace reports whether the objects of a class are in a space.
func (m *Map) InSpace(c *state.Class) bool { return m.positions[c.Index()].space != nil }

// spaceOf returns the space of an object, or nil.
func (m *Map) spaceOf(o *state.Object) *Space { return m.positions[o.WireClass().Index()].space }
