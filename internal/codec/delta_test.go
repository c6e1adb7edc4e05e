package codec

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// deltaOf writes and reads the delta from base to v, and checks that it is read to its last bit.
func deltaOf(tb testing.TB, p *Plan, v, base *Values, t Trend) *Values {
	tb.Helper()
	var w wire.BitWriter
	p.PutDelta(&w, v, base, &t)
	size := w.Len()
	if most, _ := p.MaxDelta(); size > most {
		tb.Fatalf("%d bits, more than MaxDelta %d", size, most)
	}
	padding := w.Flush()
	r := wire.NewBitReader(w.Bytes(), padding)
	got := &Values{Words: slices.Clone(base.Words), Blobs: slices.Clone(base.Blobs)}
	p.TakeDelta(&r, got, t, nil)
	if r.Err() != nil || r.Left() != 0 {
		tb.Fatalf("%v, %d of %d bits left", r.Err(), r.Left(), size)
	}
	if got.Words[p.words] != v.Words[p.words] {
		tb.Fatalf("the caller's word is %d, want %d", got.Words[p.words], v.Words[p.words])
	}
	return got
}

func bitsOf(tb testing.TB, p *Plan, v, base *Values, t Trend) int {
	var w wire.BitWriter
	p.PutDelta(&w, v, base, &t)
	return w.Len()
}

// randomEvery generates values that are near each other, far apart, and at the limits of their
// fields.
func randomEvery(rng *rand.Rand, from every) every {
	v := from
	near := func() int64 {
		switch rng.IntN(6) {
		case 0:
			return int64(rng.Uint64())
		case 1:
			return math.MinInt64 + rng.Int64N(3)
		case 2:
			return 0
		default:
			return rng.Int64N(41) - 20
		}
	}
	float := func(f float64) float64 {
		switch rng.IntN(12) {
		case 0:
			return math.Float64frombits(rng.Uint64())
		case 1:
			return math.Inf(rng.IntN(2)*2 - 1)
		case 2:
			return math.Copysign(0, -1)
		case 3:
			return 0
		case 4:
			return -f
		default:
			return f + rng.NormFloat64()
		}
	}
	change := func() bool { return rng.IntN(3) == 0 }
	if change() {
		v.Bool = !v.Bool
	}
	if change() {
		v.I8, v.I16, v.I32, v.I64, v.I = v.I8+int8(near()), v.I16+int16(near()), v.I32+int32(near()), v.I64+near(), v.I+int(near())
	}
	if change() {
		v.U8, v.U16, v.U32, v.U64, v.U = v.U8+uint8(near()), v.U16+uint16(near()), v.U32+uint32(near()), v.U64+uint64(near()), v.U+uint(near())
	}
	if change() {
		v.F32, v.F64 = float32(float(float64(v.F32))), float(v.F64)
	}
	if change() {
		v.Q32, v.Q64, v.R32, v.R64 = float32(float(float64(v.Q32))), float(v.Q64), float32(float(float64(v.R32))), float(v.R64)
		v.Pos.X, v.Pos.Y = v.Pos.X+float32(near()), v.Pos.Y-float32(near())
	}
	if change() {
		for i := range v.Quat {
			v.Quat[i] = float32(float(float64(v.Quat[i])))
		}
	}
	if change() {
		v.Ref.ref.ID = uint64(near())
	}
	if change() {
		v.Until.at.At += 1 << rng.IntN(40)
	}
	if change() {
		v.Text = "some text that is cut"[:rng.IntN(22)]
		v.Raw = []byte(v.Text)
		v.UUID[rng.IntN(16)]++
	}
	if change() {
		v.Items = append(slices.Clone(v.Items), item{})[:rng.IntN(len(v.Items)+2)]
		v.Hands = append(slices.Clone(v.Hands), hand{ID: string(rune(97 + rng.IntN(26)))})
		v.Bag = map[int16]item{int16(near()): {}}
	}
	return v
}

