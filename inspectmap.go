package netloop

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
)

// gridsOnMap describes the room's grids of classes with a position on the map, with the viewpoints
// of a client unless that is nil. It runs on the room's goroutine. Without whole it leaves out a
// class if a read rule protects its position, because a viewpoint may be the position of such an
// object.
func (r *Room) gridsOnMap(client *room.Client, whole bool) []inspect.Grid {
	grids := []inspect.Grid{}
	for _, space := range r.e.World().Spaces() {
		shape := space.Shape()
		g := inspect.Grid{Classes: []string{}, Eyes: []inspect.Eye{}}
		g.Cell, g.Inside, g.Border = shape.Measures()
		axes := [2]int{0, 1}
		for _, c := range r.schema.classes {
			if !space.Holds(c.nv) || !mayShowOnMap(c.nv, whole) {
				continue
			}
			if g.Classes = append(g.Classes, c.nv.Name()); len(g.Classes) == 1 {
				axes = r.axesOf(space, c.nv)
			}
		}
		if len(g.Classes) == 0 {
			continue
		}
		if client != nil {
			for _, e := range space.Eyes(&client.Peer().Viewer) {
				at := [3]int32{e.Cell.X, e.Cell.Y, e.Cell.Z}
				eye := inspect.Eye{Cell: [2]int32{at[axes[0]], at[axes[1]]}}
				if e.Object != nil {
					eye.Object = e.Object.ID().String()
				}
				g.Eyes = append(g.Eyes, eye)
			}
		}
		grids = append(grids, g)
	}
	return grids
}

// mayShowOnMap reports whether a class has a position on the map that the request may see.
func mayShowOnMap(c *state.Class, whole bool) bool {
	x, y := c.Map()
	return x != "" && !slices.ContainsFunc(c.DescribeLeaves(), func(l codec.LeafInfo) bool {
		return !whole && l.Read != "" && (l.Name == x || l.Name == y)
	})
}

// axesOf returns which two of a grid's three coordinates are the map's, 0 for x to 2 for z: a grid
// may have X, Y and Z, and the map only X and Z. It compares the grid's positions of the first
// objects with the two fields, and selects the nearest coordinate for each.
func (r *Room) axesOf(space *interest.Space, c *state.Class) [2]int {
	const looks = 8
	var apart [2][3]float64
	onX, onY := c.Map()
	leaves := [2]int{slices.Index(c.LeafNames(), onX), slices.Index(c.LeafNames(), onY)}
	n := 0
	for o := range r.e.World().All(c) {
		if !o.Published() {
			continue
		}
		var values []any
		newest := o.Hist.Newest()
		if json.Unmarshal(c.AppendJSON(nil, &newest, 0), &values) != nil {
			break
		}
		x, y, z := space.Position(o)
		for i, leaf := range leaves {
			v, _ := values[leaf].(float64)
			for axis, at := range [3]float64{x, y, z} {
				apart[i][axis] += math.Abs(at - v)
			}
		}
		if n++; n == looks {
			break
		}
	}
	least := func(of [3]float64, but int) (axis int) {
		if but >= 0 {
			of[but] = math.Inf(1)
		}
		for i, d := range of {
			if d < of[axis] {
				axis = i
			}
		}
		return axis
	}
	first := least(apart[0], -1)
	return [2]int{first, least(apart[1], first)}
}
