package codec

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

type weapon uint8

type wrappedRef[S any] struct {
	ref Ref
	_   [0]func(S)
}
type wrappedInstant struct{ at Instant }

type vec struct{ X, Y float32 }

type item struct {
	Name  string `net:"max=12"`
	Count uint16
	Spot  vec
	Raw   []byte `net:"max=4"`
	Cache int    `net:"-"`
}

type hand struct {
	ID    string
	Cards []uint8
	Marks map[string]bool
	Left  int8
}

// every holds every kind once. The guard test counts on it.
type every struct {
	Bool   bool
	I8     int8
	I16    int16
	I32    int32
	I64    int64
	I      int
	U8     uint8
	U16    uint16
	U32    uint32
	U64    uint64
	U      uint
	F32    float32
	F64    float64
	Q32    float32 `net:"quant=1/256"`
	Q64    float64 `net:"quant=0.01"`
	Ref    wrappedRef[item]
	Until  wrappedInstant
	Text   string `net:"max=16"`
	Raw    []byte `net:"max=16"`
	UUID   [16]byte
	Items  []item `net:"max=3"`
	Weapon weapon
	Pos    vec `net:"quant=1/64"`
	Grid   [3]int16
	Names  []string       `net:"max=2"`
	Local  map[string]int `net:"-"`
	R32    float32        `net:"quant=1/8,range=-100:100"`
	R64    float64        `net:"quant=0.01,range=10:20"`
	Quat   [4]float32     `net:"quat=10"`
	Bag    map[int16]item `net:"max=3"`
	Seen   map[Ref]struct{}
	Hands  []hand  `net:"key=ID"`
	Mail   *letter `net:"max=5"`
}

