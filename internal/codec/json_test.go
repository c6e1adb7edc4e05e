package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// plainJSON returns a value as its JSON form by reflection, in the form that json.Unmarshal makes
// of it: the independent description of the forms. Elements of lists have flat names.
func plainJSON(v reflect.Value, quaternion bool) any {
	switch {
	case quaternion:
		var list []any
		for i := range v.Len() {
			list = append(list, plainJSON(v.Index(i), false))
		}
		return list
	case wrapped(v.Type()) == refType:
		id := v
		for id.Kind() == reflect.Struct {
			id = id.Field(0)
		}
		if id.Uint() == 0 {
			return nil
		}
		return fmt.Sprintf("%d.%d", id.Uint()>>32, uint32(id.Uint()))
	case wrapped(v.Type()) == instantType:
		at := v
		for at.Kind() == reflect.Struct {
			at = at.Field(0)
		}
		return integerJSON(strconv.FormatInt(at.Int(), 10), math.Abs(float64(at.Int())))
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsInf(f, 0) {
			return map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0]
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, v.Type().Bits()))
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return base64.StdEncoding.EncodeToString([]byte(v.Elem().Field(0).String()))
	case reflect.Slice:
		return listJSON(v)
	case reflect.Array: // of bytes
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return base64.StdEncoding.EncodeToString(b)
	case reflect.Map:
		return mapJSON(v)
	default:
		if v.CanInt() {
			return integerJSON(strconv.FormatInt(v.Int(), 10), math.Abs(float64(v.Int())))
		}
		return integerJSON(strconv.FormatUint(v.Uint(), 10), float64(v.Uint()))
	}
}

func integerJSON(digits string, magnitude float64) any {
	if magnitude > 1<<53 {
		return digits
	}
	return json.Number(digits)
}

func listJSON(v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	list := []any{}
	for i := range v.Len() {
		list = append(list, elementJSON(v.Index(i)))
	}
	return list
}

// mapJSON lists the entries by the wire order of their keys.
func mapJSON(v reflect.Value) any {
	list := []any{}
	for _, key := range sortedKeys(v) {
		if v.Type().Elem().NumMethod() == 0 && v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem().NumField() == 0 {
			list = append(list, plainJSON(key, false))
			continue
		}
		entry := map[string]any{"Key": plainJSON(key, false)}
		leavesJSON(v.MapIndex(key), "Value", "", func(name string, value any) { entry[name] = value })
		list = append(list, entry)
	}
	return list
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	less := func(a, b reflect.Value) bool {
		switch {
		case a.Kind() == reflect.Struct:
			return a.Field(0).Uint() < b.Field(0).Uint()
		case a.CanInt():
			return a.Int() < b.Int()
		case a.CanUint():
			return a.Uint() < b.Uint()
		}
		return a.String() < b.String()
	}
	for i := range keys { // a few
		for j := i; j > 0 && less(keys[j], keys[j-1]); j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
	return keys
}

func elementJSON(v reflect.Value) any {
	if v.Kind() != reflect.Struct || wrapped(v.Type()) != nil {
		return plainJSON(v, false)
	}
	object := map[string]any{}
	leavesJSON(v, "", "", func(name string, value any) { object[name] = value })
	return object
}

// leavesJSON calls fn for each leaf of a value in order.
func leavesJSON(v reflect.Value, path, tag string, fn func(string, any)) {
	switch {
	case strings.Contains(tag, "quat="):
		fn(path, plainJSON(v, true))
	case v.Kind() == reflect.Struct && wrapped(v.Type()) == nil:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("net") != "-" {
				leavesJSON(v.Field(i), join(path, f.Name), f.Tag.Get("net"), fn)
			}
		}
	case v.Kind() == reflect.Array && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			leavesJSON(v.Index(i), fmt.Sprintf("%s[%d]", path, i), "", fn)
		}
	default:
		fn(path, plainJSON(v, false))
	}
}

func decodeJSON(t *testing.T, text []byte) (v any) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&v); err != nil || in.More() {
		t.Fatalf("not one JSON value: %v: %s", err, text)
	}
	return v
}

