package codec

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"unsafe"
)

// Drawing moves from the old value to the new one: the whole offset gives the old value, none of it
// the new one, and half of it the middle, for angles and rotations the short way.
func TestAnOffsetGivesTheDrawnValue(t *testing.T) {
	p := mustPlan[drawn](t)
	half := float32(math.Sqrt2 / 2)
	was := drawn{
		F32: 3, F64: 1, Q32: 1.0 / 128, Q64: -1, R32: 10, R64: 10, I8: 127, I64: -11, U8: 0, U64: 7,
		Yaw: 0.5, Yaw64: 3, QYaw: 2, RYaw: 1, Course: 20, Bank: 170, Small: 10, Wide: 30, Head: 350,
		Turn: [4]float32{0, 0, half, half}, Still: 2, Count: 5, On: true, Who: Ref{2}, Until: Instant{9}, Text: "b",
	}
	is := drawn{
		F32: 1, F64: -1, Q32: 0, Q64: 1, R32: -3, R64: 5, I8: -128, I64: 10, U8: 255, U64: 1,
		Yaw: 6, Yaw64: -3, QYaw: 1, RYaw: 6, Course: 350, Bank: -170, Small: 16, Wide: -10, Head: 10,
		Turn: [4]float32{0, 0, 0, -1}, Still: 1, Count: 1, Who: Ref{1}, Until: Instant{1}, Text: "a",
	}
	off := make([]float64, p.Offsets())
	p.Apart(off, unsafe.Pointer(&was), unsafe.Pointer(&is))
	shifted := func(part float64) drawn {
		s := is
		p.Shift(unsafe.Pointer(&s), off, part)
		return s
	}
	whole := was // Stepping fields change at once.
	whole.Still, whole.Count, whole.On, whole.Who, whole.Until, whole.Text = is.Still, is.Count, is.On, is.Who, is.Until, is.Text
	whole.Yaw64, whole.Wide = 3-2*math.Pi, 30 // In the turn in which it is.
	whole.Course = 20
	middle := is
	middle.F32, middle.F64, middle.Q32, middle.Q64, middle.R32, middle.R64 = 2, 0, 1.0/256, 0, 3.5, 7.5
	middle.I8, middle.I64, middle.U8, middle.U64 = 0, -1, 128, 4
	middle.Yaw, middle.Yaw64, middle.QYaw, middle.RYaw = 6+float32(0.5+2*math.Pi-6)/2, -3-(math.Pi-3), 1.5, 6+float32(2*math.Pi-5)/2-2*math.Pi
	middle.Course, middle.Bank, middle.Small, middle.Wide, middle.Head = 5, 180, 13, 10, 0
	middle.Turn = [4]float32{0, 0, -float32(math.Sin(math.Pi / 8)), -float32(math.Cos(math.Pi / 8))}
	for part, want := range map[float64]drawn{0: is, 0.5: middle, 1: whole} {
		offsetGives(t, part, shifted(part), want)
	}
}

// An offset has its numbers in the order of the fields, four for a rotation, and the short way of
// an angle.
func TestAnOffsetIsTheShortWayOfEachField(t *testing.T) {
	type body struct {
		X      float32
		Yaw    float64    `net:"lerp=angle"`
		Turn   [4]float32 `net:"quat=12"`
		Course uint16     `net:"lerp=degrees"`
		Bank   int16      `net:"lerp=degrees"`
		Count  uint       `net:"lerp=linear"`
		Far    uint64     `net:"lerp=linear"`
	}
	const top = 1 << (bits.UintSize - 1) // A word has as many bits as the machine's.
	p := mustPlan[body](t)
	a := body{X: 3, Yaw: 3, Turn: [4]float32{0, 0, 0, 1}, Course: 5, Bank: -170, Count: top + 1<<20, Far: 1 << 63}
	b := body{X: 1, Yaw: -3, Turn: [4]float32{0, 0, 1, 0}, Course: 350, Bank: 180, Count: 1 << 20, Far: 1<<63 - 1<<20}
	off := make([]float64, p.Offsets())
	p.Apart(off, unsafe.Pointer(&a), unsafe.Pointer(&b))
	if want := []float64{2, 6 - 2*math.Pi, 0, 0, -1, 1, 15, 10, top, 1 << 20}; !slices.EqualFunc(off, want, func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }) {
		t.Errorf("%v, want %v", off, want)
	}
	half := b
	p.Shift(unsafe.Pointer(&half), off, 0.5)
	if half.Course != 358 && half.Course != 357 || half.Bank != 185 && half.Bank != -175 || half.Count != top/2+1<<20 || half.Far != 1<<63-1<<19 {
		t.Errorf("half of the way back: %+v", half)
	}
}

