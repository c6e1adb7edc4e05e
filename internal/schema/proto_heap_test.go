package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/gofeaturespb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/codec"
)

// A client's estimate for a protobuf field is within a factor of one and a half of the decoded
// size: for ordinary messages, and for messages crafted to be small on the wire.
func TestProtobufHeapMatchesAllocations(t *testing.T) {
	object, err := structpb.NewStruct(map[string]any{"a": 1, "b": "some text", "c": true, "d": nil, "list": []any{1, 2, "x", map[string]any{"deep": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	many := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range 300 {
		many.Fields[fmt.Sprint("key ", i)] = structpb.NewNumberValue(float64(i))
	}
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("a.proto"), Dependency: []string{"b", "c"}, PublicDependency: []int32{1, 2, 300}}
	for i := range 20 {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("Message", i)),
			Options: &descriptorpb.MessageOptions{Deprecated: proto.Bool(true), MapEntry: proto.Bool(false)}})
	}
	span := &descriptorpb.SourceCodeInfo_Location{Span: make([]int32, 1000), LeadingDetachedComments: make([]string, 400)}
	nothing := func(entry string, n int) []byte { return bytes.Repeat([]byte(entry), n) }
	of := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	heaped[arenav1.Said](t, "empty", nil)
	heaped[arenav1.Said](t, "texts", of(&arenav1.Said{Name: "somebody", Text: "a few words to all of them"}))
	heaped[structpb.Struct](t, "values", of(object))
	heaped[structpb.Struct](t, "a large map", of(many))
	heaped[structpb.ListValue](t, "empty values", nothing("\x0a\x00", 3000))
	heaped[descriptorpb.FileDescriptorProto](t, "a file", of(file))
	heaped[descriptorpb.FileDescriptorProto](t, "empty messages", nothing("\x22\x00", 3000))
	heaped[descriptorpb.FileDescriptorSet](t, "empty files", nothing("\x0a\x00", 3000))
	heaped[descriptorpb.SourceCodeInfo_Location](t, "packed numbers and empty texts", of(span))
	heaped[descriptorpb.SourceCodeInfo_Location](t, "numbers one by one", nothing("\x08\x01", 3000))
	heaped[fieldmaskpb.FieldMask](t, "a few texts", of(&fieldmaskpb.FieldMask{Paths: []string{"a.b", "c"}}))
	heaped[wrapperspb.BytesValue](t, "bytes", of(wrapperspb.Bytes(make([]byte, 3000))))
	features := &descriptorpb.FeatureSet{}
	proto.SetExtension(features, gofeaturespb.E_Go, &gofeaturespb.GoFeatures{})
	heaped[descriptorpb.FeatureSet](t, "an extension", of(features))
	heaped[wrapperspb.BoolValue](t, "a field that nobody knows", nothing("\x7a\x08somebody", 300))
	var values []byte // a map of entries without a value, each of which gets one
	for i := range 1000 {
		values = append(values, fmt.Sprintf("\x0a\x06\x0a\x04%04d", i)...)
	}
	heaped[structpb.Struct](t, "entries without a value", values)
}

// A field with presence takes a pointer, or the wrapper of a oneof, in addition to its value; a
// message takes the sum of its parts.
func TestPresenceIsCounted(t *testing.T) {
	heap := func(m proto.Message) int {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return ProtoFields(reflect.TypeOf(m)).Heap(b)
	}
	number := heap(&descriptorpb.FieldDescriptorProto{Number: proto.Int32(1)}) - heap(new(descriptorpb.FieldDescriptorProto))
	name := heap(&descriptorpb.FieldDescriptorProto{Name: proto.String("x")}) - heap(new(descriptorpb.FieldDescriptorProto))
	options := heap(&descriptorpb.FieldDescriptorProto{Options: new(descriptorpb.FieldOptions)}) - heap(new(descriptorpb.FieldDescriptorProto))
	oneof := heap(structpb.NewNumberValue(1)) - heap(new(structpb.Value))
	plain := heap(wrapperspb.Int32(1)) - heap(new(wrapperspb.Int32Value))
	if number != 16 || name != 16+codec.Allocated(1) || options != heap(new(descriptorpb.FieldOptions)) || oneof != 16 || plain != 0 {
		t.Errorf("a number takes %d, a name %d, a message %d of %d, one of several %d, what is always there %d",
			number, name, options, heap(new(descriptorpb.FieldOptions)), oneof, plain)
	}
}

