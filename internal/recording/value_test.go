package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/wire"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

type inner struct {
	n    int16
	text string
	next *inner
}

type allTypes struct {
	B     bool
	I     int
	I8    int8
	U64   uint64
	F32   float32
	F64   float64
	S     string
	Bytes []byte
	Ints  []int32
	Fixed [3]uint8
	Map   map[string]inner
	Ptr   *int
	Any   any
	Anys  []any
	D     time.Duration
	At    time.Time
	Proto *netloopv1.Rate
	inner inner
}

func roundTrip[T any](t interface{ Fatalf(string, ...any) }, v T) T {
	b, err := AppendValue(nil, &v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got := new(T)
	if err := ReadValue(b, got); err != nil {
		t.Fatalf("%v", err)
	}
	return *got
}

func TestValuesRoundTripExactly(t *testing.T) {
	text := rapid.StringN(0, 8, -1)
	in := rapid.Custom(func(t *rapid.T) inner {
		v := inner{n: rapid.Int16().Draw(t, "n"), text: text.Draw(t, "text")}
		if rapid.Bool().Draw(t, "next") {
			v.next = &inner{n: 1}
		}
		return v
	})
	anys := rapid.SampledFrom([]any{nil, true, "x", []byte{1}, []byte{}, 7, int8(-7), uint16(9), float32(0.5), math.Inf(1), time.Second, []any{1, nil}, []string{}, map[string]any{"a": 1.5}, map[string]string{"a": "b"}})
	rapid.Check(t, func(t *rapid.T) {
		v := allTypes{
			B: rapid.Bool().Draw(t, "b"), I: rapid.Int().Draw(t, "i"), I8: rapid.Int8().Draw(t, "i8"), U64: rapid.Uint64().Draw(t, "u"),
			F32: rapid.Float32().Draw(t, "f32"), F64: rapid.Float64().Draw(t, "f64"), S: text.Draw(t, "s"),
			Bytes: rapid.SampledFrom([][]byte{nil, {}, {1, 2}}).Draw(t, "bytes"),
			Ints:  rapid.SampledFrom([][]int32{nil, {}, {-1, 2}}).Draw(t, "ints"),
			Fixed: [3]uint8{1, 2, 3},
			Map:   rapid.OneOf(rapid.Just(map[string]inner(nil)), rapid.MapOfN(text, in, 0, 4)).Draw(t, "map"),
			Any:   anys.Draw(t, "any"), Anys: rapid.SliceOfN(anys, 0, 3).Draw(t, "anys"), D: time.Duration(rapid.Int64().Draw(t, "d")),
			At:    time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 5).UTC(),
			inner: in.Draw(t, "inner"),
		}
		if rapid.Bool().Draw(t, "ptr") {
			v.Ptr = new(int) // A pointer to zero is not nil.
		}
		if got := roundTrip(t, v); !reflect.DeepEqual(got, v) {
			t.Fatalf("%+v was decoded as %+v", v, got)
		}
	})
	rate := &netloopv1.Rate{Num: 60, Den: 1}
	if got := roundTrip(t, allTypes{Proto: rate}); !proto.Equal(got.Proto, rate) {
		t.Fatalf("%v was decoded as %v", rate, got.Proto)
	}
	b, err := AppendValue(nil, rate)
	again := new(netloopv1.Rate)
	if err = errors.Join(err, ReadValue(b, again)); err != nil || !proto.Equal(again, rate) {
		t.Fatalf("%v was decoded as %v, error %v", rate, again, err)
	}
	if got := roundTrip(t, math.NaN()); !math.IsNaN(got) {
		t.Fatalf("NaN was decoded as %v", got)
	}
}

