package cubes

import (
	"math"
	"math/bits"
)

// coder is a published coder: bits returns the size of the frame now in bits, given the
// acknowledged frame base, and before, the frame Delay frames earlier than base.
type coder struct {
	name string
	bits func(now, base, before *Frame) int
}

var coders = []coder{
	{"raw", func(_, _, _ *Frame) int { return Count * rawBits }},
	{"quantised", func(_, _, _ *Frame) int { return Count * quantisedBits }},
	{"absolute", absoluteBits},
	{"varint", varintBits},
	{"fiedler", fiedlerBits},
}

const (
	// Position and rotation as float32, and the flag.
	rawBits = 3*32 + 4*32 + 1
	// The smallest three, the position with the ranges of the article, and the flag.
	quantisedBits = smallestBits + 18 + 18 + 14 + 1
	smallestBits  = 2 + 3*9
)

// absoluteBits counts a bit per cube, which tells whether the cube has changed, and each changed
// cube as a whole.
func absoluteBits(now, base, _ *Frame) int {
	n := Count
	for i := range now {
		if now[i] != base[i] {
			n += quantisedBits
		}
	}
	return n
}

// varintBits counts a bit per cube, and for each changed cube a byte that marks the changed fields
// and contains the flag interacting, and a zigzag varint of each changed field's difference.
func varintBits(now, base, _ *Frame) int {
	n := Count
	for i := range now {
		c, b := &now[i], &base[i]
		if *c == *b {
			continue
		}
		n += 8 + varint(c.Largest, b.Largest)
		for j := range 3 {
			n += varint(c.Smallest[j], b.Smallest[j]) + varint(c.Position[j], b.Position[j])
		}
	}
	return n
}

func varint(now, base int32) int {
	if now == base {
		return 0
	}
	return 8 * ((bits.Len32(zigzag(now-base)) + 6) / 7)
}

func zigzag(d int32) uint32 { return uint32(d<<1 ^ d>>31) }

// fiedlerBits is the bit packer of Fiedler's challenge of 2015: the changed cubes by the steps
// between their indices, positions against an estimate, and the smallest three against the
// baseline, both in three sizes. The format is public; this function counts its bits and is no
// copy of its code.
func fiedlerBits(now, base, before *Frame) int {
	changed, indices, cubes, last := 0, 0, 0, -1
	for i := range now {
		if now[i] == base[i] {
			continue
		}
		changed++
		if last < 0 {
			indices = bits.Len(Count - 1)
		} else {
			indices += indexBits(i - last)
		}
		last = i
		cubes += 2 + estimatedBits(&now[i], &base[i], &before[i]) + rotationBits(&now[i], &base[i])
	}
	if list := 8 + indices; changed > 0 && changed <= 256 && list <= Count {
		return 1 + list + cubes
	}
	return 1 + Count + cubes
}

// indexBits returns the number of bits that encode a step between two indices: a prefix that
// selects a range of steps, and the position of the step in that range. A step of 1 is one bit.
func indexBits(step int) int {
	switch {
	case step == 1:
		return 1
	case step <= 6:
		return 2 + 3
	case step <= 14:
		return 3 + 3
	case step <= 30:
		return 4 + 4
	case step <= 62:
		return 5 + 5
	case step <= 126:
		return 6 + 6
	default:
		return 6 + 10
	}
}

// estimatedBits returns the bits of a cube's position, as the difference from an estimate. The
// estimate continues the movement up to the baseline, minus drag and gravity, but not into the
// ground.
func estimatedBits(now, base, before *Cube) int {
	if now.Position == base.Position {
		return 0
	}
	const drag, gravity, ground = 0.062, 3, 105
	var d [3]uint32
	for i, p := range base.Position {
		moved := p - before.Position[i]
		p += moved - int32(math.Ceil(float64(moved)*drag))
		if i == 2 {
			p = max(p-gravity, ground)
		}
		d[i] = zigzag(now.Position[i] - p)
	}
	switch most := max(d[0], d[1], d[2]); {
	case most < 16:
		return 1 + 3*4
	case most < 1<<5+1<<6+1<<7:
		return 2 + sizedBits(d, 5, 6, 7)
	default:
		return 2 + 3*11
	}
}

func rotationBits(now, base *Cube) int {
	var d [3]uint32
	for i, s := range now.Smallest {
		d[i] = zigzag(s - base.Smallest[i])
	}
	switch most := max(d[0], d[1], d[2]); {
	case now.Largest != base.Largest || most >= 1<<4+1<<5+1<<7:
		return 1 + smallestBits
	case most < 4:
		return 2 + 3*2
	default:
		return 2 + sizedBits(d, 4, 5, 7)
	}
}

// sizedBits returns the bits of three numbers, each in the smallest of three sizes that it fits,
// plus a prefix that selects the size. The range of a size begins at the end of the next smaller
// one.
func sizedBits(d [3]uint32, small, medium, large int) (n int) {
	for _, v := range d {
		switch {
		case v < 1<<small:
			n += 1 + small
		case v < 1<<small+1<<medium:
			n += 2 + medium
		default:
			n += 2 + large
		}
	}
	return n
}
