package cubes

import (
	"reflect"

	"github.com/netloop/netloop/internal/netvar/state"
)

// cubeState is a cube as a game would declare it, with physics that store rotations as their
// smallest three, in steps. A `quat` field cannot reproduce a capture exactly: it has an odd
// number of steps, so that a component of 0 remains 0, and of two nearly equal components it
// always selects the same one as the largest, while a capture may have selected either. Integers
// would be as exact, but cannot have a range.
type cubeState struct {
	X, Y     float32 `net:"quant=1/512,range=-16383/512:16383/512"`
	Z        float32 `net:"quant=1/512,range=0:8191/512"`
	Largest  uint8
	Smallest [3]float32 `net:"quant=1,range=0:511"`
	Touched  bool
}

func newTable() (*state.Table, *state.Class, error) {
	class, err := state.NewClass("cube", reflect.TypeFor[cubeState]())
	if err != nil {
		return nil, nil, err
	}
	return state.NewTable(class), class, nil
}

// set gives the cube the values of a capture.
func (s *cubeState) set(c *Cube) {
	*s = cubeState{
		X: float32(c.Position[0]) / Steps, Y: float32(c.Position[1]) / Steps, Z: float32(c.Position[2]) / Steps,
		Largest: uint8(c.Largest), Touched: c.Touched,
	}
	for i, v := range c.Smallest {
		s.Smallest[i] = float32(v)
	}
}

// cube is the inverse of set, for values that are whole steps. It truncates all others.
func (s *cubeState) cube() Cube {
	c := Cube{Largest: int32(s.Largest), Touched: s.Touched}
	for i, f := range [3]float32{s.X, s.Y, s.Z} {
		c.Position[i] = int32(f * Steps)
	}
	for i, v := range s.Smallest {
		c.Smallest[i] = int32(v)
	}
	return c
}