// The JSON of a captured value has the numbers, texts and lists of the struct that clients see.
func checkJSON(t *testing.T, p *Plan, in every) {
	t.Helper()
	v, seen := rounded(p, in)
	var want []any
	message := map[string]any{}
	leavesJSON(reflect.ValueOf(seen), "", "", func(name string, value any) {
		if leaf := p.LeafName(len(want)); leaf != name {
			t.Fatalf("leaf %d is %s, want %s", len(want), leaf, name)
		}
		want, message[name] = append(want, value), value
	})
	text := p.AppendJSON([]byte("x"), v, nil)
	if got := decodeJSON(t, text[1:]); !reflect.DeepEqual(got, any(want)) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
	text, err := p.AppendMessageJSON(nil, p.AppendValues(nil, v))
	if got := decodeJSON(t, text); err != nil || !reflect.DeepEqual(got, any(message)) {
		t.Fatalf("message: %v\ngot  %v\nwant %v", err, got, message)
	}
}

func TestJSONIsTheRestoredStruct(t *testing.T) {
	p := mustPlan[every](t)
	rng := rand.New(rand.NewPCG(17, 3))
	s := every{R64: 10}
	checkJSON(t, p, s)
	checkJSON(t, p, sampleEvery())
	for range 500 {
		s = randomEvery(rng, s)
		checkJSON(t, p, s)
	}
	for _, text := range []string{"\"\\\x00\n\u2028<&>", "日本", "\xff\xfe", strings.Repeat("\x1f", 16)} {
		s.Text = text
		v, _ := rounded(p, s)
		got := decodeJSON(t, p.AppendLeafJSON(nil, v, leafNamed(t, p, "Text")))
		if want := strings.ToValidUTF8(text, "\ufffd"); got != want && text != "\xff\xfe" {
			t.Errorf("text %q became %q", text, got)
		}
	}
	s.F32, s.F64 = float32(math.Inf(-1)), math.MaxFloat64
	checkJSON(t, p, s)
	s.F32, s.F64, s.Until = math.SmallestNonzeroFloat32, math.Inf(1), wrappedInstant{Instant{-time.Hour}}
	checkJSON(t, p, s)
}

func leafNamed(t *testing.T, p *Plan, name string) int {
	t.Helper()
	for i := range p.Leaves() {
		if p.LeafName(i) == name {
			return i
		}
	}
	t.Fatalf("no leaf %s", name)
	return 0
}

func TestHiddenLeavesAreNull(t *testing.T) {
	p := mustPlan[struct{ A, B, C int }](t)
	v := &Values{Words: []uint64{1, 2, 3}}
	got := string(p.AppendJSON(nil, v, func(leaf int) bool { return leaf == 1 }))
	if want := "[1,null,3]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestJSONOfNumbersDoesNotAllocate(t *testing.T) {
	p := mustPlan[drawn](t)
	v, _ := rounded(p, drawn{F32: 1.5, U64: math.MaxUint64, I64: -3, Text: "plain", Who: Ref{1<<32 | 7}})
	buf := p.AppendJSON(nil, v, nil)
	if n := testing.AllocsPerRun(100, func() { buf = p.AppendJSON(buf[:0], v, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Bytes of a message that a client could send are one valid JSON object, or an error.
func FuzzMessageJSON(f *testing.F) {
	p := mustPlan[every](f)
	s := sampleEvery()
	b, err := p.Append(nil, unsafe.Pointer(&s))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := p.AppendMessageJSON(nil, b)
		r, v := wire.NewReader(b), p.newValues()
		p.ReadSome(&r, v, nil)
		switch valid := r.Done() == nil; {
		case valid != (err == nil):
			t.Fatalf("error %v, but the reader has %v", err, r.Err())
		case valid && !json.Valid(text):
			t.Fatalf("not JSON: %s", text)
		case !valid && len(text) > 0:
			t.Fatalf("bytes beside the error: %s", text)
		}
	})
}
