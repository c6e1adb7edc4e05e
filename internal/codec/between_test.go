package codec

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// drawn has a field for each way of drawing and each kind that can be drawn so.
type drawn struct {
	F32    float32
	F64    float64
	Q32    float32    `net:"quant=1/256"`
	Q64    float64    `net:"quant=0.01"`
	R32    float32    `net:"quant=1/4,range=-3:10"`
	R64    float64    `net:"quant=1/4,range=5:10"`
	I8     int8       `net:"lerp=linear"`
	I64    int64      `net:"lerp=linear"`
	U8     uint8      `net:"lerp=linear"`
	U64    uint64     `net:"lerp=linear"`
	Yaw    float32    `net:"lerp=angle"`
	Yaw64  float64    `net:"lerp=angle"`
	QYaw   float32    `net:"lerp=angle,quant=1/256"`
	RYaw   float32    `net:"lerp=angle,quant=1/1024,range=0:6.2832"`
	Course uint16     `net:"lerp=degrees"`
	Bank   int16      `net:"lerp=degrees"`
	Small  uint8      `net:"lerp=degrees"`
	Wide   int64      `net:"lerp=degrees"`
	Head   float64    `net:"lerp=degrees,quant=0.5,range=0:360"`
	Turn   [4]float32 `net:"quat=12"`
	Still  float32    `net:"lerp=none"`
	Count  int32
	On     bool
	Who    Ref
	Until  Instant
	Text   string `net:"max=8"`
}

// rounded are the values of a struct, and the struct that Restore makes of them.
func rounded[T any](p *Plan, s T) (v *Values, out T) {
	v = p.newValues()
	p.Capture(unsafe.Pointer(&s), v)
	p.Restore(unsafe.Pointer(&out), v, nil)
	return v, out
}

// between draws t of the way from a to b into a struct that holds b.
func between[T any](p *Plan, a, b T, t float64) T {
	from, _ := rounded(p, a)
	to, out := rounded(p, b)
	p.Between(unsafe.Pointer(&out), to, from, to, t)
	return out
}

func TestBetweenTwoValuesEachFieldGoesItsWay(t *testing.T) {
	p := mustPlan[drawn](t)
	half := float32(math.Sqrt2 / 2)
	a := drawn{
		F32: 1, F64: -1, Q32: 0, Q64: 1, R32: -3, R64: 5, I8: -128, I64: math.MaxInt64 - 10, U8: 255, U64: math.MaxUint64,
		Yaw: 6, Yaw64: -3, QYaw: 1, RYaw: 6, Course: 350, Bank: -170, Small: 250, Wide: -10, Head: 10,
		Turn: [4]float32{0, 0, 0, 1}, Still: 1, Count: 1, On: false, Who: Ref{1}, Until: Instant{1}, Text: "a",
	}
	b := drawn{
		F32: 3, F64: 1, Q32: 1.0 / 256, Q64: -1, R32: 10, R64: 10, I8: 127, I64: math.MaxInt64, U8: 0, U64: math.MaxUint64 - 3,
		Yaw: 0.5, Yaw64: 3, QYaw: 2, RYaw: 1, Course: 20, Bank: 170, Small: 10, Wide: 30, Head: 350,
		Turn: [4]float32{0, 0, half, half}, Still: 2, Count: 5, On: true, Who: Ref{2}, Until: Instant{9}, Text: "b",
	}
	_, first := rounded(p, a)
	_, last := rounded(p, b)
	for _, c := range []struct {
		t    float64
		want func(*drawn)
	}{
		{0.25, func(d *drawn) {
			d.F32, d.F64, d.Q32, d.Q64, d.R32, d.R64 = 1.5, -0.5, 1.0/1024, 0.5, 0.25, 6.25
			d.I8, d.I64, d.U8, d.U64 = -64, math.MaxInt64-7, 191, math.MaxUint64-1
			d.Yaw, d.QYaw, d.RYaw = 6+(0.5+2*math.Pi-6)/4, 1.25, 6+float32(2*math.Pi-5)/4-2*math.Pi
			d.Yaw64, d.Course, d.Bank, d.Small, d.Wide, d.Head = -3-(2*math.Pi-6)/4, 358, -175, 255, 0, 5
			d.Turn = [4]float32{0, 0, float32(math.Sin(math.Pi / 16)), float32(math.Cos(math.Pi / 16))}
		}},
		{0.75, func(d *drawn) {
			d.F32, d.F64, d.Q32, d.Q64, d.R32, d.R64 = 2.5, 0.5, 3.0/1024, -0.5, 6.75, 8.75
			d.I8, d.I64, d.U8, d.U64 = 63, math.MaxInt64-2, 64, math.MaxUint64-2
			d.Yaw, d.QYaw, d.RYaw = 0.5-(0.5+2*math.Pi-6)/4, 1.75, 1-float32(2*math.Pi-5)/4
			d.Yaw64, d.Course, d.Bank, d.Small, d.Wide, d.Head = 3+(2*math.Pi-6)/4, 13, 175, 255, 20, 355
			d.Turn = [4]float32{0, 0, float32(math.Sin(3 * math.Pi / 16)), float32(math.Cos(3 * math.Pi / 16))}
		}},
	} {
		want := first
		c.want(&want)
		if got := between(p, a, b, c.t); !near(&got, &want) {
			t.Errorf("at %v:\ngot  %+v\nwant %+v", c.t, got, want)
		}
	}
	if got := between(p, a, b, 0); stepped(got) != stepped(first) || got.Text != "b" {
		t.Errorf("at 0 %+v, want %+v with the text of b", got, first)
	}
	if got := between(p, a, b, 1); got != last {
		t.Errorf("at 1 %+v, want %+v", got, last)
	}
}

