package codec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// letter encodes itself, as a protobuf message does.
type letter struct{ text string }

var errLetter = errors.New("no letter")

// letters is a type with its own encoding. Bytes with a zero are not valid.
func letters(t reflect.Type) *Encoding {
	if t != reflect.TypeFor[*letter]() {
		return nil
	}
	check := func(b []byte) error {
		if strings.Contains(string(b), "\x00") {
			return errLetter
		}
		return nil
	}
	return &Encoding{
		Name: "test.Letter",
		Append: func(dst []byte, field unsafe.Pointer) ([]byte, error) {
			text := (*(**letter)(field)).text
			return append(dst, text...), check([]byte(text))
		},
		Check: check,
		Store: func(field unsafe.Pointer, b []byte) error {
			*(**letter)(field) = &letter{string(b)}
			return check(b)
		},
		// few bytes decode to a large value
		Heap: func(b []byte) int { return 1000 * len(b) },
		Clone: func(field unsafe.Pointer) {
			twin := **(**letter)(field)
			*(**letter)(field) = &twin
		},
	}
}

func TestMessagesInFieldsAreBoundedAndChecked(t *testing.T) {
	type post struct {
		A *letter            `net:"max=3"`
		B []*letter          `net:"max=2,each=4"`
		C map[string]*letter `net:"max=2,each=4"`
	}
	p := mustPlan[post](t)
	want := []FieldInfo{{"A", "proto test.Letter max=3"}, {"B", "[]proto test.Letter max=4 max=2"}, {"C", "map[string max=4]proto test.Letter max=4 max=2"}}
	if got := p.Describe(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []struct {
		in, want post
		clamped  int
		err      error
	}{
		{in: post{}, want: post{}},
		{in: post{A: &letter{}}, want: post{A: &letter{}}}, // An empty one is not nil.
		{in: post{A: &letter{"abc"}, B: []*letter{nil, {"abcd"}}, C: map[string]*letter{"x": {"y"}, "z": nil}}, want: post{A: &letter{"abc"}, B: []*letter{nil, {"abcd"}}, C: map[string]*letter{"x": {"y"}, "z": nil}}},
		{in: post{A: &letter{"abcd"}, B: []*letter{{"abcde"}}}, want: post{B: []*letter{nil}}, clamped: 2},
		{in: post{A: &letter{"\x00"}}, want: post{}, clamped: 1, err: errLetter},
	} {
		v, out := p.newValues(), post{}
		if n := p.Capture(unsafe.Pointer(&c.in), v); n != c.clamped {
			t.Errorf("%d clamped, want %d", n, c.clamped)
		}
		if p.Restore(unsafe.Pointer(&out), v, nil); !reflect.DeepEqual(out, c.want) {
			t.Errorf("%+v became %+v", c.in, out)
		}
		b, err := p.Append(nil, unsafe.Pointer(&c.in))
		if (err != nil) != (c.clamped > 0) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("error %v, want %v", err, c.err)
		}
		if size, _ := p.MaxSize(); len(b) > size {
			t.Errorf("%d bytes, more than %d", len(b), size)
		}
	}
	for _, b := range []string{"\x02\x00\x00\x00", "\x05abcd\x00\x00", "\x04ab"} {
		if p.Decode([]byte(b), unsafe.Pointer(&post{})) == nil {
			t.Errorf("%q is accepted", b)
		}
	}
}
