package netloop

import (
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/netloop/netloop/internal/schema"
)

// press adds the presses of a late input to an input: the fields that repeat changes in the late
// input, unless the input has a press of its own in them.
func (i *Input[M]) press(r *Room, m M, late []byte) M {
	if i.repeat == nil {
		return m
	}
	read := func() M { // Decodes each time, because repeat may write through pointers and slices.
		in, err := schema.ReadInput(&i.in.InputCodec, late, new(M))
		if err != nil {
			return m
		}
		return in
	}
	pressed, after := read(), i.repeated(r, read(), 1)
	if _, ok := any(m).(proto.Message); ok {
		pressMessage(any(m).(proto.Message).ProtoReflect(), any(pressed).(proto.Message).ProtoReflect(), any(after).(proto.Message).ProtoReflect())
		return m
	}
	pressFields(reflect.ValueOf(&m).Elem(), reflect.ValueOf(&pressed).Elem(), reflect.ValueOf(&after).Elem())
	return m
}

// pressFields copies each field from pressed to m that differs between pressed and after, and in
// which m equals after.
func pressFields(m, pressed, after reflect.Value) {
	switch m.Kind() {
	case reflect.Struct:
		for i := range m.NumField() {
			pressFields(m.Field(i), pressed.Field(i), after.Field(i))
		}
	case reflect.Array:
		for i := range m.Len() {
			pressFields(m.Index(i), pressed.Index(i), after.Index(i))
		}
	default:
		if !m.CanSet() {
			return // It is unexported, and not sent.
		}
		same := func(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }
		if !same(pressed, after) && same(m, after) {
			m.Set(pressed)
		}
	}
}

// pressMessage is pressFields for a protobuf message.
func pressMessage(m, pressed, after protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		same := func(a, b protoreflect.Message) bool { return a.Has(f) == b.Has(f) && a.Get(f).Equal(b.Get(f)) }
		switch {
		case same(pressed, after) || !same(m, after):
		case pressed.Has(f):
			m.Set(f, pressed.Get(f))
		default:
			m.Clear(f)
		}
	}
}