// stepped removes the parts that Between does not change.
func stepped(d drawn) drawn { d.Text = ""; return d }

// near compares numbers within the precision of a float32 or a quaternion of 12 bits, and all other
// fields exactly. The text is unchanged.
func near(a, b *drawn) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() - 1 {
		switch f, g := x.Field(i), y.Field(i); {
		case f.Kind() == reflect.Array:
			for j := range f.Len() {
				if math.Abs(f.Index(j).Float()-g.Index(j).Float()) > 1e-3 {
					return false
				}
			}
		case f.CanFloat():
			if math.Abs(f.Float()-g.Float()) > 2e-6 {
				return false
			}
		case f.Interface() != g.Interface():
			return false
		}
	}
	return true
}

// An angle ends in the turn of the two between which it is, also right at its end; and an angle too
// large for a float64 to hold moves like any number, from exactly where it was.
func TestAnAngleIsInTheTurnOfItsEnds(t *testing.T) {
	p := mustPlan[drawn](t)
	for _, c := range []struct {
		a, b, want int16
		t          float64
	}{{170, -170, -180, 0.5}, {-170, 170, -180, 0.5}, {170, -170, -178, 0.6}, {-130, 170, 179, 0.85}, {-10, 10, 0, 0.5}} {
		if got := between(p, drawn{Bank: c.a}, drawn{Bank: c.b}, c.t).Bank; got != c.want {
			t.Errorf("%v from %d to %d is %d, want %d", c.t, c.a, c.b, got, c.want)
		}
	}
	for _, from := range []int64{1<<53 + 1, -1<<53 - 1} {
		if got := between(p, drawn{Wide: from}, drawn{Wide: from + 2}, 0.001).Wide; got != from {
			t.Errorf("from %d it moves to %d", from, got)
		}
	}
}

