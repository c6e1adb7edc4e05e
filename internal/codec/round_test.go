package codec

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"
)

type roundPart struct {
	X float32 `net:"quant=0.1"`
	N int8
	S string `net:"max=2"`
}

// roundAll has a value of each form that Round changes, and of the others.
type roundAll struct {
	A float32 `net:"quant=1/8"`
	B float32 `net:"quant=3/8,range=-10:90"`
	C float64 `net:"quant=1/8"`
	D float64 `net:"quant=0.3,range=1:20"`
	E float32
	F float64
	G int16
	H string             `net:"max=3"`
	I []roundPart        `net:"max=3"`
	J [4]float32         `net:"quat=9"`
	K map[int8]roundPart `net:"max=3"`
	L [2]struct {
		Y float32 `net:"quant=2"`
		M []struct {
			Z map[int8]float64 `net:"quant=0.7"`
		}
	}
	O float32 `net:"-"`
	P []byte  `net:"max=2"`
}

// random fills in values of which few do not fit. No list is empty, because an empty one is
// restored as none.
func (s *roundAll) random(rng *rand.Rand) {
	number := func() float64 {
		switch rng.IntN(60) {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(rng.IntN(2)*2 - 1)
		case 2:
			return rng.NormFloat64() * 1e12
		default:
			return 2 + rng.NormFloat64()*3
		}
	}
	small := func() float32 { return float32(number()) }
	part := func() roundPart { return roundPart{small(), int8(rng.IntN(9)), "abc"[:rng.IntN(33)/11]} }
	*s = roundAll{A: small(), B: small(), C: number(), D: number() + 5, E: small(), F: number(), G: int16(rng.IntN(9)), O: 0.3}
	s.H, s.P = "abcdef"[:rng.IntN(40)/10], make([]byte, 1+rng.IntN(30)/10)
	s.J = [4]float32{small(), small(), small(), small()}
	s.K = map[int8]roundPart{}
	for range 1 + rng.IntN(40)/10 {
		s.I = append(s.I, part())
		s.K[int8(len(s.K))] = part()
	}
	for i := range s.L {
		s.L[i].Y = small()
		s.L[i].M = append(s.L[i].M, struct {
			Z map[int8]float64 `net:"quant=0.7"`
		}{map[int8]float64{1: number()}})
	}
}

// Round gives the result of a capture and a restore, if the value fits; it does not affect
// captures, and is idempotent. Clamp does the same for a value that does not fit.
func TestRoundIsCaptureAndRestore(t *testing.T) {
	p := mustPlan[roundAll](t)
	rng := rand.New(rand.NewPCG(4, 2))
	fits := 0
	for range 2000 {
		var s, want roundAll
		s.random(rng)
		want.O = s.O
		before, after := p.newValues(), p.newValues()
		misfits := p.Capture(unsafe.Pointer(&s), before)
		p.Restore(unsafe.Pointer(&want), before, nil)
		if misfits == 0 {
			fits++
		}

		p.Round(unsafe.Pointer(&s))
		if misfits == 0 && !reflect.DeepEqual(s, want) {
			t.Fatalf("rounded to %+v, want %+v", s, want)
		}
		if n := p.Capture(unsafe.Pointer(&s), after); n != misfits || !p.Equal(before, after) {
			t.Fatalf("%d misfits of %d, %+v after rounding, %+v before", n, misfits, after, before)
		}
		p.Clamp(unsafe.Pointer(&s))
		p.Round(unsafe.Pointer(&s))
		if !reflect.DeepEqual(s, want) {
			t.Fatalf("clamped to %+v, want %+v", s, want)
		}
	}
	if fits == 0 {
		t.Error("no value fitted: nothing was tried")
	}
}

// A field that this build lacks is nowhere to be rounded.
func TestRoundSkipsLackingFields(t *testing.T) {
	type s struct {
		A float32 `net:"quant=1/2"`
	}
	own := mustPlan[s](t)
	far := mustBind(t, own.Type(), Type{Kind: Struct, Fields: append([]Field{{"New", own.Layout().Fields[0].Type}}, own.Layout().Fields...)})
	v := s{0.7}
	far.Round(unsafe.Pointer(&v))
	if far.Clamp(unsafe.Pointer(&v)); v.A != 0.5 {
		t.Errorf("%+v", v)
	}
}

// Rounding does not allocate, also for lists of numbers.
func TestRoundDoesNotAllocate(t *testing.T) {
	p := mustPlan[roundAll](t)
	var s roundAll
	s.random(rand.New(rand.NewPCG(1, 1)))
	s.K = nil
	s.L[0].M, s.L[1].M = nil, nil
	if n := testing.AllocsPerRun(100, func() { p.Round(unsafe.Pointer(&s)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRound4Fields(b *testing.B) {
	p := mustPlan[benchShip](b)
	ship := benchShip{1.3, 2.3, 3.3, 4}
	for b.Loop() {
		p.Round(unsafe.Pointer(&ship))
	}
}
