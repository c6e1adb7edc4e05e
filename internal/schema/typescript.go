package schema

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// TypeScript writes the schema for the client of browsers: types of all declarations, and a value
// with the data that a server's tables lack, such as the interpolation of a number. from is the
// module from which the output imports the client.
func (s *Schema) TypeScript(w io.Writer, from string) error {
	t := typeScript{schema: s, names: map[string]string{}, protos: map[string]string{}}
	body := t.declarations() + t.shape() + t.limits() + t.value()
	t.printf("// The schema of %q %d.%d, written by \"schema --ts\". Do not edit.\n\n", s.Name, s.Major, s.Minor)
	t.printf("import type { Schema } from %q;\n", from)
	if len(t.tables) > 0 {
		t.printf("import { protobufCodecs } from %q;\n", siblingModule(from, "protobuf"))
	}
	t.printf("\n")
	for _, name := range slices.Sorted(maps.Keys(t.protos)) {
		t.printf("%s", t.protos[name])
	}
	_, err := io.WriteString(w, t.out.String()+body)
	return err
}

// siblingModule returns another module of the client's package, for code that only some pages need.
func siblingModule(from, name string) string {
	if dir, isFile := strings.CutSuffix(from, ".js"); isFile {
		return dir[:strings.LastIndex(dir, "/")+1] + name + ".js"
	}
	return from + "/" + name
}

// typeScript is the output for a schema so far.
type typeScript struct {
	schema *Schema
	out    strings.Builder
	names  map[string]string // the declaration with each type name
	protos map[string]string // declarations of protobuf messages and enums, by their full names
	tables []string          // tables of these, by which the client decodes
}

func (t *typeScript) printf(format string, args ...any) { fmt.Fprintf(&t.out, format, args...) }

// name returns a unique name for a type, the requested one if it is free.
func (t *typeScript) name(of, wish string) string {
	wish = identifier(wish)
	name := wish
	for n := 2; ; n++ {
		if other, taken := t.names[name]; !taken || other == of {
			t.names[name] = of
			return name
		}
		name = wish + strconv.Itoa(n)
	}
}

// identifier converts a text to a TypeScript name with a capital letter.
func identifier(s string) string {
	var b strings.Builder
	up := true
	for _, r := range s {
		if !unicode.IsLetter(r) && (!unicode.IsDigit(r) || b.Len() == 0) {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		b.WriteRune(r)
		up = false
	}
	return cmp.Or(b.String(), "Unnamed")
}

// declarations returns the types of classes and messages.
func (t *typeScript) declarations() string {
	var b strings.Builder
	for _, c := range t.schema.classes {
		layout := c.Layout()
		fmt.Fprintf(&b, "/** Objects of the class %q. */\n", c.Name())
		b.WriteString(t.declare(t.className(c), layout.Fields, rules(c)))
	}
	for _, m := range t.schema.methods {
		b.WriteString(t.message(m.Queue.Name, &m.In))
		if m.Queue.Call {
			b.WriteString(t.message(m.Queue.Name, &m.Out))
		}
	}
	if in := t.schema.input; in != nil {
		b.WriteString(t.message("input", &in.codec))
	}
	return b.String()
}

func (t *typeScript) className(c *state.Class) string {
	return t.name("class "+c.Name(), cmp.Or(c.Type().Name(), c.Name()))
}

// message declares a plain struct that was not declared before, and records a protobuf message.
func (t *typeScript) message(of string, c *Codec) string {
	if c.plan == nil {
		t.proto(c.New().(proto.Message).ProtoReflect().Descriptor())
		return ""
	}
	known := len(t.names)
	name := t.messageName(c)
	if len(t.names) == known {
		return ""
	}
	layout := c.plan.Layout()
	return fmt.Sprintf("/** The payload of %q. */\n", of) + t.declare(name, layout.Fields, nil)
}

// messageName returns the type of a message. One Go type has one name.
func (t *typeScript) messageName(c *Codec) string {
	if c.plan == nil {
		return t.protoName(c.New().(proto.Message).ProtoReflect().Descriptor())
	}
	return t.name("message "+c.plan.Type().String()+c.signature(), c.Name)
}

// rules returns the read rules of the fields of a class, for fields that not all clients may read.
func rules(c *state.Class) map[string]string {
	read := map[string]string{}
	paths := wirePaths(c.Layout())
	for i, leaf := range c.DescribeLeaves() {
		if leaf.Read != "" {
			field, _, _ := strings.Cut(paths[i], ".")
			read[field] = leaf.Read
		}
	}
	return read
}

// declare writes an interface with the type texts as comments: they hold the limits.
func (t *typeScript) declare(name string, fields []codec.Field, read map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "export interface %s {\n", name)
	for i := range fields {
		f := &fields[i]
		fmt.Fprintf(&b, "  /** %s%s */\n", f.Type.String(), readers(read[f.Name]))
		fmt.Fprintf(&b, "  %s: %s;\n", f.Name, t.typeOf(&f.Type))
	}
	b.WriteString("}\n\n")
	return b.String()
}

