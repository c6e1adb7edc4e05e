package quat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// bound is the largest error of a rotation in radians: each of the three components is off by half
// a step, or a step and a half if it was nearly the largest, and a rotation by twice the angle
// between quaternions; the largest is off by at most the sum of the three.
func bound(n int) float64 {
	step := 1 / (math.Sqrt2 * float64(int(1)<<(n-1)-1))
	return 2*(1.5*step*3) + 1e-6
}

// off returns the angle between two rotations, which is exact for small ones too.
func off(a, b [4]float32) float64 {
	var minus, plus, na, nb float64
	for i := range a {
		na += float64(a[i]) * float64(a[i])
		nb += float64(b[i]) * float64(b[i])
	}
	na, nb = math.Sqrt(na), math.Sqrt(nb)
	for i := range a {
		x, y := float64(a[i])/na, float64(b[i])/nb
		minus += (x - y) * (x - y)
		plus += (x + y) * (x + y)
	}
	return 4 * math.Asin(math.Sqrt(min(minus, plus))/2)
}

// randomQuat returns a quaternion of any length. Some have equal components, or are axes.
func randomQuat(r *rand.Rand) (q [4]float32) {
	values := [...]float32{0, 0, 1, -1, 0.5, -0.5, math.Sqrt2 / 2}
	for q == [4]float32{} {
		for i := range q {
			if q[i] = float32(r.NormFloat64()); r.IntN(3) == 0 {
				q[i] = values[r.IntN(len(values))]
			}
		}
	}
	return q
}

func TestQuaternionIsRestoredWithinItsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := MinBits; n <= MaxBits; n++ {
		worst := 0.0
		for range 3000 {
			q := randomQuat(r)
			w, clamped := Pack(&q, n)
			if clamped != 0 || w == 0 || w>>(3*n+2) != 0 || !Sound(w, n) {
				t.Fatalf("%d bits: %v became %x", n, q, w)
			}
			var got [4]float32
			Unpack(&got, w, n)
			if length := math.Hypot(math.Hypot(float64(got[0]), float64(got[1])), math.Hypot(float64(got[2]), float64(got[3]))); math.Abs(length-1) > 1e-6 {
				t.Fatalf("%d bits: %v became %v of length %v", n, q, got, length)
			}
			worst = max(worst, off(q, got))
			if again, _ := Pack(&got, n); again != w {
				t.Fatalf("%d bits: %v became %x, and that %x", n, q, w, again)
			}
			for i := range q {
				q[i] = -3 * q[i]
			}
			if other, _ := Pack(&q, n); other != w {
				var back [4]float32
				if Unpack(&back, other, n); off(got, back) > 2*bound(n) {
					t.Fatalf("%d bits: %v as %x, but %x the other way round", n, q, w, other)
				}
			}
		}
		if worst > bound(n) {
			t.Errorf("%d bits: off by %v, bound %v", n, worst, bound(n))
		}
	}
}

func TestTurnedQuaternionsAreTheSameRotation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		n := MinBits + r.IntN(MaxBits-MinBits+1)
		q := [4]float32{float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64())}
		w, _ := Pack(&q, n)
		m := int64(1)<<(n-1) - 1
		_, largest := Split(w, n)
		for at := range 4 {
			s := Turn(w, n, at)
			sum := s[0]*s[0] + s[1]*s[1] + s[2]*s[2]
			if at == largest || sum > 2*m*m {
				continue
			}
			// The component that is left out is that of the first form.
			was := Turn(w, n, largest)
			i := at
			if at > largest {
				i--
			}
			left, want := root(2*m*m-sum), max(was[i], -was[i])
			if diff := left*left - want*want; max(diff, -diff) > 4*m {
				t.Fatalf("%d bits, %v turned to %d: %v, %d left out, want %d", n, q, at, s, left, want)
			}
		}
	}
}

// TestATurnedWordKeepsItsSigns leaves out a component of 0, a positive and a negative one.
func TestATurnedWordKeepsItsSigns(t *testing.T) {
	const word = 0b00_1000_1010_0101 // 9, 0, 2 and -3
	for at, want := range [][3]int64{{0, 2, -3}, {9, 2, -3}, {9, 0, -3}, {-9, 0, -2}} {
		if got := Turn(word, 4, at); got != want {
			t.Errorf("without component %d: %v, want %v", at, got, want)
		}
	}
}

