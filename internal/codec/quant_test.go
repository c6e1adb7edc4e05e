package codec

import (
	"math"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

func TestRangeIsRoundedOutwardClampedAndCounted(t *testing.T) {
	type s struct {
		A float32 `net:"quant=1/4,range=-1:0.6"` // 0.6 is no whole number of steps: up to 0.75
		B float64 `net:"quant=0.1,range=5.05:7"` // from 5
	}
	p := mustPlan[s](t)
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		in, want s
		clamped  int
	}{
		{s{0.3, 6}, s{0.25, 6}, 0},
		{s{0.75, 5}, s{0.75, 5}, 0},
		{s{1, 7.06}, s{0.75, 7}, 2},
		{s{-1.2, 0}, s{-1, 5}, 2},
		{s{float32(nan), nan}, s{0, 5}, 2}, // 0, or the value nearest to it
		{s{float32(inf), -inf}, s{0.75, 5}, 2},
	} {
		becomes(t, p, c.in, c.want, c.clamped)
	}
}

// A value in a range travels as its distance from the least, which an unsigned byte may hold.
func TestRangeTravelsFromItsLeast(t *testing.T) {
	type s struct {
		A float32 `net:"quant=1,range=1000:1127"`
	}
	p := mustPlan[s](t)
	in, out := s{1127}, s{}
	b, err := p.Append(nil, unsafe.Pointer(&in))
	if err != nil || len(b) != 1 || b[0] != 127 {
		t.Errorf("% x: %v", b, err)
	}
	if err := p.Decode(b, unsafe.Pointer(&out)); err != nil || out != in {
		t.Errorf("%+v: %v", out, err)
	}
	for _, over := range [][]byte{{128, 1}, wire.AppendUvarint(nil, math.MaxUint64), wire.AppendUvarint(nil, 1<<64-1000)} {
		if err := p.Decode(over, unsafe.Pointer(&out)); err == nil {
			t.Errorf("% x is taken for %v", over, out)
		}
	}
	if size, _ := p.MaxSize(); size != 2 { // A difference of 127 steps has a sign.
		t.Errorf("at most %d bytes", size)
	}
	// Not shown, or not there: the nearest to 0.
	far := mustBind(t, p.Type(), Type{Kind: Struct, Fields: append(p.Layout().Fields, Field{"New", p.Layout().Fields[0].Type})})
	if b, err := far.Append(nil, unsafe.Pointer(&in)); err != nil || len(b) != 2 || b[1] != 0 {
		t.Errorf("% x: %v", b, err)
	}
}

// An inner step replaces the outer tag; an inner range keeps the outer step.
func TestStepAndRangeHoldForTheFloatsInside(t *testing.T) {
	type s struct {
		A [2]float32 `net:"quant=1/2,range=0:4"`
		B struct {
			C float32
			D float64 `net:"quant=1/8"`
			E float32 `net:"range=-1:1"`
		} `net:"quant=1/2,range=0:4"`
	}
	want := []FieldInfo{
		{"A", "[2]float32 quant=1/2 steps=0:8"},
		{"B", "{C float32 quant=1/2 steps=0:8; D float64 quant=1/8; E float32 quant=1/2 steps=-2:2}"},
	}
	for i, got := range mustPlan[s](t).Describe() {
		if got != want[i] {
			t.Errorf("%v, want %v", got, want[i])
		}
	}
}

// A vector is a struct of floats: a group of leaves that any class shares, each with a bit of
// its own in the mask, so that one coordinate that moves costs one coordinate.
func TestVectorsAreGroupsOfLeaves(t *testing.T) {
	type vec3 struct{ X, Y, Z float32 }
	type body struct {
		Pos vec3 `net:"quant=1/64,range=-512:512"`
		Vel vec3 `net:"quant=1/16"`
		Up  [3]float32
	}
	p := mustPlan[body](t)
	if p.Leaves() != 9 {
		t.Fatalf("%d leaves", p.Leaves())
	}
	a, b := body{Pos: vec3{1, 2, 3}}, body{Pos: vec3{1, 2.5, 3}}
	va, vb := p.newValues(), p.newValues()
	p.Capture(unsafe.Pointer(&a), va)
	p.Capture(unsafe.Pointer(&b), vb)
	// Ten leaves with the owner are two groups of mask: bits 1, 8 and 0; the distance 32, as 64, 7
	// + 6.
	if got := bitsOf(t, p, vb, va, Trend{}); got != 9+1+7+6 {
		t.Errorf("%d bits", got)
	}
	if got := deltaOf(t, p, vb, va, Trend{}); !p.Equal(got, vb) {
		t.Errorf("%v", got)
	}
}

// The value of a number of steps does not depend on the way of computing: it is the quotient, to
// the bit.
func TestTheUnitOfAStepIsExact(t *testing.T) {
	type s struct {
		A float64 `net:"quant=1/256"`
		B float64 `net:"quant=3/1024"`
		C float64 `net:"quant=1/3"`
		D float64 `net:"quant=0.1"`
		E float64 `net:"quant=7"`
	}
	p := mustPlan[s](t)
	for i, product := range []bool{true, true, false, false, true} {
		l := &p.leaves[i]
		if product != (l.unit != 0) {
			t.Errorf("field %s: its unit is %v", l.name, l.unit)
		}
		for steps := 1.0; steps < 1<<53; steps = math.Trunc(steps*1.37) + 1 {
			if got, want := l.value(steps), steps*l.num/l.den; got != want || l.value(-steps) != -want {
				t.Errorf("field %s: %v steps are %v, not %v", l.name, steps, got, want)
			}
		}
	}
}