// Beyond the newer value numbers are extrapolated, up to the limits of their fields; stepping
// fields are unchanged, and NaN and infinity do not occur.
func TestBeyondTheNewerValueNumbersGoOnWithinTheirRange(t *testing.T) {
	p := mustPlan[drawn](t)
	a := drawn{F32: 1, F64: math.MaxFloat64 / 4, Q32: 1, R32: 9, R64: 6, I8: 100, I64: 5, U8: 5, U64: 3, RYaw: 6, Course: 2, Count: 1}
	b := drawn{F32: 2, F64: math.MaxFloat64 / 2, Q32: 2, R32: 10, R64: 5, I8: 120, I64: 7, U8: 1, U64: 2, RYaw: 6.25, Course: 1, Count: 2, Text: "b"}
	got := between(p, a, b, 3)
	want := drawn{F32: 4, F64: math.MaxFloat64, Q32: 4, R32: 10, R64: 5, I8: 127, I64: 11, U8: 0, U64: 0, RYaw: 6.75 - 2*math.Pi, Course: 359, Count: 2}
	if math.IsInf(got.F64, 0) || got.F64 < math.MaxFloat64/2 {
		t.Errorf("a float64 at its limit became %v", got.F64)
	}
	if got.F64, want.F64 = 0, 0; !near(&got, &want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if far := between(p, a, b, math.Inf(1)); far.F32 != 2+63 {
		t.Errorf("a time without a bound leads to %v, want 63 distances further", far.F32)
	}
}

// Fields without a distance step: infinities, a rotation that was never set, integers with a
// difference beyond a float64.
func TestFieldsWithoutADistanceStep(t *testing.T) {
	p := mustPlan[drawn](t)
	a := drawn{F32: 1, F64: math.Inf(-1), I64: math.MinInt64, U64: 1 << 53, Turn: [4]float32{}, Yaw: float32(math.Inf(1))}
	b := drawn{F32: float32(math.Inf(1)), F64: math.Inf(1), I64: math.MaxInt64, U64: 0, Turn: [4]float32{1, 0, 0, 0}, Yaw: 1}
	_, first := rounded(p, a)
	_, last := rounded(p, b)
	for _, at := range []float64{0.1, 0.9} {
		if got := between(p, a, b, at); got != first {
			t.Errorf("at %v %+v, want %+v", at, got, first)
		}
	}
	if got := between(p, a, b, 1.5); got != last {
		t.Errorf("at 1.5 %+v, want %+v", got, last)
	}
	if got := between(p, drawn{U64: 1<<53 - 1}, drawn{}, 0.5); got.U64 != 1<<52-1 && got.U64 != 1<<52 {
		t.Errorf("halfway from 2^53-1 to 0 is %d", got.U64)
	}
}

// The numbers written by Between do not depend on the previous contents of the struct.
func TestBetweenDoesNotDependOnPreviousContents(t *testing.T) {
	p := mustPlan[drawn](t)
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		from, _ := rounded(p, randomDrawn(r))
		to, one := rounded(p, randomDrawn(r))
		third, other := rounded(p, randomDrawn(r))
		if r.IntN(2) == 0 {
			copy(to.Words, from.Words[:p.words/2]) // Something may be alike.
			p.Restore(unsafe.Pointer(&one), to, nil)
		}
		at := r.Float64() * 1.2
		p.Between(unsafe.Pointer(&one), to, from, to, at)
		p.Between(unsafe.Pointer(&other), third, from, to, at)
		if stepped(one) != stepped(other) {
			t.Fatalf("at %v %+v, but from another struct %+v", at, one, other)
		}
	}
}

func randomDrawn(r *rand.Rand) drawn {
	signed := func(scale float64) float64 { return (r.Float64() - 0.5) * scale }
	return drawn{
		F32: float32(signed(1000)), F64: signed(1000), Q32: float32(signed(1000)), Q64: signed(1000),
		R32: float32(signed(20)), R64: 5 + 5*r.Float64(), I8: int8(r.Int()), I64: r.Int64N(1<<40) - 1<<39,
		U8: uint8(r.Int()), U64: r.Uint64N(1 << 40), Yaw: float32(signed(20)), Yaw64: signed(20), QYaw: float32(signed(20)),
		RYaw: float32(r.Float64() * 2 * math.Pi), Course: uint16(r.IntN(360)), Bank: int16(r.IntN(1000) - 500), Small: uint8(r.Int()),
		Head: r.Float64() * 360, Turn: randomQuat(r), Still: float32(signed(9)), Count: r.Int32(), On: r.IntN(2) == 0,
		Who: Ref{r.Uint64N(9)}, Until: Instant{5}, Text: "t",
	}
}

