package schema

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/netloop/netloop/internal/codec"
)

// Codec encodes messages of one type: plain structs by the codec of replicated state, protobuf
// messages by protobuf. A decoded message is a pointer to a struct to which no other reference
// exists, as an any.
type Codec struct {
	Name   string
	plan   *codec.Plan // plain structs
	New    func() any  // an empty message
	Decode func(b []byte) (any, error)
	Append func(dst []byte, m any) ([]byte, error)
	// Size estimates, without decoding, the number of bytes that Decode allocates; for a protobuf
	// message within a factor of two.
	Size func(b []byte) int
	// JSON returns a valid encoded message as JSON: of a plain struct as codec.Plan describes, of a
	// protobuf message its protobuf JSON.
	JSON func(b []byte) ([]byte, error)
	// bind makes the codec of the same type in another side's layout; nil for a protobuf message,
	// which is the same on all sides.
	bind func(layout codec.Type, budget *codec.Budget) (Codec, error)
}

// NewCodec compiles the codec of M, a plain struct or a pointer to a
// generated protobuf message.
func NewCodec[M any]() (Codec, error) {
	t := reflect.TypeFor[M]()
	c, err := codecOf(t)
	if err != nil {
		err = fmt.Errorf("message type %s: %w", t, err)
	}
	return c, err
}

// codecOf is NewCodec for a type known at run time only.
func codecOf(t reflect.Type) (Codec, error) {
	if zero, ok := reflect.Zero(t).Interface().(proto.Message); ok {
		return protoCodec(zero.ProtoReflect().Type()), nil
	}
	plan, err := planOf(t)
	if err != nil {
		return Codec{}, err
	}
	return planCodec(t, plan), nil
}

// planOf compiles a plain struct.
func planOf(t reflect.Type) (*codec.Plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("use a struct or a pointer to a protobuf message")
	}
	plan, err := codec.Compile(t, ProtoFields)
	if err != nil {
		return nil, err
	}
	for i := range plan.Leaves() {
		if rule := plan.ReadRule(i); rule != "" {
			return nil, fmt.Errorf("field %s has read=%s, but a message has no read rules: remove it, and choose the recipients", plan.LeafName(i), rule)
		}
	}
	return plan, nil
}

// planCodec returns the codec of a plain struct.
func planCodec(t reflect.Type, plan *codec.Plan) Codec {
	return Codec{
		Name: t.Name(),
		plan: plan,
		New:  func() any { return reflect.New(t).Interface() },
		Decode: func(b []byte) (any, error) {
			m := reflect.New(t)
			return m.Interface(), plan.Decode(b, m.UnsafePointer())
		},
		Append: func(dst []byte, m any) ([]byte, error) { return plan.Append(dst, reflect.ValueOf(m).UnsafePointer()) },
		Size:   plan.DecodedSize,
		JSON:   func(b []byte) ([]byte, error) { return plan.AppendMessageJSON(nil, b) },
		bind: func(layout codec.Type, budget *codec.Budget) (Codec, error) {
			bound, err := codec.Bind(t, layout, budget, ProtoFields)
			if err != nil {
				return Codec{}, err
			}
			return planCodec(t, bound), nil
		},
	}
}

// recursionLimit limits the nesting of a protobuf message: to parse a deeper message costs more
// stack and memory than any game message needs.
const recursionLimit = 32

func protoCodec(t protoreflect.MessageType) Codec {
	in := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: recursionLimit}
	out := proto.MarshalOptions{}
	return Codec{
		Name: string(t.Descriptor().FullName()),
		New:  func() any { return t.New().Interface() },
		Decode: func(b []byte) (any, error) {
			m := t.New().Interface()
			return m, in.Unmarshal(b, m)
		},
		Append: func(dst []byte, m any) ([]byte, error) {
			return out.MarshalAppend(dst, m.(proto.Message))
		},
		Size: shapeOf(t, map[protoreflect.FullName]*protoShape{}).heap,
		JSON: protoJSON(t),
	}
}

// signature returns the text by which two sides compare the type.
func (c *Codec) signature() string {
	if c.plan == nil {
		return "proto " + c.Name
	}
	s := "{"
	for _, f := range c.plan.Describe() {
		s += f.Name + " " + f.Type + ";"
	}
	return s + "}"
}

// Open converts a message without static type, a *M or a protobuf message, to an M.
func Open[M any](m any) M {
	if p, ok := m.(*M); ok {
		return *p
	}
	return m.(M)
}

// Erase is the inverse of Open.
func Erase[M any](m M) any {
	if _, ok := any(m).(proto.Message); ok {
		return m
	}
	return &m
}
