package schema

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/netloop/netloop/internal/codec"
)

// ProtoFields returns the encoding of a field that is a pointer to a generated protobuf message: it
// encodes deterministically, so that equal messages are equal bytes, by which state is compared.
func ProtoFields(t reflect.Type) *codec.Encoding {
	if t.Kind() != reflect.Pointer {
		return nil
	}
	zero, ok := reflect.Zero(t).Interface().(proto.Message)
	if !ok {
		return nil
	}
	message := zero.ProtoReflect().Type()
	shape := shapeOf(message, map[protoreflect.FullName]*protoShape{})
	in := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: recursionLimit}
	out := proto.MarshalOptions{Deterministic: true}
	get := func(field unsafe.Pointer) proto.Message {
		return reflect.NewAt(t, field).Elem().Interface().(proto.Message)
	}
	set := func(field unsafe.Pointer, m proto.Message) {
		reflect.NewAt(t, field).Elem().Set(reflect.ValueOf(m))
	}
	return &codec.Encoding{
		Name: string(message.Descriptor().FullName()),
		Append: func(dst []byte, field unsafe.Pointer) ([]byte, error) {
			return out.MarshalAppend(dst, get(field))
		},
		Check: func(b []byte) error { return in.Unmarshal(b, message.New().Interface()) },
		Store: func(field unsafe.Pointer, b []byte) error {
			m := message.New().Interface()
			if err := in.Unmarshal(b, m); err != nil {
				return err
			}
			set(field, m)
			return nil
		},
		JSON:  protoJSON(message),
		Heap:  shape.heap,
		Clone: func(field unsafe.Pointer) { set(field, proto.Clone(get(field))) },
	}
}

// protoJSON returns a function that converts an encoded message to protobuf JSON.
func protoJSON(t protoreflect.MessageType) func(b []byte) ([]byte, error) {
	in := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: recursionLimit}
	return func(b []byte) ([]byte, error) {
		m := t.New().Interface()
		if err := in.Unmarshal(b, m); err != nil {
			return nil, err
		}
		return protojson.Marshal(m)
	}
}
