package netloop

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
)

// Grid shows to each client what is near: objects of the classes on it ([Class.PlaceOn]) spawn
// for a client when they come within a radius of one of its viewpoints, and despawn when they
// have left it by more than a margin. A client without a viewpoint sees nothing of them. Objects
// may have a target too ([VisibleTo]): both must admit a client.
//
// Space is cut into cells, and who moves within a cell costs nothing. A client has every object
// within Radius of a viewpoint; it keeps those that it has up to Radius + Margin at least; and
// beyond that, and less than two diagonals of a cell more, it has none. What comes and goes is
// found at the end of a tick, among objects that were edited in it. Positions that are not a
// number, infinite, or more than a million cells from the origin lie in the outermost cell, and are
// counted in netloop_grid_bad_positions_total.
type Grid struct {
	room  *Room
	space *netvar.Space // nil when it was rejected
}

// GridSpec describes a [Grid], in the game's unit of length.
type GridSpec struct {
	// Radius is how near objects appear. It has no default.
	Radius float64
	// Margin is by how much they must leave the radius to disappear. Zero means half of the radius;
	// at least a cell. With 1.8 cells or more nothing flickers, whichever way it goes to and fro
	// over the edges of cells.
	Margin float64
	// Cell is the side of a cell. Zero means a quarter of the radius; Radius and Margin
	// together may be 15 cells. Small cells are exact, large ones cheap: who leaves a cell costs a
	// look at the cells within Radius and Margin around it, or at those in use, if they are fewer.
	Cell float64
	// HideFromOwner treats owners as everybody else. Without it a client has what it owns
	// wherever that is.
	HideFromOwner bool
}

// NewGrid makes a grid. It belongs into the game's Open, which fails when the measures
// cannot be used, or with more than 16 grids.
func NewGrid(r *Room, s GridSpec) *Grid {
	g := &Grid{room: r}
	if !r.opens("NewGrid") {
		return g
	}
	if s.Margin == 0 {
		s.Margin = s.Radius / 2
	}
	if s.Cell == 0 {
		s.Cell = s.Radius / 4
	}
	shape, err := grid.NewShape(s.Cell, s.Radius, s.Margin)
	if err != nil {
		r.reject(fmt.Errorf("NewGrid: %w", err))
		return g
	}
	var owner func(uint64) *netvar.Peer
	if !s.HideFromOwner {
		owner = func(owner uint64) *netvar.Peer {
			if c, ok := r.e.Client(owner); ok {
				return c.Peer()
			}
			return nil
		}
	}
	if g.space, err = r.e.World().NewSpace(shape, owner); err != nil {
		r.reject(fmt.Errorf("NewGrid: %w", err))
	}
	return g
}

// PlaceOn puts the objects of the class onto a grid, where the function says that they are; in a
// plane z is 0. The function is asked for new objects and for those that were edited, at the end of
// the tick. It must read nothing but the state; when it panics, the position is a bad one, see
// [Grid]. PlaceOn belongs into the game's Open, and a class may be on one grid.
func (k *Class[S]) PlaceOn(g *Grid, at func(*S) (x, y, z float64)) {
	if g == nil || at == nil {
		panic(fmt.Sprintf("netloop: Class.PlaceOn: class %q needs a grid, made by NewGrid, and a function that tells positions", k.Name()))
	}
	r := g.room
	if !r.takes(k.c, "Class.PlaceOn") || g.space == nil {
		return
	}
	place := panicguard.Place{Name: "Class.PlaceOn", Of: k.Name(), So: "the position is a bad one"}
	err := g.space.Hold(k.c.nv, func(live unsafe.Pointer) (x, y, z float64) {
		//nolint:wastedassign // That remains of a panic.
		x, y, z = math.NaN(), math.NaN(), math.NaN()
		defer r.e.Guard().Recover(&place, nil)
		return at((*S)(live))
	})
	if err != nil {
		r.reject(fmt.Errorf("Class.PlaceOn: %w", err))
	}
}

// MaxViewpoints bounds the viewpoints of a client on one grid.
const MaxViewpoints = netvar.MaxEyes

// Viewpoint is where a client looks from: see [ViewAt] and [ViewFrom].
type Viewpoint struct{ eye netvar.Eye }

// ViewAt is a viewpoint at a place.
func ViewAt(x, y, z float64) Viewpoint { return Viewpoint{netvar.Eye{X: x, Y: y, Z: z}} }

// ViewFrom is a viewpoint that goes along with an object of a class on the grid. Once the object is
// despawned it stays where it was.
func ViewFrom[S any](o *Object[S]) Viewpoint { return Viewpoint{netvar.Eye{Object: o.o}} }

// SetView lets a client look from these viewpoints, instead of those before, from the end of this
// tick on; from none it sees nothing of the grid but what it owns. It panics with more than
// [MaxViewpoints], with an object that is not on the grid, in another room, and on a client. For a
// client that has left it does nothing.
func (g *Grid) SetView(t *Tick, c *Client, from ...Viewpoint) {
	if t.server("Grid.SetView") != g.room {
		panic("netloop: Grid.SetView: the grid belongs to another room")
	}
	c.need("Grid.SetView")
	if len(from) > MaxViewpoints {
		panic(fmt.Sprintf("netloop: Grid.SetView: %d viewpoints: use at most %d", len(from), MaxViewpoints))
	}
	var eyes [MaxViewpoints]netvar.Eye
	for i, v := range from {
		if o := v.eye.Object; o != nil && !g.space.Holds(o.Class()) {
			panic(fmt.Sprintf("netloop: Grid.SetView: class %q is not on this grid: use ViewAt, or Class.PlaceOn", o.Class().Name()))
		}
		eyes[i] = v.eye
	}
	g.space.SetEyes(c.e.Peer(), eyes[:len(from)]...)
}