// For any older, baseline and value: reading restores the value written.
func TestDeltaRoundTripsRandomValues(t *testing.T) {
	p := mustPlan[every](t)
	rng := rand.New(rand.NewPCG(7, 7))
	capture := func(s every) *Values {
		v := p.newValues()
		p.Capture(unsafe.Pointer(&s), v)
		v.Words[p.words] = rng.Uint64N(3)
		return v
	}
	state := every{R64: 10}
	for range 4000 {
		past := capture(state)
		state = randomEvery(rng, state)
		a := capture(state)
		state = randomEvery(rng, state)
		b := capture(state)
		state = randomEvery(rng, state)
		c := capture(state)
		trend := Trend{Older: *a, Took: 1 + rng.Uint64N(MaxTrend), Ahead: 1 + rng.Uint64N(MaxTrend)}
		if trend.Bent = rng.IntN(2) == 0; trend.Bent {
			if trend.Oldest = *past; rng.IntN(4) == 0 {
				trend.Oldest = *b // it swings
			}
		}
		if rng.IntN(4) == 0 {
			trend = Trend{}
		}
		if got := deltaOf(t, p, c, b, trend); !p.Equal(got, c) {
			t.Fatalf("from %v\nto   %v\ngot  %v", b, c, got)
		}
		zero := p.Zero()
		zero.Words = append(zero.Words, 0)
		if got := deltaOf(t, p, c, &zero, Trend{}); !p.Equal(got, c) {
			t.Fatalf("whole %v, got %v", c, got)
		}
	}
}

// Steady motion costs a few bits a leaf, and unchanged leaves cost none.
func TestSteadyMotionCostsFewBits(t *testing.T) {
	type body struct {
		Pos    struct{ X, Y, Z float32 } `net:"quant=1/512,range=-32:32"`
		Rot    [4]float32                `net:"quat=9"`
		Smooth float32
		Name   string
		Rest   [9]int32
	}
	p := mustPlan[body](t)
	at := func(tick float64) *Values {
		var b body
		b.Pos.X, b.Pos.Y, b.Pos.Z = float32(tick*20/512), float32(-tick*30/512), 3
		b.Rot = [4]float32{0.2, 0.1, 0, float32(0.8 - tick*0.001)}
		b.Smooth, b.Name = float32(1000+tick), "name"
		v := p.newValues()
		p.Capture(unsafe.Pointer(&b), v)
		return v
	}
	older, base, now := at(4), at(10), at(16)
	with := bitsOf(t, p, now, base, Trend{Older: *older, Took: 6, Ahead: 6})
	without := bitsOf(t, p, now, base, Trend{})
	if with > 45 || without < 2*with {
		t.Errorf("%d bits with a trend, %d without", with, without)
	}
	if n := bitsOf(t, p, now, now, Trend{Older: *now, Took: 6, Ahead: 6}); n != 1 {
		t.Errorf("nothing moves and nothing has changed: %d bits, want 1", n)
	}
}

// A trend never makes a value of a range leave it, and a far move has none.
func TestTrendsStayInBounds(t *testing.T) {
	type s struct {
		R float32 `net:"quant=1,range=0:100"`
		I int64
	}
	p := mustPlan[s](t)
	words := func(r, i uint64) *Values { return &Values{Words: []uint64{r, i, 0}} }
	older, base := words(0, 0), words(99, math.MaxInt64)
	tr := Trend{Older: *older, Took: 1, Ahead: MaxTrend}
	if got := 99 + p.leaves[0].aim(99, &tr).shift; got != 100 {
		t.Errorf("predicted %d, want the end of the range", got)
	}
	var m leafSet
	if p.moving(&m, base, &tr); !m.has(1) || m.has(2) {
		t.Errorf("moving %v", m)
	}
	if got := deltaOf(t, p, words(50, 5), base, tr); got.Words[0] != 50 || got.Words[1] != 5 {
		t.Errorf("got %v", got)
	}
}

