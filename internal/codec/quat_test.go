package codec

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

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

func randomQuat(r *rand.Rand) (q [4]float32) {
	values := [...]float32{0, 0, 1, -1, 0.5, -0.5, float32(math.Sqrt2 / 2)}
	for {
		for i := range q {
			if q[i] = float32(r.NormFloat64()); r.IntN(3) == 0 { // Ties, and axes.
				q[i] = values[r.IntN(len(values))]
			}
		}
		if q != [4]float32{} {
			return q
		}
	}
}

// The sign is that of the largest component; exact components remain exact.
func TestQuaternionIsOneOfItsTwoSigns(t *testing.T) {
	type s struct {
		Q struct{ W, X, Y, Z float32 } `net:"quat=12"`
	}
	p := mustPlan[s](t)
	for _, c := range []struct {
		in, want [4]float32
		clamped  int
	}{
		{[4]float32{1, 0, 0, 0}, [4]float32{1, 0, 0, 0}, 0},
		{[4]float32{-1, 0, 0, 0}, [4]float32{1, 0, 0, 0}, 0},
		{[4]float32{0, 0, -7, 0}, [4]float32{0, 0, 1, 0}, 0},
		{[4]float32{}, [4]float32{}, 0},
		{[4]float32{1e-40, 0, 0, 0}, [4]float32{1, 0, 0, 0}, 0},
		{[4]float32{1, float32(math.NaN()), 0, 0}, [4]float32{}, 1},
		{[4]float32{float32(math.Inf(-1)), 0, 0, 0}, [4]float32{}, 1},
	} {
		in, v := s{}, p.newValues()
		*(*[4]float32)(unsafe.Pointer(&in)) = c.in
		n := p.Capture(unsafe.Pointer(&in), v)
		p.Restore(unsafe.Pointer(&in), v, nil)
		if got := *(*[4]float32)(unsafe.Pointer(&in)); got != c.want || n != c.clamped {
			t.Errorf("%v became %v, %d clamped; want %v, %d", c.in, got, n, c.want, c.clamped)
		}
	}
}

func TestQuaternionDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := quat.MinBits; n <= quat.MaxBits; n++ {
		l := leaf{kind: Quat, max: n}
		l.low, l.span = l.interval()
		words := []uint64{0}
		for range 60 {
			q := randomQuat(r)
			w, _ := quat.Pack(&q, n)
			words = append(words, w)
		}
		for _, base := range words {
			for _, w := range words {
				whole, diff := l.appendWord(nil, w), l.appendDiff(nil, w, base)
				if len(whole) > l.maxWire() || len(whole) < l.minWire() || len(diff) > l.maxDiff() {
					t.Fatalf("%d bits: %d bytes whole, %d as a difference", n, len(whole), len(diff))
				}
				r := wire.NewReader(whole)
				if got := l.readWord(&r); got != w || r.Done() != nil {
					t.Fatalf("%d bits: %x came back as %x: %v", n, w, got, r.Err())
				}
				r = wire.NewReader(diff)
				if got := l.readDiff(&r, base); got != w || r.Done() != nil {
					t.Fatalf("%d bits: %x -> %x came back as %x: %v", n, base, w, got, r.Err())
				}
			}
		}
	}
	// A rotation by half a degree, with 10 bits, is two bytes instead of four.
	l := leaf{kind: Quat, max: 10}
	a, b := [4]float32{0.1, 0.2, 0.3, 0.9}, [4]float32{0.102, 0.198, 0.302, 0.9}
	wa, _ := quat.Pack(&a, 10)
	wb, _ := quat.Pack(&b, 10)
	if d := l.appendDiff(nil, wb, wa); len(d) > 2 || len(l.appendWord(nil, wb)) != 4 {
		t.Errorf("% x", d)
	}
}

// Pack could have made any word that a reader accepts: captured again it is the same.
func FuzzQuaternion(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint64(0), uint8(10))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, uint64(1), uint8(10))
	f.Add([]byte{1, 0, 8, 2, 7, 9, 1, 2}, uint64(8), uint8(20))
	f.Fuzz(func(t *testing.T, b []byte, base uint64, bits uint8) {
		n := quat.MinBits + int(bits)%(quat.MaxBits-quat.MinBits+1)
		l := leaf{kind: Quat, max: n}
		l.low, l.span = l.interval()
		for _, diff := range []bool{false, true} {
			var w uint64
			r := wire.NewReader(b)
			if diff && l.check(base) {
				w = l.readDiff(&r, base)
			} else {
				w = l.readWord(&r)
			}
			if r.Err() != nil {
				continue
			}
			var q [4]float32
			quat.Unpack(&q, w, n)
			if again, clamped := quat.Pack(&q, n); again != w || clamped != 0 {
				t.Fatalf("%d bits: %x became %v, and that %x", n, w, q, again)
			}
		}
	})
}