// heaped compares the estimate for wire bytes of an M with its allocations.
func heaped[M any](t *testing.T, name string, wire []byte) {
	t.Run(name, func(t *testing.T) {
		encoding := ProtoFields(reflect.TypeFor[*M]())
		if err := encoding.Check(wire); err != nil {
			t.Fatal(err)
		}
		counted, all := encoding.Heap(wire), make([]*M, max(1, 100_000/(len(wire)+100)))
		before := inUse()
		for i := range all {
			if err := encoding.Store(unsafe.Pointer(&all[i]), wire); err != nil {
				t.Fatal(err)
			}
		}
		took := (inUse() - before) / len(all)
		if 2*took > 3*counted || 2*counted > 3*took {
			t.Errorf("%d bytes take %d, %d are counted: %.2f times", len(wire), took, counted, float64(took)/float64(counted))
		}
		runtime.KeepAlive(all)
		// truncated or modified bytes are estimated, too, and do not panic
		for i := range min(len(wire), 200) {
			encoding.Heap(wire[:i])
			broken := slices.Clone(wire)
			broken[i] ^= 0x1b
			encoding.Heap(broken)
		}
	})
}

func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A message nested deeper than decoding allows counts up to that depth.
func TestMessagesCountAsDeepAsTheyAreDecoded(t *testing.T) {
	heap := ProtoFields(reflect.TypeFor[*descriptorpb.DescriptorProto]()).Heap
	size := []int{heap(nil)}
	for b, deep := []byte(nil), 1; deep <= 2*recursionLimit; deep++ {
		b = append(protowire.AppendVarint([]byte{0x1a}, uint64(len(b))), b...) // nested_type
		size = append(size, heap(b))
		if grows := size[deep] > size[deep-1]; grows != (deep <= recursionLimit) {
			t.Errorf("%d messages take %d bytes, %d took %d", deep+1, size[deep], deep, size[deep-1])
		}
	}
}

// An entry of a map takes its key and its value.
func TestEntriesTakeAKeyAndAValue(t *testing.T) {
	shape := shapeOf((*structpb.Struct)(nil).ProtoReflect().Type(), map[protoreflect.FullName]*protoShape{})
	type entry struct {
		_ string
		_ *structpb.Value
	}
	if got := shape.fields[1].element; got != int(unsafe.Sizeof(entry{})) {
		t.Errorf("an entry takes %d bytes", got)
	}
}

// A slice that grows one by one has room for the next power of two, and from 256 on for a
// quarter more.
func TestAppendedSlicesHaveRoomForMore(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 129: 256, 256: 256, 257: 321, 1000: 1250} {
		if got := appended(n); got != want {
			t.Errorf("with %d elements it has room for %d, want %d", n, got, want)
		}
	}
}

// A packed list has an element for each whole word, or for each byte that ends a varint.
func TestPackedElementsAreCounted(t *testing.T) {
	b := []byte{0x80, 0x01, 0x7f, 0xff, 0x80, 0x00, 0x05, 0x81, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09}
	for kind, want := range map[protoreflect.Kind]int{
		protoreflect.Fixed32Kind: 4, protoreflect.Sfixed32Kind: 4, protoreflect.FloatKind: 4,
		protoreflect.Fixed64Kind: 2, protoreflect.Sfixed64Kind: 2, protoreflect.DoubleKind: 2,
		protoreflect.Int32Kind: 13, protoreflect.BoolKind: 13, protoreflect.EnumKind: 13,
	} {
		if got := packed(kind, b); got != want {
			t.Errorf("%d bytes hold %d of kind %v, want %d", len(b), got, kind, want)
		}
	}
}

// Elements take the sizes of Go's types of their kinds.
func TestElementsHaveTheSizesOfGo(t *testing.T) {
	for kind, want := range map[protoreflect.Kind]uintptr{
		protoreflect.BoolKind: unsafe.Sizeof(false), protoreflect.EnumKind: unsafe.Sizeof(protoreflect.EnumNumber(0)),
		protoreflect.Int32Kind: 4, protoreflect.Sint32Kind: 4, protoreflect.Uint32Kind: 4, protoreflect.Sfixed32Kind: 4,
		protoreflect.Fixed32Kind: 4, protoreflect.FloatKind: 4, protoreflect.StringKind: unsafe.Sizeof(""),
		protoreflect.BytesKind: unsafe.Sizeof([]byte{}), protoreflect.Int64Kind: 8, protoreflect.DoubleKind: 8, protoreflect.MessageKind: 8,
	} {
		if got := wordSize(kind); got != int(want) {
			t.Errorf("%v takes %d, want %d", kind, got, want)
		}
	}
}
