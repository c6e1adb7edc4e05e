package interest

import (
	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Spaces returns the spaces in the order of NewSpace.
func (m *Map) Spaces() []*Space { return m.spaces }

// Shape returns the shape of the space's cells.
func (s *Space) Shape() grid.Shape { return s.index.Shape }

// Position returns the position of an object of the space.
func (s *Space) Position(o *state.Object) (x, y, z float64) {
	return s.m.positions[o.WireClass().Index()].at(o.Live())
}

// Eye is the cell of a viewpoint as of the last capture.
type Eye struct {
	Cell   grid.Cell
	Object *state.Object // that the viewpoint follows, or nil
}

// Eyes returns the viewpoints of a client that have a place in the space.
func (s *Space) Eyes(v *Viewer) (eyes []Eye) {
	if s.number >= len(v.observers) || v.observers[s.number] == nil {
		return nil
	}
	for _, e := range v.observers[s.number].viewpoints {
		if at, ok := s.index.Eye(e.id); ok {
			eyes = append(eyes, Eye{at, e.object})
		}
	}
	return eyes
}
