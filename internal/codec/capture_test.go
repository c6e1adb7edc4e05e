package codec

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// CaptureMark equals Capture and Mark for values of all forms, including those that do not fit.
func TestCaptureMarkIsCaptureAndMark(t *testing.T) {
	type all struct {
		A float32 `net:"quant=1/8"`
		B float32 `net:"quant=3/8,range=-10:90"`
		C float64 `net:"quant=1/8"`
		D float64 `net:"quant=1/8,range=1:2"`
		E float32
		F int16
		G bool
		H string     `net:"max=3"`
		I []int8     `net:"max=2"`
		J [4]float32 `net:"quat=9"`
		K [2]struct {
			X float32 `net:"quant=2"`
			M map[int8]bool
		}
	}
	p, err := Compile(reflect.TypeFor[all]())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(8, 1))
	number := func() float64 {
		switch rng.IntN(8) {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(rng.IntN(2)*2 - 1)
		case 2:
			return rng.NormFloat64() * 1e12
		default:
			return rng.NormFloat64() * 3
		}
	}
	values := func() Values { return Values{Words: make([]uint64, p.Words()), Blobs: make([][]byte, p.Blobs())} }
	var s all
	now, plain, last := values(), values(), values()
	p.Capture(unsafe.Pointer(&s), &last)
	marked, ticks := make([]uint64, p.Leaves()), make([]uint64, p.Leaves())
	for tick := range uint64(2000) {
		for range rng.IntN(3) {
			switch rng.IntN(9) {
			case 0:
				s.A, s.B = float32(number()), float32(number())
			case 1:
				s.C, s.D = number(), number()
			case 2:
				s.E, s.F, s.G = float32(number()), int16(rng.IntN(9)), rng.IntN(2) == 0
			case 3:
				s.H = "abcdef"[:rng.IntN(6)]
			case 4:
				s.I = make([]int8, rng.IntN(4))
			case 5:
				s.J[rng.IntN(4)] = float32(number())
			case 6:
				s.K[rng.IntN(2)].X = float32(number())
			case 7:
				s.K[1].M = map[int8]bool{int8(rng.IntN(3)): true}
			}
		}
		clamped, changed := p.CaptureMark(unsafe.Pointer(&s), &now, &last, marked, tick)
		want := p.Capture(unsafe.Pointer(&s), &plain)
		differs := p.Mark(ticks, tick, &plain, &last)
		if clamped != want || changed != differs || !p.Equal(&now, &plain) || !slices.Equal(marked, ticks) {
			t.Fatalf("%+v: %d clamped, changed %v, %v; want %d, %v, %v", s, clamped, changed, now, want, differs, plain)
		}
		last, now = now, last
	}
}