// Equal values have equal bytes, for each order of a map.
func TestMapsAreWrittenInSortedOrder(t *testing.T) {
	m := map[string]int{}
	for i := range 100 {
		m[fmt.Sprint(i)] = i
	}
	first, err := AppendValue(nil, &m)
	if err != nil {
		t.Fatal(err)
	}
	message := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name := range m {
		message.Fields[name] = structpb.NewNullValue()
	}
	inMessage, err := AppendValue(nil, message)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if b, _ := AppendValue(nil, &m); string(b) != string(first) {
			t.Fatal("equal maps have different bytes")
		}
		if b, _ := AppendValue(nil, message); string(b) != string(inMessage) {
			t.Fatal("equal messages have different bytes")
		}
	}
}

func TestUnsupportedValuesAreRefusedByName(t *testing.T) {
	loop, list, slice := &inner{}, []any{nil}, nestedSlice{nil}
	loop.next, list[0], slice[0] = loop, list, slice
	type player struct {
		Name string
		Conn any
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{&struct{ F func() }{func() {}}, ".F of type func()"},
		{&struct{ A []chan int }{[]chan int{make(chan int)}}, ".A[0] of type chan int"},
		{&player{Conn: &net.TCPConn{}}, "recording.player.Conn of type *net.TCPConn"},
		{&map[string]any{"conn": make(chan int)}, "[conn] of type chan int"},
		{&struct{ E error }{io.EOF}, ".E of type *errors.errorString"},
		{&struct{ X any }{struct{ A int }{1}}, ".X of type struct { A int }"},
		{&struct{ T time.Time }{time.Now().In(time.FixedZone("", 1<<21))}, ".T of type time.Time"},
		{&struct{ X fmt.Stringer }{time.Second}, ".X of type time.Duration"},
		{loop, "is nested too deeply, or refers to itself"},
		{&list, "is nested too deeply, or refers to itself"},
		{&slice, "is nested too deeply, or refers to itself"},
	} {
		_, err := AppendValue(nil, c.v)
		var v *ValueError
		if !errors.As(err, &v) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: error %v, want %q", c.v, err, c.want)
		}
	}
}

func TestErrorsRoundTripForErrorsIs(t *testing.T) {
	sentinel := errors.New("no such player")
	err := fmt.Errorf("loading %d: %w", 7, errors.Join(sentinel, context.DeadlineExceeded))
	e, inexact := NewError(err)
	if inexact != nil {
		t.Fatal(inexact)
	}
	again := roundTrip(t, *e)
	switch {
	case again.Error() != err.Error():
		t.Errorf("text %q", again.Error())
	case !errors.Is(&again, sentinel), !errors.Is(&again, context.DeadlineExceeded), errors.Is(&again, io.EOF), errors.Is(&again, context.Canceled):
		t.Error("errors.Is finds other errors than before")
	}
	var none error
	for _, exact := range []error{fmt.Errorf("%w and %w", sentinel, io.EOF), fmt.Errorf("nothing: %w", none)} {
		if _, inexact := NewError(exact); inexact != nil {
			t.Errorf("%v: %v", exact, inexact)
		}
	}
	if _, inexact := NewError(fmt.Errorf("asking: %w", &net.OpError{Op: "dial", Err: io.EOF})); inexact == nil || !strings.Contains(inexact.Error(), "*net.OpError") {
		t.Errorf("a typed error: %v", inexact)
	}
	deep := sentinel
	for range 64 {
		deep = fmt.Errorf("under: %w", deep)
	}
	if _, inexact := NewError(deep); inexact == nil {
		t.Error("the tree of errors has no bound")
	}
}

// A slice of elements without bytes has at most MaxRecord elements: a short record must not cause
// a long loop.
func TestALongSliceOfEmptyElementsIsRefused(t *testing.T) {
	for _, n := range []uint64{MaxRecord + 1, math.MaxUint64 - 1} {
		var v []struct{}
		if err := ReadValue(wire.AppendUvarint(nil, n+1), &v); !errors.Is(err, wire.ErrShort) || len(v) != 0 {
			t.Errorf("a length of %d makes %d elements, error %v", n, len(v), err)
		}
	}
}

