package netloop

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/panicguard"
)

// Grid shows each client the objects near its viewpoints. An object of a class on the grid
// ([Class.PlaceOn]) spawns for a client when it is within a radius of one of the client's
// viewpoints, and despawns when it is outside of the radius by more than a margin. A client without
// a viewpoint sees no objects on the grid. If an object has a target too ([VisibleTo]), a client
// sees it only if both permit it.
//
// The grid divides space into cells, and a movement within a cell costs nothing. A client has every
// object within Radius of a viewpoint. It loses an object at a distance of at least Radius +
// Margin, and at most two diagonals of a cell more. The grid looks for changes at the end of a
// tick, among the objects that were edited in the tick. Positions that are not a number, infinite,
// or more than a million cells from the origin are placed in the outermost cell, and counted in
// netloop_grid_bad_positions_total.
type Grid struct {
	room  *Room
	space *interest.Space // nil if the grid was rejected
}

// GridSpec describes a [Grid], in the game's unit of length.
type GridSpec struct {
	// Radius is the distance at which objects appear. It has no default.
	Radius float64
	// Margin is the distance beyond the radius at which objects disappear. Zero means half of the
	// radius; it is at least a cell. With 1.8 cells or more no object appears and disappears
	// repeatedly while it moves across the edges of cells.
	Margin float64
	// Cell is the side of a cell. Zero means a quarter of the radius; Radius and Margin together
	// may be at most 15 cells. Small cells are exact, large cells are cheap: for each object that
	// leaves its cell, the grid visits the cells within Radius and Margin around it, or all cells
	// in use if they are fewer.
	Cell float64
	// HideFromOwner treats owners like all other clients. Without it a client always has its own
	// objects, at any distance.
	HideFromOwner bool
}

// NewGrid makes a grid. Call it in the game's Open. Open fails if a value of s is invalid, or if
// the room has more than 16 grids.
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
	var owner func(uint64) *interest.Viewer
	if !s.HideFromOwner {
		owner = func(owner uint64) *interest.Viewer {
			if c, ok := r.e.Client(owner); ok {
				return &c.Peer().Viewer
			}
			return nil
		}
	}
	if g.space, err = r.e.World().NewSpace(shape, owner); err != nil {
		r.reject(fmt.Errorf("NewGrid: %w", err))
	}
	return g
}

// PlaceOn puts the objects of the class onto a grid, at the positions that the function returns; in
// a plane z is 0. The function is called for new and for edited objects, at the end of the tick. It
// must read only the state. If it panics, the position is invalid: see [Grid]. Call PlaceOn in the
// game's Open. A class may be on one grid only.
func (k *Class[S]) PlaceOn(g *Grid, at func(*S) (x, y, z float64)) {
	if g == nil || at == nil {
		panic(fmt.Sprintf("netloop: Class.PlaceOn: class %q needs a grid, made by NewGrid, and a function that returns positions", k.Name()))
	}
	r := g.room
	if !r.takes(k.c, "Class.PlaceOn") || g.space == nil {
		return
	}
	place := panicguard.Func{Name: "Class.PlaceOn", Class: k.Name(), Effect: "the position is a bad one"}
	err := g.space.Hold(k.c.nv, func(live unsafe.Pointer) (x, y, z float64) {
		//nolint:wastedassign // The result if at panics.
		x, y, z = math.NaN(), math.NaN(), math.NaN()
		defer r.e.Guard().Recover(&place, nil)
		return at((*S)(live))
	})
	if err != nil {
		r.reject(fmt.Errorf("Class.PlaceOn: %w", err))
	}
}

// MaxViewpoints bounds the viewpoints of a client on one grid.
const MaxViewpoints int = interest.MaxViewpoints // 8

// Viewpoint is a position from which a client sees: see [ViewAt] and [ViewFrom].
type Viewpoint struct{ eye interest.Viewpoint }

// ViewAt returns a viewpoint at a fixed position.
func ViewAt(x, y, z float64) Viewpoint { return Viewpoint{interest.Viewpoint{X: x, Y: y, Z: z}} }

// ViewFrom returns a viewpoint that follows an object of a class on the grid. After the object is
// despawned, the viewpoint keeps the object's last position.
func ViewFrom[S any](o *Object[S]) Viewpoint { return Viewpoint{interest.Viewpoint{Object: o.o}} }

// SetView replaces the viewpoints of a client, from the end of this tick. Without a viewpoint the
// client sees only its own objects on the grid. SetView panics with more than [MaxViewpoints], with
// an object that is not on the grid, in another room, and on a client. It has no effect for a
// client that has left.
func (g *Grid) SetView(t *Tick, c *Client, from ...Viewpoint) {
	if t.server("Grid.SetView") != g.room {
		panic("netloop: Grid.SetView: the grid belongs to another room")
	}
	c.mustExist("Grid.SetView")
	if len(from) > MaxViewpoints {
		panic(fmt.Sprintf("netloop: Grid.SetView: %d viewpoints: use at most %d", len(from), MaxViewpoints))
	}
	var eyes [MaxViewpoints]interest.Viewpoint
	for i, v := range from {
		if o := v.eye.Object; o != nil && !g.space.Holds(o.Class()) {
			panic(fmt.Sprintf("netloop: Grid.SetView: class %q is not on this grid: use ViewAt, or Class.PlaceOn", o.Class().Name()))
		}
		eyes[i] = v.eye
	}
	g.space.SetViewpoints(&c.e.Peer().Viewer, eyes[:len(from)]...)
}
