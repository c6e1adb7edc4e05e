package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/types/known/structpb"

	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/testing/golden"
)

// The worked state of docs/WIRE.md.
func TestGoldenProtobufField(t *testing.T) {
	type state struct {
		Last, None *arenav1.Said `net:"max=64"`
	}
	p, err := codec.Compile(reflect.TypeFor[state](), ProtoFields)
	if err != nil {
		t.Fatal(err)
	}
	want := golden.Example(t, "../../docs/WIRE.md", "message-proto")
	s := state{Last: &arenav1.Said{Name: "ann", Text: "hi"}}
	if got, err := p.Append(nil, unsafe.Pointer(&s)); err != nil || string(got) != string(want) {
		t.Errorf("%x, want %x: %v", got, want, err)
	}
}

// A map inside of a message has no order in Go; the bytes of the field have.
func TestProtobufFieldIsTheSameBytesEveryTime(t *testing.T) {
	type state struct{ S *structpb.Struct }
	p, err := codec.Compile(reflect.TypeFor[state](), ProtoFields)
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for range 20 {
		m, err := structpb.NewStruct(map[string]any{"a": 1, "b": "two", "c": true, "d": nil, "e": 5})
		if err != nil {
			t.Fatal(err)
		}
		s, twin := state{m}, state{}
		p.Clone(unsafe.Pointer(&twin), unsafe.Pointer(&s))
		delete(m.Fields, "a")
		m.Fields["a"] = structpb.NewNumberValue(1)
		b, err := p.Append(nil, unsafe.Pointer(&s))
		if err != nil {
			t.Fatal(err)
		}
		delete(m.Fields, "b")
		other, err := p.Append(nil, unsafe.Pointer(&twin))
		if first == nil {
			first = b
		}
		if err != nil || string(b) != string(first) || string(other) != string(first) {
			t.Fatalf("%x and %x, first %x: %v", b, other, first, err)
		}
	}
}

// A message in a field is its protobuf JSON among the values of a state, and null without one.
func TestProtobufFieldIsProtobufJSON(t *testing.T) {
	type state struct {
		Last, None *arenav1.Said `net:"max=64"`
	}
	p, err := codec.Compile(reflect.TypeFor[state](), ProtoFields)
	if err != nil {
		t.Fatal(err)
	}
	s := state{Last: &arenav1.Said{Name: "ann", Text: "hi"}}
	b, err := p.Append(nil, unsafe.Pointer(&s))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.AppendMessageJSON(nil, b)
	var got struct {
		Last struct{ Name, Text string }
		None any
	}
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || got.Last.Name != "ann" || got.Last.Text != "hi" || got.None != nil {
		t.Errorf("%s: %v", text, err)
	}
	c, err := NewCodec[*arenav1.Said]()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = c.Append(nil, s.Last); err != nil {
		t.Fatal(err)
	}
	if text, err = c.JSON(b); err != nil || !json.Valid(text) {
		t.Errorf("%s: %v", text, err)
	}
	if _, err = c.JSON([]byte{0xff}); err == nil {
		t.Error("damaged bytes are a message")
	}
}