// TestWordsOfKnownRotations compares words with the layout: the index of the largest component,
// then the steps of the others, each plus M + 1.
func TestWordsOfKnownRotations(t *testing.T) {
	for _, c := range []struct {
		q       [4]float32
		bits    int
		word    uint64
		clamped int
	}{
		{[4]float32{1, 0, 0, 0}, 3, 0b00_100_100_100, 0},
		{[4]float32{0, 0, 0, -2}, 3, 0b11_100_100_100, 0},
		{[4]float32{1, 0, -1, 0}, 3, 0b00_100_001_100, 0},      // Equal: the first is the largest,
		{[4]float32{1, 1, 0, 0}, 3, 0b00_111_100_100, 0},       // and the other is as large.
		{[4]float32{-0.5, 1, 0, 0}, 4, 0b01_0100_1000_1000, 0}, // 7 * -0.5 * sqrt(2/1.25) = -4.4
		{[4]float32{}, 3, 0, 0},
		{[4]float32{0, float32(math.NaN()), 0, 1}, 3, 0, 1},
		{[4]float32{0, float32(math.Inf(1)), 0, 1}, 3, 0, 1},
	} {
		if w, clamped := Pack(&c.q, c.bits); w != c.word || clamped != c.clamped {
			t.Errorf("%v: %b, %d clamped; want %b, %d", c.q, w, clamped, c.word, c.clamped)
		}
	}
	if s, at := Split(0b01_0100_1001_0111, 4); s != [3]int64{-4, 1, -1} || at != 1 {
		t.Errorf("split into %v without component %d", s, at)
	}
	for bits, want := range map[int]int{3: 2, 4: 2, 5: 3, 10: 4, 11: 5, MaxBits: 8} {
		if got := Size(bits); got != want {
			t.Errorf("%d bits take %d bytes, want %d", bits, got, want)
		}
	}
}

// TestWordsThatPackNeverMakesAreNotSound changes sound words so that no rotation has them.
func TestWordsThatPackNeverMakesAreNotSound(t *testing.T) {
	for word, sound := range map[uint64]bool{
		0:                true,
		0b00_100_100_100: true,
		0b00_001_100_100: true,
		0b00_000_100_100: false, // more steps than M
		0b00_100_000_100: false,
		0b00_100_100_000: false,
		0b00_111_100_100: true, // as large as the largest, which is the first
		0b01_111_100_100: false,
		0b01_100_111_100: true,
		0b00_111_111_100: false, // leaves nothing for the largest
		0b10_110_110_100: true,
		0b11_110_110_110: false, // 6 are left: less than half a step more than 2
		0b00_110_110_110: true,
		0b00_111_110_100: false,
	} {
		if got := Sound(word, 3); got != sound {
			t.Errorf("%011b is sound: %v, want %v", word, got, sound)
		}
	}
}

// TestSlerpTurnsTheShortWay turns about one axis: at a share of the way the angle is that share.
func TestSlerpTurnsTheShortWay(t *testing.T) {
	const bits = MaxBits
	about := func(angle float64) uint64 {
		w, _ := Pack(&[4]float32{0, 0, float32(math.Sin(angle / 2)), float32(math.Cos(angle / 2))}, bits)
		return w
	}
	for _, c := range []struct{ from, to, share, want float64 }{
		{0, 1, 0.25, 0.25},
		{0, 1, 0, 0},
		{0, 1, 1, 1},
		{0, 1, 1.2, 1.2},
		{3, -3, 0.5, math.Pi}, // through π, not through 0
		{3, -3, 0.25, 3 + (math.Pi-3)/2},
		{0.5, 0.5, 0.75, 0.5},
		{0, 1e-4, 0.5, 0.5e-4},
	} {
		var got [4]float32
		if !Slerp(&got, about(c.from), about(c.to), bits, c.share) {
			t.Errorf("no rotation between %v and %v", c.from, c.to)
		}
		want := [4]float32{0, 0, float32(math.Sin(c.want / 2)), float32(math.Cos(c.want / 2))}
		if off(got, want) > 1e-5 || math.Abs(float64(got[2]*got[2]+got[3]*got[3])-1) > 1e-6 {
			t.Errorf("%v of the way from %v to %v: %v, want %v", c.share, c.from, c.to, got, want)
		}
	}
	got := [4]float32{9}
	if Slerp(&got, 0, about(1), bits, 0.5) || Slerp(&got, about(1), 0, bits, 0.5) || got != [4]float32{9} {
		t.Errorf("a rotation that was never set is turned: %v", got)
	}
}
