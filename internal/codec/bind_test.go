package codec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// Two builds of a game: the server's declarations, and those of an older or newer client.
type thereItem struct {
	Count uint16
	Name  string `net:"max=12"`
	Extra [3]int8
}

type there struct {
	Gone  []thereItem `net:"max=4"`
	X     float32     `net:"quant=1/16"`
	Title string      `net:"max=32"`
	Blob  []byte
	Tag   [4]byte
	Flag  bool
	Wide  int
	Items []thereItem `net:"max=5"`
	Grid  [2]thereItem
	Ref   Ref
	Inner struct {
		A, B int32
		Last string
	}
}

type hereItem struct {
	Label string `net:"max=12,name=Name"`
	Mine  float64
}

type here struct {
	Local int `net:"-"`
	Inner struct {
		New  uint8
		Tail string `net:"name=Last"`
		B    int32
	}
	Items []hereItem `net:"max=3"`
	Grid  [2]hereItem
	Pos   float32 `net:"quant=1/16,name=X"`
	Wide  int64
	Title string `net:"max=64"`
	Own   []string
}

func mustBind(tb testing.TB, t reflect.Type, layout Type) *Plan {
	tb.Helper()
	p, err := Bind(t, layout, new(Budget))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func sampleThere() there {
	s := there{
		Gone: []thereItem{{1, "g", [3]int8{1, 2, 3}}}, X: 2.5, Title: "title", Blob: []byte{9}, Tag: [4]byte{1, 2, 3, 4}, Flag: true, Wide: -9,
		Items: []thereItem{{7, "axe", [3]int8{1}}, {8, "bow", [3]int8{2}}}, Grid: [2]thereItem{{1, "a", [3]int8{}}, {2, "b", [3]int8{}}}, Ref: Ref{5},
	}
	s.Inner.A, s.Inner.B, s.Inner.Last = 11, 12, "end"
	return s
}

// wantHere is sampleThere as a client of the other build must see it.
func wantHere() here {
	s := here{Pos: 2.5, Wide: -9, Title: "title", Items: []hereItem{{Label: "axe"}, {Label: "bow"}}, Grid: [2]hereItem{{Label: "a"}, {Label: "b"}}}
	s.Inner.B, s.Inner.Tail = 12, "end"
	return s
}

func TestBoundPlanReadsTheOtherLayout(t *testing.T) {
	far := mustPlan[there](t)
	p := mustBind(t, reflect.TypeFor[here](), far.Layout())
	in := sampleThere()
	b, err := far.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	got, want := here{Local: 3, Own: []string{"mine"}}, wantHere()
	want.Local, want.Own = 3, []string{"mine"} // Not touched.
	if err := p.Decode(b, unsafe.Pointer(&got)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v\nwant %+v", err, got, want)
	}
	for n := range b {
		if p.Decode(b[:n], unsafe.Pointer(&here{})) == nil {
			t.Fatalf("cut to %d of %d bytes it decodes", n, len(b))
		}
	}
	// As state: the captured values have the fields of the other side.
	r, v := wire.NewReader(b), p.newValues()
	p.ReadSome(&r, v, nil)
	var live here
	p.Restore(unsafe.Pointer(&live), v, nil)
	if r.Done() != nil || !reflect.DeepEqual(live, wantHere()) || string(p.AppendValues(nil, v)) != string(b) {
		t.Errorf("%v: restored %+v", r.Err(), live)
	}
	if p.Leaves() != far.Leaves() || p.Words() != far.Words() || p.Blobs() != far.Blobs() {
		t.Error("the shape of its values is not that of the layout")
	}
	var twin here
	p.Clone(unsafe.Pointer(&twin), unsafe.Pointer(&live))
	live.Items[0].Label = "changed"
	if !reflect.DeepEqual(twin, wantHere()) {
		t.Error("a clone shares memory")
	}
}

func TestBoundPlanWritesTheOtherLayout(t *testing.T) {
	far := mustPlan[there](t)
	p := mustBind(t, reflect.TypeFor[here](), far.Layout())
	in := wantHere()
	in.Items[0].Mine, in.Inner.New, in.Own = 3, 4, []string{"stays here"}
	b, err := p.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	var got there
	want := there{X: 2.5, Title: "title", Wide: -9, Items: []thereItem{{Name: "axe"}, {Name: "bow"}}, Grid: [2]thereItem{{Name: "a"}, {Name: "b"}}}
	want.Inner.B, want.Inner.Last = 12, "end"
	if err := far.Decode(b, unsafe.Pointer(&got)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v\nwant %+v", err, got, want)
	}
	v := p.newValues()
	p.Capture(unsafe.Pointer(&in), v)
	if string(p.AppendValues(nil, v)) != string(b) {
		t.Error("a captured state and a message differ")
	}
	in.Title = strings.Repeat("x", 33) // This side would allow 64 bytes.
	if _, err := p.Append(nil, unsafe.Pointer(&in)); err == nil || !strings.Contains(err.Error(), "here.Title") {
		t.Errorf("over the other side's limit: %v", err)
	}
}

func TestAnEmptyPlanSkipsAllFields(t *testing.T) {
	far := mustPlan[every](t)
	p := mustBind(t, reflect.TypeFor[struct{}](), far.Layout())
	in := sampleEvery()
	b, _ := far.Append(nil, unsafe.Pointer(&in))
	r, v := wire.NewReader(b), p.newValues()
	p.ReadSome(&r, v, nil)
	var none struct{}
	p.Restore(unsafe.Pointer(&none), v, nil)
	if err := p.Decode(b, unsafe.Pointer(&none)); err != nil || r.Done() != nil || string(p.AppendValues(nil, v)) != string(b) {
		t.Error(err, r.Err())
	}
	zero, err := p.Append(nil, unsafe.Pointer(&none))
	if err != nil {
		t.Fatal(err)
	}
	var out every
	if err := far.Decode(zero, unsafe.Pointer(&out)); err != nil || !reflect.DeepEqual(out, every{R64: 10}) {
		t.Errorf("%v: its zero is %+v", err, out)
	}
	empty := p.newValues()
	if p.Capture(unsafe.Pointer(&none), empty); p.Shows(v, empty) || !far.Shows(v, empty) {
		t.Error("it shows what it has not, or the other does not show what it has")
	}
}

func TestMismatchNamesFieldAndTypes(t *testing.T) {
	type vec3 struct{ X, Y, Z float32 }
	for name, c := range map[string]struct {
		there, here reflect.Type
		want        Mismatch
	}{
		"width": {reflect.TypeFor[struct{ A int32 }](), reflect.TypeFor[struct{ A int64 }](), Mismatch{"A", "int64", "int32"}},
		"sign":  {reflect.TypeFor[struct{ A int32 }](), reflect.TypeFor[struct{ A uint32 }](), Mismatch{"A", "uint32", "int32"}},
		"renamed": {reflect.TypeFor[struct{ A bool }](), reflect.TypeFor[struct {
			B string `net:"name=A"`
		}](), Mismatch{"A", "string max=128", "bool"}},
		"step": {reflect.TypeFor[struct {
			A float32 `net:"quant=1/8"`
		}](), reflect.TypeFor[struct {
			A float32 `net:"quant=1/16"`
		}](), Mismatch{"A", "float32 quant=1/16", "float32 quant=1/8"}},
		"range": {reflect.TypeFor[struct {
			A float32 `net:"quant=1,range=0:9"`
		}](), reflect.TypeFor[struct {
			A float32 `net:"quant=1,range=0:8"`
		}](), Mismatch{"A", "float32 quant=1/1 steps=0:8", "float32 quant=1/1 steps=0:9"}},
		"no range": {reflect.TypeFor[struct {
			A float32 `net:"quant=1,range=0:9"`
		}](), reflect.TypeFor[struct {
			A float32 `net:"quant=1"`
		}](), Mismatch{"A", "float32 quant=1/1", "float32 quant=1/1 steps=0:9"}},
		"bits": {reflect.TypeFor[struct {
			A [4]float32 `net:"quat=9"`
		}](), reflect.TypeFor[struct {
			A [4]float32 `net:"quat=10"`
		}](), Mismatch{"A", "quat bits=10", "quat bits=9"}},
		"key":     {reflect.TypeFor[struct{ A map[int8]bool }](), reflect.TypeFor[struct{ A map[int16]bool }](), Mismatch{"A[].Key", "int16", "int8"}},
		"set":     {reflect.TypeFor[struct{ A map[int8]bool }](), reflect.TypeFor[struct{ A map[int8]struct{} }](), Mismatch{"A", "set[int8] max=64", "map[int8]bool max=64"}},
		"length":  {reflect.TypeFor[struct{ A [3]int8 }](), reflect.TypeFor[struct{ A [4]int8 }](), Mismatch{"A", "[4]int8", "[3]int8"}},
		"bytes":   {reflect.TypeFor[struct{ A [3]byte }](), reflect.TypeFor[struct{ A []byte }](), Mismatch{"A", "bytes max=256", "[3]byte"}},
		"nested":  {reflect.TypeFor[struct{ P vec }](), reflect.TypeFor[struct{ P struct{ Y int8 } }](), Mismatch{"P.Y", "int8", "float32"}},
		"element": {reflect.TypeFor[struct{ L []vec }](), reflect.TypeFor[struct{ L []struct{ X string } }](), Mismatch{"L[].X", "string max=128", "float32"}},
		"whole":   {reflect.TypeFor[struct{ P vec3 }](), reflect.TypeFor[struct{ P float32 }](), Mismatch{"P", "float32", "{X float32; Y float32; Z float32}"}},
	} {
		far, err := Compile(c.there)
		if err != nil {
			t.Fatal(err)
		}
		var m *Mismatch
		if _, err := Bind(c.here, far.Layout(), new(Budget)); !errors.As(err, &m) || *m != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesOnTheWire(t *testing.T) {
	type renamed struct {
		Speed float32 `net:"name=Velocity,quant=1/4"`
	}
	want := []FieldInfo{{"Velocity", "float32 quant=1/4"}}
	if got := mustPlan[renamed](t).Describe(); !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[struct {
			A int
			B int `net:"name=A"`
		}](), "B: it is named A on the wire, as A is"},
		{reflect.TypeFor[struct {
			A int `net:"name=a b"`
		}](), "A: name=a b is not a name"},
		{reflect.TypeFor[struct {
			A int `net:"name="`
		}](), "A: name= is not a name"},
		{reflect.TypeFor[struct {
			Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa int
		}](), "its name has more than 64 bytes"},
		{reflect.TypeFor[struct {
			A [256][][256][]int8
		}](), "too many parts"},
	} {
		if _, err := Compile(c.typ); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.typ, err, c.want)
		}
	}
}