type (
	nestedSlice   []nestedSlice
	nestedArray   [1]*nestedArray
	nestedMap     map[uint8]nestedMap
	nestedKey     map[*nestedKey]bool
	nestedPointer *nestedPointer
	nestedStruct  struct{ Next *nestedStruct }
)

// The decoder follows nested values of any kind down to maxDepth and no deeper.
func TestTheDecoderBoundsTheDepth(t *testing.T) {
	list := byte(1 + slices.Index(plain, reflect.TypeFor[[]any]()))
	for _, c := range []struct {
		v               any
		level, leaf, up string // of the encoding
		depth           int    // of one level
	}{
		{new(nestedSlice), "\x02", "\x00", "", 1},
		{new(nestedArray), "\x01", "\x00", "", 2},
		{new(nestedMap), "\x02\x07", "\x00", "", 1},
		{new(nestedKey), "\x02\x01", "\x00", "\x01", 2},
		{new(nestedPointer), "\x01", "\x00", "", 1},
		{new(nestedStruct), "\x01", "\x00", "", 2},
		{new(any), string([]byte{list, 2}), "\x00", "", 2},
	} {
		read := func(levels int) error {
			return ReadValue([]byte(strings.Repeat(c.level, levels)+c.leaf+strings.Repeat(c.up, levels)), c.v)
		}
		most := maxDepth / c.depth
		if err := read(most - 1); err != nil {
			t.Errorf("%T, %d levels: %v", c.v, most-1, err)
		}
		if _, err := AppendValue(nil, c.v); err != nil {
			t.Errorf("%T, %d levels: %v", c.v, most-1, err)
		}
		if err := read(most + 1); !errors.Is(err, errDepth) {
			t.Errorf("%T, %d levels: error %v", c.v, most+1, err)
		}
	}
	if err := ReadValue([]byte(strings.Repeat("\x02", maxDepth)+"\x00"), new(nestedSlice)); err != nil {
		t.Errorf("a slice at the bound: %v", err)
	}
}

// The encoder does the same.
func TestTheEncoderBoundsTheDepth(t *testing.T) {
	values, keys := nestedMap(nil), nestedKey(nil)
	for n := 1; n <= maxDepth+1; n++ {
		under := keys
		values, keys = nestedMap{7: values}, nestedKey{&under: true} // A key is two levels.
		for most, v := range map[int]any{maxDepth: &values, maxDepth / 2: &keys} {
			if _, err := AppendValue(nil, v); (err == nil) != (n <= most) {
				t.Errorf("%T, %d levels: %v", v, n, err)
			}
		}
	}
}

// The decoder refuses bytes that no value has, and says why.
func TestImpossibleBytesAreRefused(t *testing.T) {
	list := byte(1 + slices.Index(plain, reflect.TypeFor[[]any]()))
	for _, c := range []struct {
		v    any
		b    []byte
		want error
	}{
		{new(bool), []byte{2}, errTag},
		{new(int8), wire.AppendZigzag(nil, 128), errRange},
		{new(uint8), wire.AppendUvarint(nil, 256), errRange},
		{new(func()), []byte{1}, errTag},
		{new(error), []byte{1, 1}, errTag},
		{new(any), []byte{byte(len(plain)) + 1}, errTag},
		{new(map[any]bool), []byte{2, list, 1, 1}, errTag},
		{new(map[uint8]bool), []byte{3, 1, 1}, wire.ErrShort},
		{new([]byte), []byte{3, 1}, wire.ErrShort},
		{new([]string), []byte{3, 1, 'x'}, wire.ErrShort},
		{new(time.Time), []byte{1, 9}, nil},
		{new(*netloopv1.Rate), []byte{1, 1, 0xff}, nil},
	} {
		if err := ReadValue(c.b, c.v); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%x as a %T: %v, want %v", c.b, c.v, err, c.want)
		}
	}
	if _, err := AppendValue(nil, &netloopv1.Hello{Room: "\xff"}); err == nil {
		t.Error("a message that cannot be encoded is written")
	}
}
