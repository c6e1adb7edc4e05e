package schema

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
)

// newInput declares an input of type M in a schema of its own, and gives it room for one.
func newInput[M any](t *testing.T) (*Input, *codec.Values) {
	t.Helper()
	c, err := NewCodec[M]()
	if err != nil {
		t.Fatal(err)
	}
	in := New("controls", 1, 0).AddInput(c)
	return in, input.NewRing(in.Form(), time.Second/60).Add(1, input.View{})
}

func mustAppend(t *testing.T, c Codec, m any) []byte {
	t.Helper()
	b, err := c.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An input is read as it was made, from the client's copy and from the wire; a protobuf message
// that is too large for the repeats of a datagram is an error, and so is an invalid one.
func TestInputsAreReadAsTheyWereMade(t *testing.T) {
	type helm struct{ Turn, Thrust int8 }
	plain, v := newInput[helm](t)
	made, scratch := helm{-3, 7}, helm{1, 1}
	if err := CaptureInput(&plain.InputCodec, &made, v); err != nil {
		t.Fatal(err)
	}
	if got, err := OpenInput(&plain.InputCodec, v, &scratch); err != nil || got != made {
		t.Errorf("%+v is opened as %+v, %v", made, got, err)
	}
	message := mustAppend(t, plain.codec, &made)
	if got, err := ReadInput(&plain.InputCodec, message, &scratch); err != nil || got != made {
		t.Errorf("%+v is read as %+v, %v", made, got, err)
	}
	if _, err := ReadInput(&plain.InputCodec, message[:1], &scratch); err == nil {
		t.Error("half an input is read")
	}

	type text = *wrapperspb.StringValue
	proto, v := newInput[text](t)
	var none text
	const wrapped = 2 // A tag and a length.
	for size, want := range map[int]error{input.MaxSize - wrapped: nil, input.MaxSize - wrapped + 1: errInputSize} {
		said := wrapperspb.String(strings.Repeat("x", size))
		if err := CaptureInput(&proto.InputCodec, &said, v); !errors.Is(err, want) {
			t.Errorf("a text of %d bytes: %v, want %v", size, err, want)
		}
	}
	said := wrapperspb.String("port")
	if err := CaptureInput(&proto.InputCodec, &said, v); err != nil {
		t.Fatal(err)
	}
	if got, err := OpenInput(&proto.InputCodec, v, &none); err != nil || got.GetValue() != "port" {
		t.Errorf("%v is opened as %v, %v", said, got, err)
	}
	if got, err := ReadInput(&proto.InputCodec, v.Blobs[0], &none); err != nil || got.GetValue() != "port" {
		t.Errorf("%v is read as %v, %v", said, got, err)
	}
	bad := wrapperspb.String("\xff")
	if err := CaptureInput(&proto.InputCodec, &bad, v); err == nil {
		t.Error("a text that is no text is an input")
	}
	v.Blobs[0] = []byte{0x0a}
	if got, err := OpenInput(&proto.InputCodec, v, &none); err == nil || got != nil {
		t.Errorf("a broken message is opened as %v", got)
	}
	if got, err := ReadInput(&proto.InputCodec, v.Blobs[0], &none); err == nil || got != nil {
		t.Errorf("a broken message is read as %v", got)
	}
}

// A schema has one input, which Input returns, and it belongs to that schema only.
func TestASchemaHasOneInput(t *testing.T) {
	in, _ := newInput[struct{ Turn int8 }](t)
	if in.Schema.Input() != in || in.Belongs(in.Schema) != nil || in.Belongs(New("other", 1, 0)) == nil {
		t.Error("it is not that of its schema alone")
	}
	var text strings.Builder
	if in.Schema.describe(&text); !strings.Contains(text.String(), "\ninput ") {
		t.Errorf("the fingerprint is of %q", text.String())
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "already has an input") {
			t.Errorf("a second one: %q", text)
		}
	}()
	in.Schema.AddInput(in.codec)
}

// An input has at most 48 bytes, and the panic names the largest field.
func TestAnInputFitsADatagramOfMany(t *testing.T) {
	type fits struct{ Keys [input.MaxSize]uint8 }
	type large struct{ Keys [input.MaxSize + 1]uint8 }
	newInput[fits](t)
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "input has up to 49 bytes, most of them in Keys, more than 48") {
			t.Errorf("recovered %q", text)
		}
	}()
	newInput[large](t)
}
