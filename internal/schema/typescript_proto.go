package schema

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The client of browsers gets a protobuf message as a table of its fields, so that a page needs no
// generated code: number, name, kind, whether it is repeated, and its type.

func (t *typeScript) protoName(d protoreflect.Descriptor) string {
	return t.name("protobuf "+string(d.FullName()), string(d.Name()))
}

// protoField returns the type of a field of a state. A message that is not linked in is its bytes.
func (t *typeScript) protoField(full string) string {
	m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(full))
	if err != nil {
		return "Uint8Array"
	}
	t.proto(m.Descriptor())
	return t.protoName(m.Descriptor())
}

// proto declares a message and its parts.
func (t *typeScript) proto(d protoreflect.MessageDescriptor) {
	full := string(d.FullName())
	if _, known := t.protos[full]; known {
		return
	}
	t.protos[full] = "" // It may contain itself.
	var b strings.Builder
	fmt.Fprintf(&b, "/** The protobuf message %s. Unset fields have their zero values. */\nexport interface %s {\n", full, t.protoName(d))
	table := fmt.Sprintf("    %q: [\n", full)
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		optional := ""
		if f.HasPresence() && !f.IsList() {
			optional = "?"
		}
		fmt.Fprintf(&b, "  %s%s: %s;\n", f.JSONName(), optional, t.protoType(f))
		table += "      " + protoRow(f)
	}
	b.WriteString("}\n\n")
	t.protos[full] = b.String()
	t.tables = append(t.tables, table+"    ],\n")
}

// protoRow returns the table row of a field for the client's decoder.
func protoRow(f protoreflect.FieldDescriptor) string {
	p := protoForm(f)
	return fmt.Sprintf("{ no: %d, name: %q, kind: %q, repeated: %t, optional: %t, of: %q },\n", p.No, p.Name, p.Kind, p.Repeated, p.Optional, p.Of)
}

func (t *typeScript) protoType(f protoreflect.FieldDescriptor) string {
	one := t.protoScalar(f)
	if f.IsList() || f.IsMap() {
		return "Array<" + one + ">"
	}
	return one
}

func (t *typeScript) protoScalar(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.StringKind:
		return "string"
	case protoreflect.BytesKind:
		return "Uint8Array"
	case protoreflect.MessageKind, protoreflect.GroupKind:
		t.proto(f.Message())
		return t.protoName(f.Message())
	case protoreflect.EnumKind:
		t.enum(f.Enum())
		return t.protoName(f.Enum())
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "bigint"
	default:
		return "number"
	}
}

// enum declares an enum as an object of its values. A value unknown to the page may arrive.
func (t *typeScript) enum(d protoreflect.EnumDescriptor) {
	full, name := string(d.FullName()), t.protoName(d)
	var b strings.Builder
	fmt.Fprintf(&b, "/** The protobuf enum %s. */\nexport const %s = {\n", full, name)
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		fmt.Fprintf(&b, "  %s: %d,\n", v.Name(), v.Number())
	}
	fmt.Fprintf(&b, "} as const;\nexport type %s = number;\n\n", name)
	t.protos[full] = b.String()
}