// A plain model, by definitions: linear fields are on the line, angles on the short arc, rotations
// at their share of the angle between the two; all other fields step. No field leaves its range.
func TestBetweenFollowsThePlainModel(t *testing.T) {
	p := mustPlan[drawn](t)
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 5000 {
		a, b, at := randomDrawn(r), randomDrawn(r), r.Float64()
		got := between(p, a, b, at)
		_, first := rounded(p, a)
		_, last := rounded(p, b)
		x, y, g := reflect.ValueOf(first), reflect.ValueOf(last), reflect.ValueOf(got)
		for j, l := range p.DescribeLeaves()[:p.words] {
			ok := true
			switch one, two, is := number(x.Field(j)), number(y.Field(j)), number(g.Field(j)); l.Lerp {
			case LerpStep:
				ok = g.Field(j).Interface() == x.Field(j).Interface()
			case LerpLinear:
				ok = math.Abs(is-(one+(two-one)*at)) <= slack(l.Type, 1e-4)
			case LerpAngle:
				ok = onArc(one, two, is, at, 2*math.Pi) <= 1e-4
			case LerpDegrees:
				ok = onArc(one, two, is, at, 360) <= slack(l.Type, 1e-6) || l.Name == "Small"
			case LerpRotation:
				all := off(first.Turn, last.Turn)
				ok = math.Abs(off(first.Turn, got.Turn)-at*all) < 1e-5 && math.Abs(off(got.Turn, last.Turn)-(1-at)*all) < 1e-5
			}
			if !ok {
				t.Fatalf("pair %d, field %s: from %v to %v at %v is %v", i, l.Name, x.Field(j), y.Field(j), at, g.Field(j))
			}
		}
		if names := p.Misfits(unsafe.Pointer(&got)); names != nil {
			t.Fatalf("pair %d: %v of %+v left their range", i, names, got)
		}
	}
}

func number(v reflect.Value) float64 {
	switch {
	case v.CanFloat():
		return v.Float()
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	}
	return 0
}

// slack is half of an integer's precision, or a little.
func slack(kind string, little float64) float64 {
	if kind == "float32" || kind == "float64" {
		return little
	}
	return 0.5 + little
}

// onArc is by how much an angle is off its place on the short arc.
func onArc(a, b, is, at, circle float64) float64 {
	want := a + math.Remainder(b-a, circle)*at
	return math.Abs(math.Remainder(is-want, circle))
}

func TestTeleportsAreNotInterpolated(t *testing.T) {
	type hopper struct {
		X    float32
		Hops uint8    `net:"teleport"`
		Deck struct { // so may any field that determines the meaning of others
			Ship Ref
			Name string
		} `net:"teleport"`
	}
	p := mustPlan[hopper](t)
	there := hopper{X: 8}
	for name, hop := range map[string]func(*hopper){
		"a counter": func(h *hopper) { h.Hops++ },
		"a ref":     func(h *hopper) { h.Deck.Ship.ID = 5 },
		"a string":  func(h *hopper) { h.Deck.Name = "stern" },
	} {
		to := there
		hop(&to)
		for at, want := range map[float64]float32{0: 0, 0.99: 0, 1: 8, 1.5: 8} {
			if got := between(p, hopper{}, to, at); got.X != want {
				t.Errorf("after a change of %s at %v X is %v, want %v", name, at, got.X, want)
			}
		}
	}
	if got := between(p, hopper{}, there, 0.5); got.X != 4 {
		t.Errorf("without a teleport X is %v, want 4", got.X)
	}
	var told []string
	for _, l := range p.DescribeLeaves() {
		if l.Teleport {
			told = append(told, l.Name)
		}
	}
	if want := []string{"Hops", "Deck.Ship", "Deck.Name"}; !reflect.DeepEqual(told, want) || !p.HasTeleports() {
		t.Errorf("fields that teleport: %q, want %q", told, want)
	}
	if mustPlan[drawn](t).HasTeleports() {
		t.Error("a class without the tag teleports")
	}
	refused(t, struct {
		A []struct {
			B int8 `net:"teleport"`
		}
	}{}, "struct.A[].B: teleport inside a slice or map; put it on the slice or map")
	refused(t, struct {
		A int8 `net:"teleport=1"`
	}{}, "struct.A: teleport=1: write teleport alone")
}