func TestUnsoundLayoutsAreRefused(t *testing.T) {
	deep := Type{Kind: Int8}
	for range MaxDepth + 1 {
		inner := deep
		deep = Type{Kind: Array, Max: 1, Elem: &inner}
	}
	bool1, none := Type{Kind: Bool}, Type{Kind: Struct}
	for name, f := range map[string]Type{
		"no kind":          {},
		"unknown kind":     {Kind: Struct + 1},
		"guard kind":       {Kind: endOfKinds},
		"a kind of Go":     {Kind: Int},
		"no limit":         {Kind: String},
		"limit":            {Kind: Bytes, Max: largestMax + 1},
		"negative":         {Kind: ByteArray, Max: -1},
		"limit of a bool":  {Kind: Bool, Max: 1},
		"no step":          {Kind: Quant32, Num: 1},
		"step of an int":   {Kind: Int8, Num: 1, Den: 1},
		"no range":         {Kind: Range32, Num: 1, Den: 1},
		"range":            {Kind: Range32, Num: 1, Den: 1, Low: -1 << 31, High: 0},
		"range of 64":      {Kind: Range64, Num: 1, Den: 1, Low: 0, High: 1<<53 + 1},
		"range reversed":   {Kind: Range64, Num: 1, Den: 1, Low: 1, High: 0},
		"range of a bool":  {Kind: Bool, Low: 0, High: 1},
		"no bits":          {Kind: Quat},
		"bits":             {Kind: Quat, Max: 21},
		"step":             {Kind: Quant64, Num: 1, Den: maxDen + 1},
		"reducible step":   {Kind: Quant64, Num: 2, Den: 200},
		"equal limits":     {Kind: Int8, Low: 5, High: 5},
		"proto":            {Kind: Proto, Proto: "a.B"},
		"proto of no name": {Kind: Proto, Max: 1},
		"name of a bool":   {Kind: Bool, Proto: "a.B"},
		"long proto name":  {Kind: Proto, Max: 1, Proto: strings.Repeat("a", 257)},
		"map of no entry":  {Kind: Map, Max: 1, Elem: &none},
		"map of bools":     {Kind: Map, Max: 1, Elem: &bool1},
		"bools as keys":    {Kind: Map, Max: 1, Elem: &Type{Kind: Struct, Fields: []Field{{entryKey, bool1}}}},
		"keys of no name":  {Kind: Map, Max: 1, Elem: &Type{Kind: Struct, Fields: []Field{{"A", Type{Kind: Int8}}}}},
		"no element":       {Kind: Slice, Max: 1},
		"element":          {Kind: Bool, Elem: &bool1},
		"fields of a bool": {Kind: Bool, Fields: []Field{{"A", bool1}}},
		"empty elements":   {Kind: Slice, Max: 1, Elem: &none},
		"name":             {Kind: Struct, Fields: []Field{{"a;b", bool1}}},
		"no name":          {Kind: Struct, Fields: []Field{{"", bool1}}},
		"twice":            {Kind: Struct, Fields: []Field{{"A", bool1}, {"A", bool1}}},
		"depth":            deep,
		"leaves":           {Kind: Array, Max: 257, Elem: &bool1},
	} {
		if _, err := Bind(reflect.TypeFor[struct{}](), Type{Kind: Struct, Fields: []Field{{"F", f}}}, new(Budget)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Bind(reflect.TypeFor[struct{}](), bool1, new(Budget)); err == nil {
		t.Error("a bool is no message")
	}
	// Structs and arrays nest to one depth.
	for kind, wrap := range map[string]func(Type) Type{
		"structs": func(inner Type) Type { return Type{Kind: Struct, Fields: []Field{{"F", inner}}} },
		"arrays":  func(inner Type) Type { return Type{Kind: Array, Max: 1, Elem: &inner} },
	} {
		nested := bool1
		for range MaxDepth - 1 {
			nested = wrap(nested)
		}
		mustBind(t, reflect.TypeFor[struct{}](), Type{Kind: Struct, Fields: []Field{{"F", nested}}})
		if _, err := Bind(reflect.TypeFor[struct{}](), Type{Kind: Struct, Fields: []Field{{"F", wrap(nested)}}}, new(Budget)); err == nil {
			t.Errorf("%s deeper than %d levels are accepted", kind, MaxDepth)
		}
	}
	// An array without parts takes no time, for any length.
	empty := Type{Kind: Array, Max: largestMax, Elem: &none}
	empties := Type{Kind: Array, Max: largestMax, Elem: &empty}
	mustBind(t, reflect.TypeFor[struct{}](), Type{Kind: Struct, Fields: []Field{{"F", empties}}})
	// A budget is shared.
	wide := Type{Kind: Struct, Fields: []Field{{"F", Type{Kind: Array, Max: 250, Elem: &bool1}}}}
	budget, n := new(Budget), 0
	for ; n < maxParts; n++ {
		if _, err := Bind(reflect.TypeFor[struct{}](), wide, budget); err != nil {
			break
		}
	}
	if n != maxParts/252 {
		t.Errorf("%d layouts of 252 parts fit the budget", n)
	}
}

// fuzzKinds contains the kinds by their numbers in the corpus of FuzzBind: append new ones.
var fuzzKinds = [...]Kind{
	Invalid, Bool, Int8, Int16, Int32, Int64, Int, Uint8, Uint16, Uint32, Uint64, Uint, Float32, Float64,
	Quant32, Quant64, RefKind, InstantKind, String, Bytes, ByteArray, Slice, endOfKinds, Array, Struct,
	Range32, Range64, Quat, Map, Proto,
}

// layoutOf makes a layout from bytes, valid or not: a kind, and its parameters.
func layoutOf(b []byte, depth int, named Kind) (Type, []byte) {
	take := func() (v int) {
		if len(b) > 0 {
			v, b = int(b[0]), b[1:]
		}
		return v
	}
	t := Type{Kind: fuzzKinds[take()%len(fuzzKinds)]}
	switch t.Kind {
	case Quant32, Quant64:
		t.Num, t.Den = uint64(take()), uint64(take())
	case Range32, Range64:
		t.Num, t.Den, t.Low, t.High = uint64(take()), uint64(take()), int64(int8(take())), int64(take())
	case Quat, String, Bytes, ByteArray:
		t.Max = take()
	case Proto:
		t.Max, t.Proto = take(), "test.Letter"
	case Slice, Array, Map:
		var e Type
		t.Max = take()
		e, b = layoutOf(b, depth+1, t.Kind)
		t.Elem = &e
	case Struct:
		for i := range take() % 32 {
			if len(b) == 0 || depth > 40 {
				break
			}
			f := Field{Name: string(rune('A' + i))}
			if named == Map {
				f.Name = [...]string{entryKey, entryValue, "C"}[min(i, 2)]
			}
			f.Type, b = layoutOf(b, depth+1, Invalid)
			t.Fields = append(t.Fields, f)
		}
	}
	return t, b
}

// For any layout and data of a peer: no panic, limited cost, and a state that is read is written
// unchanged.
func FuzzBind(f *testing.F) {
	f.Fuzz(func(t *testing.T, layout, msg []byte) {
		l, _ := layoutOf(layout, 0, Invalid)
		budget := new(Budget)
		type mine struct {
			A int32
			B string
			C []struct{ A uint8 }
			D float32 `net:"quant=1/4"`
			E [2]bool
			F map[uint8]string
			G *letter
		}
		p, err := Bind(reflect.TypeFor[mine](), l, budget, letters)
		if budget.spent > maxParts+1 {
			t.Fatal("spent", budget.spent)
		}
		if err != nil {
			return
		}
		var m mine
		r, v := wire.NewReader(msg), p.newValues()
		p.ReadSome(&r, v, nil)
		if err := p.Decode(msg, unsafe.Pointer(&m)); (err == nil) != (r.Done() == nil) {
			t.Fatalf("state: %v, message: %v", r.Err(), err)
		} else if err != nil {
			return
		}
		if again := p.AppendValues(nil, v); len(again) > len(msg) {
			t.Fatalf("%x became %x", msg, again)
		}
		var live mine
		p.Restore(unsafe.Pointer(&live), v, nil)
		if !reflect.DeepEqual(live, m) {
			t.Fatalf("state %+v, message %+v", live, m)
		}
		out, err := p.Append(nil, unsafe.Pointer(&m))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Decode(out, unsafe.Pointer(&live)); err != nil || !reflect.DeepEqual(live, m) {
			t.Fatalf("%+v came back as %+v: %v", m, live, err)
		}
	})
}

// TestTheLongestNameOfAProtobufTypeIsAccepted is the other side of the bound above.
func TestTheLongestNameOfAProtobufTypeIsAccepted(t *testing.T) {
	longest := Type{Kind: Proto, Max: 1, Proto: strings.Repeat("a", 256)}
	if err := longest.Check(); err != nil {
		t.Error(err)
	}
}