func readers(rule string) string {
	if rule == "" {
		return ""
	}
	return ", read by: " + rule
}

// typeOf returns the TypeScript type of a value.
func (t *typeScript) typeOf(of *codec.Type) string {
	switch of.Kind {
	case codec.Bool:
		return "boolean"
	case codec.Int64, codec.Uint64, codec.InstantKind:
		return "bigint"
	case codec.Quat:
		return "[number, number, number, number]"
	case codec.String:
		return "string"
	case codec.Bytes, codec.ByteArray:
		return "Uint8Array"
	case codec.Array, codec.Slice:
		return "Array<" + t.typeOf(of.Elem) + ">"
	case codec.Map:
		if entry := of.Elem.Fields; len(entry) == 2 {
			return "Map<" + t.typeOf(&entry[0].Type) + ", " + t.typeOf(&entry[1].Type) + ">"
		}
		return "Set<" + t.typeOf(&of.Elem.Fields[0].Type) + ">"
	case codec.Proto:
		return t.protoField(of.Proto) + " | null"
	case codec.Struct:
		parts := make([]string, len(of.Fields))
		for i := range of.Fields {
			parts[i] = of.Fields[i].Name + ": " + t.typeOf(&of.Fields[i].Type)
		}
		return "{ " + strings.Join(parts, "; ") + " }"
	default:
		return "number"
	}
}

// shape returns the interface of the whole game: the types of its classes, RPCs, calls and input.
func (t *typeScript) shape() string {
	var b strings.Builder
	game := t.name("the game", t.schema.Name)
	fmt.Fprintf(&b, "/** The types of the game, by the names that they have on the wire. */\nexport interface %s {\n  classes: {\n", game)
	for _, c := range t.schema.classes {
		fmt.Fprintf(&b, "    %q: %s;\n", c.Name(), t.className(c))
	}
	b.WriteString("  };\n  rpcs: {\n")
	for _, m := range t.schema.methods {
		if !m.Queue.Call {
			fmt.Fprintf(&b, "    %q: %s;\n", m.Queue.Name, t.messageName(&m.In))
		}
	}
	b.WriteString("  };\n  calls: {\n")
	for _, m := range t.schema.methods {
		if m.Queue.Call {
			fmt.Fprintf(&b, "    %q: { question: %s; answer: %s };\n", m.Queue.Name, t.messageName(&m.In), t.messageName(&m.Out))
		}
	}
	input := "undefined"
	if in := t.schema.input; in != nil {
		input = t.messageName(&in.codec)
	}
	fmt.Fprintf(&b, "  };\n  input: %s;\n}\n\n", input)
	return b.String()
}

// limits returns the maximal lengths of texts and lists, for the forms of a page.
func (t *typeScript) limits() string {
	var b strings.Builder
	b.WriteString("/** The maximum bytes of texts and elements of lists, by class or method and field. */\nexport const limits = {\n")
	for _, c := range t.schema.classes {
		writeLimits(&b, c.Name(), c.Layout())
	}
	for _, m := range t.schema.methods {
		if m.In.plan != nil {
			writeLimits(&b, m.Queue.Name, m.In.plan.Layout())
		}
	}
	b.WriteString("} as const;\n\n")
	return b.String()
}