func mustPlan[T any](tb testing.TB) *Plan {
	tb.Helper()
	p, err := Compile(reflect.TypeFor[T](), letters)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func sampleEvery() every {
	return every{
		Bool: true, I8: -128, I16: -32768, I32: math.MinInt32, I64: math.MinInt64, I: -7,
		U8: 255, U16: 65535, U32: math.MaxUint32, U64: math.MaxUint64, U: 9,
		F32: -1.5, F64: math.Pi, Q32: 3.25, Q64: -12.34,
		Ref: wrappedRef[item]{ref: Ref{ID: 1<<32 | 5}}, Until: wrappedInstant{Instant{3 * time.Second}},
		Text: "héllo", Raw: []byte{1, 2, 3}, UUID: [16]byte{15: 9},
		Items:  []item{{Name: "axe", Count: 3, Spot: vec{1, -2}, Raw: []byte{7}}, {Name: "", Count: 65535}},
		Weapon: 4, Pos: vec{0.5, -0.25}, Grid: [3]int16{-1, 0, 1}, Names: []string{"a", "bc"},
		R32: -2.5, R64: 12.25, Quat: [4]float32{0, 0, 0, 1},
		Bag: map[int16]item{-1: {Name: "a"}, 7: {Raw: []byte{1}}}, Seen: map[Ref]struct{}{{9}: {}, {1 << 40}: {}},
		Hands: []hand{{ID: "b", Cards: []uint8{1, 2}, Marks: map[string]bool{"x": true, "": false}}, {ID: "a"}},
		Mail:  &letter{"dear"},
	}
}

func (p *Plan) newValues() *Values {
	// one more, for a caller's
	return &Values{Words: make([]uint64, p.words+1), Blobs: make([][]byte, p.blobs)}
}

func TestMessageRoundTripsEveryKind(t *testing.T) {
	p := mustPlan[every](t)
	for _, in := range []every{{R64: 10}, sampleEvery()} {
		b, err := p.Append([]byte("head"), unsafe.Pointer(&in))
		if err != nil {
			t.Fatal(err)
		}
		var out every
		if err := p.Decode(b[4:], unsafe.Pointer(&out)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(in, out) {
			t.Errorf("got %+v\nwant %+v", out, in)
		}
		for n := 4; n < len(b); n++ {
			if p.Decode(b[4:n], unsafe.Pointer(&every{})) == nil {
				t.Fatalf("cut to %d of %d bytes it decodes", n-4, len(b)-4)
			}
		}
		if err := p.Decode(append(b[4:], 0), unsafe.Pointer(&out)); !errors.Is(err, wire.ErrTrailing) {
			t.Errorf("trailing byte: %v", err)
		}
	}
}

// A kind that is added to the enumeration must be in `every`, have a text, sizes, and forms.
func TestGuardEveryKindIsEncoded(t *testing.T) {
	p := mustPlan[every](t)
	seen := map[Kind]bool{}
	for i := range p.leaves {
		seen[p.leaves[i].kind] = true
	}
	for k := Bool; k < endOfKinds; k++ {
		if !seen[k] {
			t.Errorf("kind %d (%v) is not in the struct of this test", k, k)
		}
		if k.String() == "invalid" {
			t.Errorf("kind %d has no text", k)
		}
	}
	for k := reflect.Invalid + 1; k <= reflect.UnsafePointer; k++ {
		_, scalar := scalars[k]
		switch k {
		case reflect.String, reflect.Slice, reflect.Map, reflect.Array, reflect.Struct:
		case reflect.Uintptr, reflect.Complex64, reflect.Complex128, reflect.Chan, reflect.Func,
			reflect.Interface, reflect.Pointer, reflect.UnsafePointer:
			if scalar {
				t.Errorf("%v must be refused", k)
			}
		default:
			if !scalar {
				t.Errorf("reflect kind %v is neither sent nor refused", k)
			}
		}
	}
	// Every leaf alone: changed, it is seen by Mark, Equal, PutDelta and AppendValues.
	a, b := sampleEvery(), every{}
	va, vb := p.newValues(), p.newValues()
	p.Capture(unsafe.Pointer(&a), va)
	p.Capture(unsafe.Pointer(&b), vb)
	ticks := make([]uint64, p.Leaves())
	p.Mark(ticks, 7, va, vb)
	for i, n := range ticks {
		if n != 7 && !strings.HasPrefix(p.leaves[i].name, "Grid[1]") {
			t.Errorf("%s: the change is not seen; does the sample set it?", p.leaves[i].name)
		}
	}
}

func TestStateRoundTripsWholeAndAsDifference(t *testing.T) {
	p := mustPlan[every](t)
	states := []every{{R64: 10}, sampleEvery(), {R64: 20, R32: -100, Quat: [4]float32{1, 0, 0, 0}, I64: math.MaxInt64, U64: 1, F32: float32(math.Inf(1)), F64: math.Copysign(0, -1), Text: "x"}}
	for _, from := range states {
		for _, to := range states {
			vf, vt := p.newValues(), p.newValues()
			p.Capture(unsafe.Pointer(&from), vf)
			p.Capture(unsafe.Pointer(&to), vt)
			if got := deltaOf(t, p, vt, vf, Trend{}); !p.Equal(got, vt) {
				t.Fatalf("difference %+v -> %+v", from, to)
			}
			whole := p.AppendValues(nil, vt)
			msg, _ := p.Append(nil, unsafe.Pointer(&to))
			if string(whole) != string(msg) {
				t.Error("a full record and a message differ")
			}
			r := wire.NewReader(whole)
			got := p.newValues()
			p.ReadSome(&r, got, nil)
			if err := r.Done(); err != nil || !p.Equal(got, vt) {
				t.Fatalf("whole %+v: %v", to, err)
			}
			live := from
			p.Restore(unsafe.Pointer(&live), got, vf)
			if !reflect.DeepEqual(live, to) {
				t.Errorf("restored %+v, want %+v", live, to)
			}
			if size, _ := p.MaxSize(); len(whole) > size {
				t.Errorf("%d bytes, more than MaxSize %d", len(whole), size)
			}
		}
	}
}

func TestMaxSizeHoldsForExtremes(t *testing.T) {
	type s struct {
		I8  int8
		U8  uint8
		I16 int16
		U16 uint16
		I32 int32
		U32 uint32
		I64 int64
		U64 uint64
		F32 float32
		F64 float64
		Q32 float32 `net:"quant=1"`
		Q64 float64 `net:"quant=1"`
	}
	p := mustPlan[s](t)
	lo := s{math.MinInt8, 0, math.MinInt16, 0, math.MinInt32, 0, math.MinInt64, 0, -math.MaxFloat32, -math.MaxFloat64, -math.MaxFloat32, -math.MaxFloat64}
	hi := s{math.MaxInt8, math.MaxUint8, math.MaxInt16, math.MaxUint16, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64, math.MaxFloat32, math.MaxFloat64, math.MaxFloat32, math.MaxFloat64}
	vl, vh := p.newValues(), p.newValues()
	if n := p.Capture(unsafe.Pointer(&lo), vl); n != 2 {
		t.Errorf("%d values clamped, want 2", n)
	}
	p.Capture(unsafe.Pointer(&hi), vh)
	for i := range p.leaves {
		l := &p.leaves[i]
		for _, pair := range [][2]uint64{{vl.Words[l.pos], vh.Words[l.pos]}, {vh.Words[l.pos], vl.Words[l.pos]}} {
			if n := len(l.appendWord(nil, pair[0])); n > l.maxWire() {
				t.Errorf("%s: %d bytes whole, limit %d", l.name, n, l.maxWire())
			}
			if n := len(l.appendDiff(nil, pair[0], pair[1])); n > l.maxDiff() {
				t.Errorf("%s: %d bytes as a difference, limit %d", l.name, n, l.maxDiff())
			}
		}
	}
}

// becomes checks a value after the wire, and how many values were clamped.
func becomes[S comparable](t *testing.T, p *Plan, in, want S, clamped int) {
	t.Helper()
	v := p.newValues()
	if n := p.Capture(unsafe.Pointer(&in), v); n != clamped {
		t.Errorf("%+v: %d clamped, want %d", in, n, clamped)
	}
	var got S
	p.Restore(unsafe.Pointer(&got), v, nil)
	if got != want {
		t.Errorf("%+v became %+v, want %+v", in, got, want)
	}
}

func TestQuantRoundsClampsAndCounts(t *testing.T) {
	type s struct {
		A float32 `net:"quant=1/4"`
		B float64 `net:"quant=0.01"`
		C float32
	}
	p := mustPlan[s](t)
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		in, want s
		clamped  int
	}{
		{s{0.3, 0.123, 1}, s{0.25, 0.12, 1}, 0},
		{s{0.375, -0.006, 0}, s{0.5, -0.01, 0}, 0}, // 1.5 steps: half to even
		{s{float32(nan), nan, float32(nan)}, s{0, 0, 0}, 3},
		{s{float32(inf), -inf, float32(inf)}, s{(1<<31 - 1) / 4.0, -(1 << 53) / 100.0, float32(inf)}, 2},
	} {
		becomes(t, p, c.in, c.want, c.clamped)
	}
}

func TestTheDecoderRefusesImpossibleBits(t *testing.T) {
	type s struct {
		B bool
		I int8
		U uint16
		F float32
		Q float32 `net:"quant=1"`
		T string  `net:"max=2"`
	}
	p := mustPlan[s](t)
	good := "01" + "01" + "05" + "0000803f" + "02" + "0161"
	for name, c := range map[string]struct {
		hex string
		err error
	}{
		"good":           {good, nil},
		"bool 2":         {"02" + good[2:], ErrRange},
		"int8 128":       {"01" + "8002" + good[4:], ErrRange},
		"uint16 65536":   {"0101" + "808004" + good[6:], ErrRange},
		"NaN":            {"010105" + "0000c07f" + "020161", ErrRange},
		"steps over":     {"0101050000803f" + "8080808010" + "0161", ErrRange},
		"string over":    {"0101050000803f02" + "03616161", wire.ErrLimit},
		"string short":   {"0101050000803f02" + "0261", wire.ErrShort},
		"varint too big": {"01" + "ffffffffffffffffffff01", wire.ErrOverflow},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		var v s
		if err := p.Decode(b, unsafe.Pointer(&v)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
}

func TestOverMaxIsRefusedInAMessageAndCutInAState(t *testing.T) {
	p := mustPlan[every](t)
	in := every{Text: "1234567890123456é", Raw: make([]byte, 17), Items: make([]item, 4), Names: []string{"a", "b"}}
	in.Items[0].Name = "123456789012é"
	b, err := p.Append([]byte{1}, unsafe.Pointer(&in))
	if err == nil || !strings.Contains(err.Error(), "every.Text") || len(b) != 1 {
		t.Errorf("error %v, %d bytes", err, len(b))
	}
	in.Text, in.Raw, in.Items = "", nil, in.Items[:1]
	if _, err := p.Append(nil, unsafe.Pointer(&in)); err == nil || !strings.Contains(err.Error(), "every.Items[].Name") {
		t.Errorf("error %v does not name the field", err)
	}
	in = every{Text: "123456789012345é", Raw: make([]byte, 17), Items: make([]item, 4), R64: 10}
	v, out := p.newValues(), every{}
	if n := p.Capture(unsafe.Pointer(&in), v); n != 3 {
		t.Errorf("%d values cut, want 3", n)
	}
	p.Restore(unsafe.Pointer(&out), v, nil)
	if out.Text != "123456789012345" || len(out.Raw) != 16 || len(out.Items) != 3 {
		t.Errorf("cut to %q, %d, %d", out.Text, len(out.Raw), len(out.Items))
	}
}

func TestCaptureSharesNoMemoryWithTheStruct(t *testing.T) {
	p := mustPlan[every](t)
	in := sampleEvery()
	v := p.newValues()
	p.Capture(unsafe.Pointer(&in), v)
	in.Raw[0], in.Items[0].Count, in.Items[0].Raw[0], in.Names[0] = 99, 99, 99, "zz"
	in.Bag[7].Raw[0], in.Hands[0].Marks["x"], in.Mail.text = 99, false, ""
	delete(in.Seen, Ref{9})
	var out every
	p.Restore(unsafe.Pointer(&out), v, nil)
	if !reflect.DeepEqual(out, sampleEvery()) {
		t.Error("a captured value changed with its source")
	}
	var twin every
	p.Clone(unsafe.Pointer(&twin), unsafe.Pointer(&out))
	out.Raw[0], out.Items[0].Count, out.Items[0].Raw[0], out.Names[0] = 99, 99, 99, "zz"
	out.Bag[7].Raw[0], out.Hands[0].Marks["x"], out.Mail.text = 99, false, ""
	delete(out.Seen, Ref{9})
	if !reflect.DeepEqual(twin, sampleEvery()) {
		t.Error("a clone changed with its source")
	}
}

func TestCompileNamesFieldAndRemedy(t *testing.T) {
	type node struct{ Kids []struct{ A *int } }
	type loop struct{ Next []loop }
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[int](), "not a struct"},
		{reflect.TypeFor[struct{ M map[float32]int }](), "struct.M: a map by float32; keys are integers, strings and Refs"},
		{reflect.TypeFor[struct{ M map[string][]int }](), "struct.M: a map of slices; wrap the inner one"},
		{reflect.TypeFor[struct{ M []map[string]int }](), "struct.M: a slice of maps; wrap the inner one"},
		{reflect.TypeFor[struct{ M map[string]*int }](), "struct.M[].Value: *int cannot"},
		{reflect.TypeFor[struct {
			A []int `net:"each=4"`
		}](), "A: each on a slice; it belongs on"},
		{reflect.TypeFor[struct {
			A string `net:"each=4"`
		}](), "A: each on a string; it belongs on"},
		{reflect.TypeFor[struct {
			A []string `net:"each=0"`
		}](), "A: each=0 is not a number from 1"},
		{reflect.TypeFor[struct {
			A []vec `net:"key=X"`
		}](), "A: key=X is not a field of its elements that is an integer"},
		{reflect.TypeFor[struct {
			A []int `net:"key=X"`
		}](), "A: key=X is not a field"},
		{reflect.TypeFor[struct {
			A []vec `net:"key"`
		}](), "A: key without a field"},
		{reflect.TypeFor[struct {
			A vec `net:"key=X"`
		}](), "A: key on a struct"},
		{reflect.TypeFor[node](), "node.Kids[].A: *int cannot be sent"},
		{reflect.TypeFor[struct{ E error }](), "E: error cannot"},
		{reflect.TypeFor[struct{ C chan int }](), "C: chan int cannot"},
		{reflect.TypeFor[struct{ F func() }](), "F: func() cannot"},
		{reflect.TypeFor[struct{ U uintptr }](), "U: uintptr cannot"},
		{reflect.TypeFor[struct{ a int }](), "a: unexported field; export it"},
		{reflect.TypeFor[struct{ T time.Time }](), "T: time.Time cannot be sent; use a Deadline"},
		{reflect.TypeFor[struct {
			A int `net:"quant=1"`
		}](), "A: quant or range on a field without floats"},
		{reflect.TypeFor[struct {
			A int `net:"max=1"`
		}](), "A: max on a int64"},
		{reflect.TypeFor[struct {
			A vec `net:"max=1"`
		}](), "A: max on a struct"},
		{reflect.TypeFor[struct {
			A string `net:"max=0"`
		}](), "A: max=0 is not a number from 1"},
		{reflect.TypeFor[struct {
			A float32 `net:"quant=0"`
		}](), "A: quant=0 is not a positive step"},
		{reflect.TypeFor[struct {
			A float32 `net:"quant=1/1e30"`
		}](), "A: quant"},
		{reflect.TypeFor[struct {
			A float32 `net:"draw=angle"`
		}](), `A: unknown tag key "draw"`},
		{reflect.TypeFor[struct {
			A float32 `net:"range=0:1"`
		}](), "A: range without a step; add quant"},
		{reflect.TypeFor[struct {
			A float32 `net:"quant=1,range=1:1"`
		}](), "A: range=1:1 is not two numbers, the smaller one first"},
		{reflect.TypeFor[struct {
			A float32 `net:"quant=1,range=5"`
		}](), "A: range=5 is not two numbers"},
		{reflect.TypeFor[struct {
			A float32 `net:"quant=1/1000,range=0:1e7"`
		}](), "A: range reaches beyond 2147483647 steps of its quant from 0; make the step larger"},
		{reflect.TypeFor[struct {
			A string `net:"quant=1,range=0:1"`
		}](), "A: quant or range on a field without floats"},
		{reflect.TypeFor[struct {
			A [3]float32 `net:"quat=10"`
		}](), "A: quat on a [3]float32; it belongs on four float32"},
		{reflect.TypeFor[struct {
			A [4]float64 `net:"quat=10"`
		}](), "A: quat on a [4]float64"},
		{reflect.TypeFor[struct {
			A [4]float32 `net:"quat=21"`
		}](), "A: quat=21 is not a number of bits from 3 to 20"},
		{reflect.TypeFor[struct {
			A [4]float32 `net:"quat=10,quant=1"`
		}](), "A: quat together with quant"},
		{reflect.TypeFor[struct {
			A [][]int
		}](), "A: a slice of slices; wrap"},
		{reflect.TypeFor[struct {
			A []struct{}
		}](), "A: elements without any field"},
		{reflect.TypeFor[struct{ A [300]int }](), "more than 256 values"},
		{reflect.TypeFor[loop](), "contains itself"},
	} {
		_, err := Compile(c.typ)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.typ, err, c.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	want := []FieldInfo{
		{"Bool", "bool"}, {"I8", "int8"}, {"I16", "int16"}, {"I32", "int32"}, {"I64", "int64"}, {"I", "int64"},
		{"U8", "uint8"}, {"U16", "uint16"}, {"U32", "uint32"}, {"U64", "uint64"}, {"U", "uint64"},
		{"F32", "float32"}, {"F64", "float64"}, {"Q32", "float32 quant=1/256"}, {"Q64", "float64 quant=1/100"},
		{"Ref", "ref"}, {"Until", "instant"}, {"Text", "string max=16"}, {"Raw", "bytes max=16"}, {"UUID", "[16]byte"},
		{"Items", "[]{Name string max=12; Count uint16; Spot {X float32; Y float32}; Raw bytes max=4} max=3"},
		{"Weapon", "uint8"}, {"Pos", "{X float32 quant=1/64; Y float32 quant=1/64}"}, {"Grid", "[3]int16"},
		{"Names", "[]string max=128 max=2"},
		{"R32", "float32 quant=1/8 steps=-800:800"}, {"R64", "float64 quant=1/100 steps=1000:2000"}, {"Quat", "quat bits=10"},
		{"Bag", "map[int16]{Name string max=12; Count uint16; Spot {X float32; Y float32}; Raw bytes max=4} max=3"}, {"Seen", "set[ref] max=64"},
		{"Hands", "[]{ID string max=128; Cards bytes max=256; Marks map[string max=128]bool max=64; Left int8} max=64"}, {"Mail", "proto test.Letter max=5"},
	}
	if got := mustPlan[every](t).Describe(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	p := mustPlan[every](t)
	in, v, buf := sampleEvery(), p.newValues(), make([]byte, 0, 1024)
	p.Capture(unsafe.Pointer(&in), v)
	old := &Values{Words: v.Words, Blobs: v.Blobs}
	out := sampleEvery()
	flat := mustPlan[benchShip](t)
	ship := benchShip{1, 2, 3, 4}
	msg, _ := flat.Append(nil, unsafe.Pointer(&ship))
	if n := testing.AllocsPerRun(100, func() {
		p.Capture(unsafe.Pointer(&in), v)
		buf, _ = p.Append(buf[:0], unsafe.Pointer(&in))
		p.Restore(unsafe.Pointer(&out), v, old)
		_ = flat.Decode(msg, unsafe.Pointer(&ship))
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

type benchShip struct {
	X, Y  float32 `net:"quant=1/256"`
	Angle float32 `net:"quant=1/1024"`
	Score int32
}

func BenchmarkCapture4Fields(b *testing.B) {
	p := mustPlan[benchShip](b)
	s, v := benchShip{100.5, -3.25, 1.5, 12}, p.newValues()
	b.ReportAllocs()
	for b.Loop() {
		p.Capture(unsafe.Pointer(&s), v)
	}
}

func BenchmarkAppendMessage4Fields(b *testing.B) {
	p := mustPlan[benchShip](b)
	s, buf := benchShip{100.5, -3.25, 1.5, 12}, make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = p.Append(buf[:0], unsafe.Pointer(&s))
	}
}

func BenchmarkDecodeMessage4Fields(b *testing.B) {
	p := mustPlan[benchShip](b)
	s := benchShip{100.5, -3.25, 1.5, 12}
	buf, _ := p.Append(nil, unsafe.Pointer(&s))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Decode(buf, unsafe.Pointer(&s)); err != nil {
			b.Fatal(err)
		}
	}
}