// For any two floats, the difference takes at most the float itself and a bit.
func TestNoFloatTakesMoreThanItselfAndABit(t *testing.T) {
	type floats struct {
		A, B float32
		C, D float64
	}
	p := mustPlan[floats](t)
	rng := rand.New(rand.NewPCG(3, 9))
	some := func(near float64) float64 {
		switch rng.IntN(9) {
		case 0:
			return math.Float64frombits(rng.Uint64())
		case 1:
			return float64(math.Float32frombits(rng.Uint32()))
		case 2:
			return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}[rng.IntN(5)]
		case 3:
			return []float64{math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat64, math.MaxFloat32, -math.MaxFloat64}[rng.IntN(4)]
		case 4, 5:
			return -near
		case 6:
			return near
		default:
			return near * (1 + rng.NormFloat64()/100)
		}
	}
	var s floats
	sizes, raw := make([]uint64, 5), false
	var w wire.BitWriter
	for range 20_000 {
		var v [4]*Values // from the oldest on
		for i := range v {
			s = floats{float32(some(float64(s.A))), float32(some(float64(s.B))), some(s.C), some(s.D)}
			v[i] = p.newValues()
			p.Capture(unsafe.Pointer(&s), v[i])
		}
		tr := Trend{Oldest: *v[0], Older: *v[1], Took: 1 + rng.Uint64N(4), Ahead: 1 + rng.Uint64N(4), Bent: rng.IntN(2) == 0}
		if rng.IntN(5) == 0 {
			tr = Trend{}
		}
		if got := deltaOf(t, p, v[3], v[2], tr); !p.Equal(got, v[3]) {
			t.Fatalf("%v became %v", v[3], got)
		}
		clear(sizes)
		w.Reset(nil)
		p.AddSizes(sizes, 1, &w, v[3], v[2], &tr)
		for i, most := range []uint64{0, 33, 33, 65, 65} {
			raw = raw || i > 0 && sizes[i] == most
			if sizes[i] > most {
				t.Fatalf("leaf %d takes %d bits from %v by %v and %v to %v", i, sizes[i], v[0], v[1], v[2], v[3])
			}
		}
	}
	if !raw {
		t.Error("no float was written as it is")
	}
}

// An alternating value is expected at its value an even number of ticks ago, and a bent float on
// its curve, so that each takes few bits. If alternation cannot be detected, they cost more.
func TestSwingsAndBendsCostFewBits(t *testing.T) {
	type body struct {
		I int32
		F float32
		D float64
		Q float32 `net:"quant=1/64"`
	}
	p := mustPlan[body](t)
	swing := func(tick float64) body {
		sign, size := 1-2*math.Mod(tick, 2), 100+tick
		return body{int32(sign * size * 50), float32(sign * size), 7 + sign*size, float32(sign * size * 10)}
	}
	curve := func(tick float64) body { return body{F: float32(tick * tick), D: -3 * tick * tick} }
	for _, c := range []struct {
		name        string
		at          func(float64) body
		took, ahead float64
		bent        bool
		most, least int
	}{
		{"a swing, ahead by an odd number", swing, 3, 1, true, 80, 4},
		{"a swing, ahead by an even number", swing, 3, 4, true, 80, 4},
		{"a swing, from tick to tick", swing, 1, 3, true, 80, 4},
		{"a swing whose trends span even numbers", swing, 2, 1, true, 200, 100},
		{"a swing with two states", swing, 3, 1, false, 200, 60},
		{"a curve", curve, 3, 6, true, 85, 4},
		{"a curve with two states", curve, 3, 6, false, 140, 90},
	} {
		var v [4]*Values
		for i, tick := range []float64{40 - 2*c.took, 40 - c.took, 40, 40 + c.ahead} {
			b := c.at(tick)
			v[i] = p.newValues()
			p.Capture(unsafe.Pointer(&b), v[i])
		}
		tr := Trend{Oldest: *v[0], Older: *v[1], Took: uint64(c.took), Ahead: uint64(c.ahead), Bent: c.bent}
		if n := bitsOf(t, p, v[3], v[2], tr); n > c.most || n < c.least {
			t.Errorf("%s: %d bits, want %d to %d", c.name, n, c.least, c.most)
		}
	}
}