func writeLimits(b *strings.Builder, name string, layout codec.Type) {
	var all []string
	for i := range layout.Fields {
		switch f := &layout.Fields[i]; f.Type.Kind {
		case codec.String, codec.Bytes, codec.Slice, codec.Map, codec.Proto:
			all = append(all, fmt.Sprintf("%s: %d", f.Name, f.Type.Max))
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(b, "  %q: { %s },\n", name, strings.Join(all, ", "))
	}
}

// value returns the schema value of the client.
func (t *typeScript) value() string {
	var b strings.Builder
	s := t.schema
	fmt.Fprintf(&b, "/** The schema for connect. */\nexport const schema: Schema<%s> = {\n", t.name("the game", s.Name))
	fmt.Fprintf(&b, "  name: %q,\n  major: %d,\n  minor: %d,\n  classes: {\n", s.Name, s.Major, s.Minor)
	for _, c := range s.classes {
		writeClass(&b, c, slices.Contains(t.schema.predicted, c))
	}
	b.WriteString("  },\n  methods: {\n")
	for _, m := range s.methods {
		fmt.Fprintf(&b, "    %q: { stages: [%s], message: %q", m.Queue.Name, stages(m), m.In.signature())
		if m.Queue.Call {
			fmt.Fprintf(&b, ", answer: %q, timeoutMs: %d", m.Out.signature(), m.Timeout.Milliseconds())
		}
		b.WriteString(" },\n")
	}
	b.WriteString("  },\n")
	if s.input != nil {
		fmt.Fprintf(&b, "  input: %q,\n", s.input.codec.signature())
	}
	if len(t.tables) > 0 {
		fmt.Fprintf(&b, "  protobuf: protobufCodecs({\n%s  }),\n", strings.Join(t.tables, ""))
	}
	b.WriteString("};\n")
	return b.String()
}

func stages(m *Method) string {
	var all []string
	for _, s := range m.Queue.Stages {
		all = append(all, strconv.Itoa(int(rpcqueue.WireStage(s))))
	}
	return strings.Join(all, ", ")
}

// writeClass writes a class with its interpolations, unless they are the default of their kinds.
func writeClass(b *strings.Builder, c *state.Class, predicted bool) {
	layout := c.Layout()
	fmt.Fprintf(b, "    %q: {\n      fields: {\n", c.Name())
	born := ""
	for i := range layout.Fields {
		f := &layout.Fields[i]
		fmt.Fprintf(b, "        %s: %q,\n", f.Name, f.Type.String())
		if f.Type.String() == "{Step uint64; N uint8}" {
			born = f.Name
		}
	}
	b.WriteString("      },\n")
	paths := wirePaths(layout)
	var lerps, teleports []string
	for i, leaf := range c.DescribeLeaves() {
		if leaf.Lerp != defaultLerp(leaf.Type) {
			lerps = append(lerps, fmt.Sprintf("%q: %q", paths[i], leaf.Lerp.String()))
		}
		if leaf.Teleport {
			teleports = append(teleports, strconv.Quote(paths[i]))
		}
	}
	if len(lerps) > 0 {
		fmt.Fprintf(b, "      lerp: { %s },\n", strings.Join(lerps, ", "))
	}
	if len(teleports) > 0 {
		fmt.Fprintf(b, "      teleport: [%s],\n", strings.Join(teleports, ", "))
	}
	if predicted {
		b.WriteString("      predicted: true,\n")
	}
	if born != "" {
		fmt.Fprintf(b, "      born: %q,\n", born)
	}
	b.WriteString("    },\n")
}

// defaultLerp returns the default interpolation of a kind.
func defaultLerp(kind string) codec.Lerp {
	switch {
	case strings.HasPrefix(kind, "float"):
		return codec.LerpLinear
	case kind == codec.Quat.String():
		return codec.LerpRotation
	}
	return codec.LerpStep
}

// wirePaths returns the paths of the leaves of a struct, by their names on the wire.
func wirePaths(t codec.Type) (all []string) {
	parts := t.Fields
	switch t.Kind {
	case codec.Struct:
	case codec.Array:
		for i := range t.Max {
			parts = append(parts, codec.Field{Name: strconv.Itoa(i), Type: *t.Elem})
		}
	default:
		return []string{""}
	}
	for _, part := range parts {
		for _, path := range wirePaths(part.Type) {
			all = append(all, strings.TrimSuffix(part.Name+"."+path, "."))
		}
	}
	return all
}
