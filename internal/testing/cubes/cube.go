package cubes

import (
	"encoding/binary"
	"fmt"
)

// The shape of a frame and the ranges of its integers. Layout, ranges and steps are those of
// Glenn Fiedler's data compression challenge of 2015.
const (
	Count = 901 // cubes in a frame: the player's, and a field of 30 × 30

	Rate        = 60  // frames in a second
	Steps       = 512 // to the metre
	MaxXY       = 16383
	MaxZ        = 8191
	MaxSmallest = 511 // of each of the smallest three: 9 bits

	Delay = 6 // frames between sending and acknowledgement: 100 ms

	cubeBytes  = 8 * 4
	frameBytes = Count * cubeBytes
)

// Cube is one cube of a frame, in the integers of a capture.
type Cube struct {
	Largest  int32    // index of the largest component of the unit quaternion: 0..3 for x, y, z, w
	Smallest [3]int32 // the other three, from -1/√2 as 0 to 1/√2 as MaxSmallest
	Position [3]int32 // in steps: x and y from -MaxXY to MaxXY, z from 0 to MaxZ
	Touched  bool     // recently moved by the player, directly or through others
}

// Frame has all cubes at one time.
type Frame [Count]Cube

// unpack reads a frame from its frameBytes bytes: for each cube largest, a, b, c, x, y, z and
// interacting, as little endian int32.
func (f *Frame) unpack(b []byte) error {
	for i := range f {
		var v [8]int32
		for j := range v {
			v[j] = int32(binary.LittleEndian.Uint32(b[i*cubeBytes+4*j:]))
		}
		f[i] = Cube{Largest: v[0], Smallest: [3]int32(v[1:4]), Position: [3]int32(v[4:7]), Touched: v[7] != 0}
		if err := f[i].check(v[7]); err != nil {
			return fmt.Errorf("cube %d: %w", i, err)
		}
	}
	return nil
}

func (c *Cube) check(interacting int32) error {
	within := func(name string, v, least, most int32) error {
		if v < least || v > most {
			return fmt.Errorf("%s is %d, not within %d..%d", name, v, least, most)
		}
		return nil
	}
	if err := within("orientation_largest", c.Largest, 0, 3); err != nil {
		return err
	}
	for i, v := range c.Smallest {
		if err := within("orientation_"+string("abc"[i]), v, 0, MaxSmallest); err != nil {
			return err
		}
	}
	for i, v := range c.Position {
		least, most := int32(-MaxXY), int32(MaxXY)
		if i == 2 {
			least, most = 0, MaxZ
		}
		if err := within("position_"+string("xyz"[i]), v, least, most); err != nil {
			return err
		}
	}
	return within("interacting", interacting, 0, 1)
}