func TestDeltaDoesNotAllocate(t *testing.T) {
	p := mustPlan[every](t)
	rng := rand.New(rand.NewPCG(1, 1))
	var v [3]*Values
	state := sampleEvery()
	for i := range v {
		v[i] = p.newValues()
		p.Capture(unsafe.Pointer(&state), v[i])
		state.Pos.X += 3
		state.I32 += int32(rng.IntN(9))
	}
	var w wire.BitWriter
	buf, got := make([]byte, 0, 4096), p.newValues()
	tr := Trend{Older: *v[0], Took: 3, Ahead: 6}
	if n := testing.AllocsPerRun(100, func() {
		w.Reset(buf)
		p.PutDelta(&w, v[2], v[1], &tr)
		padding := w.Flush()
		copy(got.Words, v[1].Words)
		copy(got.Blobs, v[1].Blobs)
		r := wire.NewBitReader(w.Bytes(), padding)
		p.TakeDelta(&r, got, tr, nil)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// For any baseline, older version and bits: no panic, and an accepted value can be read and written
// again.
func FuzzTakeDelta(f *testing.F) {
	p := mustPlan[every](f)
	a, b := sampleEvery(), every{R64: 12, Pos: vec{X: 1, Y: 2}}
	va, vb := p.newValues(), p.newValues()
	p.Capture(unsafe.Pointer(&a), va)
	p.Capture(unsafe.Pointer(&b), vb)
	var w wire.BitWriter
	p.PutDelta(&w, vb, va, new(Trend))
	w.Flush()
	f.Add(p.AppendValues(nil, va), p.AppendValues(nil, vb), w.Bytes(), byte(3), byte(200))
	f.Add(p.AppendValues(nil, vb), p.AppendValues(nil, va), []byte{0xff, 1, 2, 3}, byte(1), byte(0))
	f.Fuzz(func(t *testing.T, base, older, delta []byte, took, ahead byte) {
		v, old := p.newValues(), p.newValues()
		in := wire.NewReader(base)
		if p.ReadSome(&in, v, nil); in.Done() != nil {
			return
		}
		in = wire.NewReader(older)
		if p.ReadSome(&in, old, nil); in.Done() != nil {
			return
		}
		tr := Trend{}
		if took > 0 {
			tr = Trend{Older: *old, Took: 1 + uint64(took)%MaxTrend, Ahead: 1 + uint64(ahead)%MaxTrend, Bent: took >= 128}
			tr.Oldest = oldestOf(v, old, took)
		}
		from := &Values{Words: slices.Clone(v.Words), Blobs: slices.Clone(v.Blobs)}
		r := wire.NewBitReader(delta, int(ahead&7))
		scratch := p.TakeDelta(&r, v, tr, nil)
		if len(scratch) > len(delta) {
			t.Fatalf("%d bytes of scratch for %d of input", len(scratch), len(delta))
		}
		if r.Err() != nil {
			return
		}
		in = wire.NewReader(p.AppendValues(nil, v))
		if p.ReadSome(&in, p.newValues(), nil); in.Done() != nil {
			t.Fatalf("accepted, but not readable: %v", in.Err())
		}
		if got := deltaOf(t, p, v, from, tr); !p.Equal(got, v) {
			t.Fatal("written again it becomes another value")
		}
	})
}

// oldestOf is the base for an alternating value, or else the older version again.
func oldestOf(base, older *Values, took byte) Values {
	if took >= 192 {
		return Values{Words: slices.Clone(base.Words), Blobs: base.Blobs}
	}
	return *older
}

// An int is sent as an int64 and a uint as a uint64, also in runs of neighbours: a reader that has
// only the tables reads the writer's output.
func TestIntRunsOnAsInt64(t *testing.T) {
	type mixed struct {
		A int64
		B int
		C uint64
		D uint
	}
	type other struct {
		A, B int64
		C, D uint64
	}
	here := mustPlan[mixed](t)
	there, err := Bind(reflect.TypeFor[other](), here.Layout(), new(Budget))
	if err != nil {
		t.Fatal(err)
	}
	values := func() *Values { return &Values{Words: make([]uint64, 5)} } // one is the caller's
	v, base, got := values(), values(), values()
	here.Capture(unsafe.Pointer(&mixed{1, 54428, 2, 99}), v)
	var w wire.BitWriter
	here.PutDelta(&w, v, base, new(Trend))
	size := w.Len()
	padding := w.Flush()
	r := wire.NewBitReader(w.Bytes(), padding)
	there.TakeDelta(&r, got, Trend{}, nil)
	if r.Err() != nil || r.Left() != 0 || !slices.Equal(got.Words, v.Words) {
		t.Errorf("%v of %d bits became %v: %v, %d left", v.Words, size, got.Words, r.Err(), r.Left())
	}
}

// The extrapolation of a trend is the same by division and by multiplication with an inverse.
func TestATrendIsDrawnOnExactly(t *testing.T) {
	for took := uint64(1); took <= 2*MaxTrend; took++ {
		for ahead := uint64(1); ahead <= MaxTrend; ahead += 31 {
			most := (1<<24 - 1 - took) / (2 * ahead) // up to which it is multiplied
			for _, around := range []uint64{0, took, 1000 * took, most / 2, most} {
				for d := max(around, 2) - 2; d <= around+2; d++ {
					want := int64((2*d*ahead + took) / (2 * took))
					if a, b := draw(int64(d), ahead, took), draw(-int64(d), ahead, took); a != want || b != -want {
						t.Fatalf("%d by %d in %d ticks leads to %d and %d, want ±%d", d, ahead, took, a, b, want)
					}
				}
			}
		}
	}
}