// The side that draws declares how a field is drawn, also with another layout of the other side,
// and fields of the other side alone have no effect.
func TestABoundPlanDrawsAsItsOwnSideSays(t *testing.T) {
	type server struct {
		Extra float32
		Gone  uint8 `net:"teleport"`
		Y, X  float32
		Turn  [4]float32 `net:"quat=9"`
		N     uint16
		Hops  uint8
	}
	type client struct {
		X    float32
		Y    float32    `net:"lerp=none"`
		Turn [4]float32 `net:"quat=9"`
		N    uint16     `net:"lerp=degrees"`
		Hops uint8      `net:"teleport"`
	}
	far := mustPlan[server](t)
	p, err := Bind(reflect.TypeFor[client](), far.Layout(), new(Budget))
	if err != nil {
		t.Fatal(err)
	}
	from, _ := rounded(far, server{Y: 1, X: 1, N: 350, Turn: [4]float32{1, 0, 0, 0}})
	to, _ := rounded(far, server{Extra: 3, Gone: 1, Y: 2, X: 2, N: 10, Turn: [4]float32{0, 1, 0, 0}})
	var got client
	p.Restore(unsafe.Pointer(&got), to, nil)
	p.Between(unsafe.Pointer(&got), to, from, to, 0.5)
	half := float32(math.Sqrt2 / 2)
	if want := (client{X: 1.5, Y: 1, N: 0, Turn: [4]float32{half, half, 0, 0}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	to.Words[p.leaves[p.find("", "Hops")].pos]++
	if p.Between(unsafe.Pointer(&got), to, from, to, 0.5); got.X != 1 {
		t.Errorf("with a teleport X is %v, want 1", got.X)
	}
}

func TestBetweenAllocatesNothing(t *testing.T) {
	p := mustPlan[drawn](t)
	r := rand.New(rand.NewPCG(1, 1))
	from, _ := rounded(p, randomDrawn(r))
	to, out := rounded(p, randomDrawn(r))
	if n := testing.AllocsPerRun(100, func() { p.Between(unsafe.Pointer(&out), to, from, to, 0.3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// For any two values that a reader accepts, and any time, the result of Between fits the fields.
func FuzzBetween(f *testing.F) {
	p := mustPlan[drawn](f)
	r := rand.New(rand.NewPCG(3, 3))
	for range 4 {
		a, _ := rounded(p, randomDrawn(r))
		b, _ := rounded(p, randomDrawn(r))
		f.Add(p.AppendValues(p.AppendValues(nil, a), b), binary.LittleEndian.Uint64([]byte("fraction")))
	}
	f.Fuzz(func(t *testing.T, b []byte, bits uint64) {
		at := math.Float64frombits(bits)
		in, from, to := wire.NewReader(b), p.newValues(), p.newValues()
		p.ReadSome(&in, from, nil)
		p.ReadSome(&in, to, nil)
		if in.Err() != nil || math.IsNaN(at) {
			return
		}
		var out drawn
		p.Restore(unsafe.Pointer(&out), to, nil)
		p.Between(unsafe.Pointer(&out), to, from, to, at)
		if names := p.Misfits(unsafe.Pointer(&out)); names != nil {
			t.Fatalf("%v of %+v do not fit", names, out)
		}
	})
}

func BenchmarkBetween(b *testing.B) {
	type ship struct {
		X, Y, VX, VY float32 `net:"quant=1/256"`
		Yaw          float32 `net:"quant=1/1024,range=0:6.2832,lerp=angle"`
		Health       uint8
		Shots        uint16
	}
	p := mustPlan[ship](b)
	from, _ := rounded(p, ship{X: 1, Y: 2, Yaw: 1, Health: 9})
	to, out := rounded(p, ship{X: 2, Y: 3, Yaw: 2, Health: 8})
	for b.Loop() {
		p.Between(unsafe.Pointer(&out), to, from, to, 0.3)
	}
}