// offsetGives compares drawn values; angles may differ by a turn and rotations in sign.
func offsetGives(t *testing.T, part float64, got, want drawn) {
	t.Helper()
	close := func(name string, a, b, circle float64) {
		t.Helper()
		d := math.Abs(a - b)
		if circle > 0 {
			d = math.Abs(math.Remainder(d, circle))
		}
		if d > 1e-5 {
			t.Errorf("%v of the offset: %s is %v, want %v", part, name, a, b)
		}
	}
	close("F32", float64(got.F32), float64(want.F32), 0)
	close("F64", got.F64, want.F64, 0)
	close("Q32", float64(got.Q32), float64(want.Q32), 0)
	close("Q64", got.Q64, want.Q64, 0)
	close("R32", float64(got.R32), float64(want.R32), 0)
	close("R64", got.R64, want.R64, 0)
	close("I8", float64(got.I8), float64(want.I8), 1)
	close("I64", float64(got.I64), float64(want.I64), 1)
	close("U8", float64(got.U8), float64(want.U8), 1)
	close("U64", float64(got.U64), float64(want.U64), 0)
	close("Yaw", float64(got.Yaw), float64(want.Yaw), 2*math.Pi)
	close("Yaw64", got.Yaw64, want.Yaw64, 2*math.Pi)
	close("QYaw", float64(got.QYaw), float64(want.QYaw), 0)
	close("RYaw", float64(got.RYaw), float64(want.RYaw), 2*math.Pi)
	close("Course", float64(got.Course), float64(want.Course), 360)
	close("Bank", float64(got.Bank), float64(want.Bank), 360)
	close("Small", float64(got.Small), float64(want.Small), 0)
	close("Wide", float64(got.Wide), float64(want.Wide), 0)
	close("Head", got.Head, want.Head, 360)
	var dot float64
	for i := range got.Turn {
		dot += float64(got.Turn[i]) * float64(want.Turn[i])
	}
	close("Turn", math.Abs(dot), 1, 0)
	if got.Still != want.Still || got.Count != want.Count || got.On != want.On || got.Who != want.Who || got.Until != want.Until || got.Text != want.Text {
		t.Errorf("%v of the offset: %+v, want what steps as it is", part, got)
	}
}

// A rotation that was never set, or that an offset would turn into none, does not change.
func TestAnOffsetLeavesNoRotation(t *testing.T) {
	type s struct {
		Q [4]float32 `net:"quat=9"`
	}
	p := mustPlan[s](t)
	off := []float64{0, 0, 0, 1}
	for _, q := range [][4]float32{{}, {0, 0, 0, -1}} {
		got := s{q}
		if p.Shift(unsafe.Pointer(&got), off, 1); got.Q != q {
			t.Errorf("%v is moved to %v", q, got.Q)
		}
	}
}

// No value leaves the range of its field, and values without a distance are drawn unchanged.
func TestAnOffsetStaysWithinTheRange(t *testing.T) {
	type s struct {
		R float32 `net:"quant=1,range=0:10"`
		U uint8   `net:"lerp=linear"`
		I int8    `net:"lerp=linear"`
		L int64   `net:"lerp=linear"`
		F float64
		G float32
		Q [4]float32 `net:"quat=9"`
	}
	p := mustPlan[s](t)
	off := make([]float64, p.Offsets())
	nan := float32(math.NaN())
	a := s{R: 10, U: 255, I: 127, L: math.MaxInt64, F: math.Inf(1), G: nan, Q: [4]float32{nan}}
	b := s{R: 1, U: 250, I: 100, L: math.MaxInt64 - 5000, F: 1, G: 2, Q: [4]float32{1}}
	p.Apart(off, unsafe.Pointer(&a), unsafe.Pointer(&b))
	for _, part := range []float64{1, 3} {
		got := b
		if p.Shift(unsafe.Pointer(&got), off, part); got != (s{10, 255, 127, math.MaxInt64, 1, 2, [4]float32{1}}) {
			t.Errorf("%v: %+v", part, got)
		}
	}
	got := s{R: 5, U: 20, I: -100, L: math.MinInt64 + 10, G: 2}
	if p.Shift(unsafe.Pointer(&got), off, -40); got != (s{0, 0, -128, math.MinInt64, 0, 2, [4]float32{}}) {
		t.Errorf("back: %+v", got)
	}
}
