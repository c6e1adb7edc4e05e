package schema

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/testing/golden"
)

// formed has a field of each kind.
type formed struct {
	Yes    bool
	I8     int8
	I16    int16
	I32    int32
	I64    int64
	U8     uint8
	U16    uint16
	U32    uint32
	U64    uint64
	F32    float32
	F64    float64
	Quant  float32    `net:"quant=1/8"`
	Turn   [4]float32 `net:"quat=10"`
	Object codec.Ref
	Text   string `net:"max=8"`
	Bytes  []byte `net:"max=8"`
	Fixed  [3]byte
	List   []struct{ A, B int32 } `net:"max=4"`
	Array  [2]int16
	Map    map[string]int32 `net:"max=4"`
	Set    map[uint8]struct{}
	Value  *structpb.Value
	Inner  struct{ Pos struct{ X, Y float64 } }
}

// The description of a schema has each kind of type, once for a message that contains itself.
// internal/inspect/page/src/message.test.ts converts messages by it.
func TestFormsDescribeEachKind(t *testing.T) {
	s := New("forms", 1, 0)
	in, err := NewCodec[formed]()
	if err != nil {
		t.Fatal(err)
	}
	value, err := NewCodec[*structpb.Value]()
	if err != nil {
		t.Fatal(err)
	}
	call, rpc := NewMethod(s, "all", in, true), NewMethod(s, "value", value, false)
	call.Out, rpc.Queue.Stages, rpc.ServerOnly = value, []loop.Stage{loop.Update, loop.PreUpdate}, true
	s.AddMethod(call)
	s.AddMethod(rpc)
	text, err := json.MarshalIndent(s.Forms(func(m *Method) bool { return m == rpc }), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/forms.json", string(text)+"\n")
}
