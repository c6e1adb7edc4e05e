package netloop

import (
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/transport"
)

// The most bytes of an encoded message. Tags may set less.
const (
	MaxMessage    = transport.MaxPayload         // 15 808: of an RPC, a question or an answer
	MaxUnreliable = transport.MaxDatagramPayload // 1 086: of an [Unreliable] RPC
)

// Clip cuts a text to at most n bytes, the unit of the tag max, without leaving half a
// character: what a player typed, before it goes into a field or a message. A text that
// is short enough it returns as it is.
func Clip(s string, n int) string { return codec.Clip(s, n) }

// messageCodec is how messages of one type travel: plain structs by the codec
// of replicated state, protobuf messages as themselves. A decoded message is a
// pointer to a struct that nobody else holds; erased, it is an any.
type messageCodec struct {
	name   string
	plan   *codec.Plan // plain structs
	make   func() any  // an empty message
	decode func(b []byte) (any, error)
	append func(dst []byte, m any) ([]byte, error)
	// bind makes the codec of the same type in another side's layout; nil of a protobuf
	// message, which is the same everywhere.
	bind func(layout codec.Type, budget *codec.Budget) (messageCodec, error)
}

// newMessageCodec compiles the codec of M, a plain struct or a pointer to a
// generated protobuf message.
func newMessageCodec[M any]() (messageCodec, error) {
	t := reflect.TypeFor[M]()
	if zero, ok := reflect.Zero(t).Interface().(proto.Message); ok {
		return protoCodec(zero.ProtoReflect().Type()), nil
	}
	if t.Kind() != reflect.Struct {
		return messageCodec{}, fmt.Errorf("message type %s: use a struct or a pointer to a protobuf message", t)
	}
	plan, err := codec.Compile(t, protoFields)
	if err != nil {
		return messageCodec{}, fmt.Errorf("message type %s: %w", t, err)
	}
	for i := range plan.Leaves() {
		if rule := plan.ReadRule(i); rule != "" {
			return messageCodec{}, fmt.Errorf("message type %s: field %s has read=%s, but who gets a message reads all of it; remove it, and choose whom the message is sent to", t, plan.LeafName(i), rule)
		}
	}
	return planCodec[M](t.Name(), plan), nil
}

// planCodec is the codec of a plain struct M.
func planCodec[M any](name string, plan *codec.Plan) messageCodec {
	return messageCodec{
		name: name,
		plan: plan,
		make: func() any { return new(M) },
		decode: func(b []byte) (any, error) {
			m := new(M)
			return m, plan.Decode(b, unsafe.Pointer(m))
		},
		append: func(dst []byte, m any) ([]byte, error) {
			return plan.Append(dst, unsafe.Pointer(m.(*M)))
		},
		bind: func(layout codec.Type, budget *codec.Budget) (messageCodec, error) {
			bound, err := codec.Bind(reflect.TypeFor[M](), layout, budget, protoFields)
			if err != nil {
				return messageCodec{}, err
			}
			return planCodec[M](name, bound), nil
		},
	}
}

// recursionLimit bounds how deep a protobuf message may nest: parsing a deeper
// one costs more stack and memory than any game message needs.
const recursionLimit = 32

func protoCodec(t protoreflect.MessageType) messageCodec {
	in := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: recursionLimit}
	out := proto.MarshalOptions{}
	return messageCodec{
		name: string(t.Descriptor().FullName()),
		make: func() any { return t.New().Interface() },
		decode: func(b []byte) (any, error) {
			m := t.New().Interface()
			return m, in.Unmarshal(b, m)
		},
		append: func(dst []byte, m any) ([]byte, error) {
			return out.MarshalAppend(dst, m.(proto.Message))
		},
	}
}

// signature is the text by which two sides compare the type.
func (c *messageCodec) signature() string {
	if c.plan == nil {
		return "proto " + c.name
	}
	s := "{"
	for _, f := range c.plan.Describe() {
		s += f.Name + " " + f.Type + ";"
	}
	return s + "}"
}
