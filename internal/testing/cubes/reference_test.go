package cubes

import "testing"

// The sizes of one change in the other coders, counted by hand from their formats.
func TestSizesOfTheOtherCoders(t *testing.T) {
	still := new(Frame)
	for i := range still {
		still[i] = Cube{Smallest: [3]int32{100, 100, 100}, Position: [3]int32{1000, 1000, 105}}
	}
	change := func(cubes []int, fn func(*Cube)) *Frame {
		f := *still
		for _, i := range cubes {
			fn(&f[i])
		}
		return &f
	}
	one := []int{5}
	const listed = 1 + 8 + 10 // a list flag, its length, the first index
	for _, c := range []struct {
		name                      string
		now                       *Frame
		absolute, varint, fiedler int
	}{
		{"nothing", still, 901, 901, 902},
		{"the flag", change(one, func(c *Cube) { c.Touched = true }), 901 + 80, 901 + 8, listed + 2 + 2 + 6},
		{"a small step", change(one, func(c *Cube) { c.Position[0] -= 8 }), 981, 901 + 8 + 8, listed + 2 + 13 + 2 + 6},
		{"steps of three sizes", change(one, func(c *Cube) { c.Position = [3]int32{1001, 1030, 155} }), 981, 901 + 8 + 24, listed + 2 + 2 + 6 + 8 + 9 + 2 + 6},
		{"a leap", change(one, func(c *Cube) { c.Position[1] += 112 }), 981, 901 + 8 + 16, listed + 2 + 2 + 33 + 2 + 6},
		{"a turn", change(one, func(c *Cube) { c.Smallest = [3]int32{101, 110, 150} }), 981, 901 + 8 + 24, listed + 2 + 2 + 5 + 7 + 9},
		{"another largest", change(one, func(c *Cube) { c.Largest = 2 }), 981, 901 + 8 + 8, listed + 2 + 1 + 29},
		{"steps between indices", change([]int{0, 1, 7, 21, 51, 113, 239, 366}, func(c *Cube) { c.Touched = true }),
			901 + 8*80, 901 + 8*8, listed + 1 + 5 + 6 + 8 + 10 + 12 + 16 + 8*10},
	} {
		for _, k := range coders {
			want := map[string]int{"raw": 901 * 225, "quantised": 901 * 80, "absolute": c.absolute, "varint": c.varint, "fiedler": c.fiedler}[k.name]
			if got := k.bits(c.now, still, still); got != want {
				t.Errorf("%s: %s takes %d bits, want %d", c.name, k.name, got, want)
			}
		}
	}
}

// With many changes a bit per cube is shorter than a list.
func TestManyIndicesAreEncodedAsBits(t *testing.T) {
	var base, now Frame
	for i := range base {
		base[i].Position[2] = 105
		now[i] = base[i]
		now[i].Touched = i%3 == 0
	}
	if got, want := fiedlerBits(&now, &base, &base), 1+901+301*10; got != want {
		t.Errorf("%d bits, want %d", got, want)
	}
}

// The estimate continues the last movement, minus drag and gravity, and stops at the ground.
func TestTheEstimateFollowsTheMovement(t *testing.T) {
	before := &Cube{Position: [3]int32{0, 0, 500}}
	base := &Cube{Position: [3]int32{100, -100, 400}}
	// -100 less 6.2 rounded up is -94, and 3
	now := &Cube{Position: [3]int32{100 + 93, -100 - 94, 400 - 97}}
	if got := estimatedBits(now, base, before); got != 1+12 {
		t.Errorf("an exact estimate takes %d bits, want 13", got)
	}
	low := &Cube{Position: [3]int32{0, 0, 110}}
	if got := estimatedBits(&Cube{Position: [3]int32{0, 0, 105}}, low, before); got != 13 {
		t.Errorf("on the ground it takes %d bits, want 13", got)
	}
}
