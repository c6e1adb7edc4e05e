package schema

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/codec"
)

var (
	nan32 = float32(math.NaN())
	inf32 = float32(math.Inf(1))
)

// badValue is a row of the table "Values that do not fit" in docs/GUIDE.md.
type badValue struct {
	name    string // how its row begins
	in      any    // a struct
	want    any    // the value as a client's state
	clamped int    // how often that is counted
	refused string // as a message: the field that the error names; without it want arrives
}

func badValues() []badValue {
	type exact struct {
		F float32
		D float64
	}
	type steps struct {
		F float32 `net:"quant=1/4"`
		D float64 `net:"quant=1/4"`
	}
	type ranged struct {
		F float32 `net:"quant=1/4,range=2:10"`
	}
	type turn struct {
		Q [4]float32 `net:"quat=10"`
	}
	type name struct {
		S string `net:"max=4"`
	}
	type raw struct {
		B []byte `net:"max=4"`
	}
	type list struct {
		L []int16 `net:"max=2"`
	}
	type words struct {
		L []string `net:"max=2,each=3"`
	}
	type scores struct {
		M map[string]int8 `net:"max=2,each=3"`
	}
	type said struct {
		P *arenav1.Said `net:"max=8"`
	}
	long := strings.Repeat("x", 9)
	return []badValue{
		{"NaN in a float", exact{nan32, math.NaN()}, exact{}, 2, ""},
		{"NaN in a float with a step", steps{nan32, math.NaN()}, steps{}, 2, ""},
		{"NaN in a float with a range", ranged{nan32}, ranged{2}, 1, ""},
		{"infinite, in a float without a step", exact{inf32, math.Inf(-1)}, exact{inf32, math.Inf(-1)}, 0, ""},
		{"infinite or too large, with a step", steps{inf32, -math.MaxFloat64}, steps{(1<<31 - 1) / 4.0, -(1 << 53) / 4.0}, 2, ""},
		{"infinite or out of range, with a range", ranged{-inf32}, ranged{2}, 1, ""},
		{"infinite or out of range, with a range", ranged{10.5}, ranged{10}, 1, ""},
		{"a quaternion with NaN or infinity", turn{[4]float32{0, nan32, 0, 1}}, turn{}, 1, ""},
		{"a quaternion with NaN or infinity", turn{[4]float32{inf32, 0, 0, -inf32}}, turn{}, 1, ""},
		{"a quaternion of zeros", turn{}, turn{}, 0, ""},
		{"a quaternion that is not of length 1", turn{[4]float32{0, -3, 0, 0}}, turn{[4]float32{0, 1, 0, 0}}, 0, ""},
		{"a string over its max", name{"abcé"}, name{"abc"}, 1, "name.S"},
		{"a string that is not UTF-8", name{"\xff\xfe"}, name{"\xff\xfe"}, 0, ""},
		{"a []byte over its max", raw{[]byte("abcde")}, raw{[]byte("abcd")}, 1, "raw.B"},
		{"a slice over its max", list{[]int16{1, 2, 3}}, list{[]int16{1, 2}}, 1, "list.L"},
		{"a string over its each, in a slice", words{[]string{"abcd"}}, words{[]string{"abc"}}, 1, "words.L"},
		{"a map or set over its max", scores{map[string]int8{"c": 3, "a": 1, "b": 2}}, scores{map[string]int8{"a": 1, "b": 2}}, 1, "scores.M"},
		{"a key over its each, in a map or set", scores{map[string]int8{"abcd": 1, "b": 2}}, scores{map[string]int8{"b": 2}}, 1, "scores.M"},
		{"a protobuf message over its max", said{&arenav1.Said{Name: long}}, said{}, 1, "said.P"},
		{"a protobuf message that cannot be encoded", said{&arenav1.Said{Name: "\xff"}}, said{}, 1, "said.P"},
		{"nil or empty slices and maps", list{[]int16{}}, list{}, 0, ""},
		{"nil or empty slices and maps", scores{map[string]int8{}}, scores{}, 0, ""},
		{"a nil pointer", said{}, said{}, 0, ""},
	}
}

// Each row of the table holds, for states and for messages, and the table has a row for each.
func TestValuesThatDoNotFitMatchTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range badValues() {
		if !strings.Contains(string(page), "\n| "+v.name+" |") {
			t.Errorf("../../docs/GUIDE.md has no row for %s", v.name)
		}
		typ := reflect.TypeOf(v.in)
		p, err := codec.Compile(typ, ProtoFields)
		if err != nil {
			t.Fatal(err)
		}
		in, state, message := reflect.New(typ), reflect.New(typ), reflect.New(typ)
		in.Elem().Set(reflect.ValueOf(v.in))
		values := codec.Values{Words: make([]uint64, p.Words()), Blobs: make([][]byte, p.Blobs())}
		clamped := p.Capture(in.UnsafePointer(), &values)
		p.Restore(state.UnsafePointer(), &values, nil)
		if got := state.Elem().Interface(); !reflect.DeepEqual(got, v.want) || clamped != v.clamped {
			t.Errorf("%s: %+v is %+v as a state, counted %d times; want %+v, %d", v.name, v.in, got, clamped, v.want, v.clamped)
		}
		if misfits := p.Misfits(in.UnsafePointer()); len(misfits) != v.clamped {
			t.Errorf("%s: the fields %v are named, want %d", v.name, misfits, v.clamped)
		}

		b, err := p.Append(nil, in.UnsafePointer())
		if v.refused != "" {
			if err == nil || !strings.Contains(err.Error(), v.refused) || len(b) != 0 {
				t.Errorf("%s: as a message %v, want an error that names %s", v.name, err, v.refused)
			}
			continue
		}
		if err == nil {
			err = p.Decode(b, message.UnsafePointer())
		}
		if got := message.Elem().Interface(); err != nil || !reflect.DeepEqual(got, v.want) {
			t.Errorf("%s: %+v is %+v as a message, %v; want %+v", v.name, v.in, got, err, v.want)
		}
	}
}

// A message that is itself a protobuf message: nil is an empty one, and a message that cannot be
// encoded is refused.
func TestProtobufMessagesThatAreNoMessages(t *testing.T) {
	c, err := NewCodec[*arenav1.Said]()
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Append(nil, (*arenav1.Said)(nil))
	if m, e := c.Decode(b); err != nil || e != nil || len(b) != 0 || m.(*arenav1.Said) == nil {
		t.Errorf("nil became %x and then %v: %v, %v", b, m, err, e)
	}
	if _, err := c.Append(nil, &arenav1.Said{Name: "\xff"}); err == nil {
		t.Error("a name that is not UTF-8 was encoded")
	}
}
