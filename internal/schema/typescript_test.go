package schema

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/netloop/netloop/internal/netvar/state"
)

// A TypeScript name has the letters of a wire name, and its digits after the first letter.
func TestIdentifiersAreTypeScriptNames(t *testing.T) {
	for wire, want := range map[string]string{
		"ship": "Ship", "lobby.sit": "LobbySit", "3d-view2": "DView2", "wave 2b": "Wave2b", "": "Unnamed", "42": "Unnamed",
	} {
		if got := identifier(wire); got != want {
			t.Errorf("%q is %q, want %q", wire, got, want)
		}
	}
}

// A field of a protobuf message is told to pages by its number, name, kind and type; a group, which
// only old files have, is read as the message that it is.
func TestProtobufFieldsAreToldToPages(t *testing.T) {
	optional, repeated := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	field := func(name string, number int32, label descriptorpb.FieldDescriptorProto_Label, kind descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Label: &label, Type: &kind}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("old.proto"), Syntax: proto.String("proto2"), Package: proto.String("old"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name:       proto.String("Ship"),
			NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("Crew")}},
			Field: []*descriptorpb.FieldDescriptorProto{
				field("crew", 1, optional, descriptorpb.FieldDescriptorProto_TYPE_GROUP, ".old.Ship.Crew"),
				field("next_ship", 2, optional, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".old.Ship"),
				field("guns", 300, repeated, descriptorpb.FieldDescriptorProto_TYPE_SINT64, ""),
				field("hull", 4, optional, descriptorpb.FieldDescriptorProto_TYPE_BYTES, ""),
				field("mass", 5, optional, descriptorpb.FieldDescriptorProto_TYPE_FIXED32, ""),
				field("afloat", 6, optional, descriptorpb.FieldDescriptorProto_TYPE_BOOL, ""),
			},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ship := file.Messages().Get(0)
	ts := &typeScript{schema: New("old", 1, 0), names: map[string]string{}, protos: map[string]string{}}
	for i, want := range []struct{ row, typ string }{
		{`{ no: 1, name: "crew", kind: "message", repeated: false, optional: true, of: "old.Ship.Crew" },`, "Crew"},
		{`{ no: 2, name: "nextShip", kind: "message", repeated: false, optional: true, of: "old.Ship" },`, "Ship"},
		{`{ no: 300, name: "guns", kind: "sint64", repeated: true, optional: false, of: "" },`, "Array<bigint>"},
		{`{ no: 4, name: "hull", kind: "bytes", repeated: false, optional: true, of: "" },`, "Uint8Array"},
		{`{ no: 5, name: "mass", kind: "fixed32", repeated: false, optional: true, of: "" },`, "number"},
		{`{ no: 6, name: "afloat", kind: "bool", repeated: false, optional: true, of: "" },`, "boolean"},
	} {
		f := ship.Fields().Get(i)
		if got := protoRow(f); got != want.row+"\n" {
			t.Errorf("its row is %s, want %s", got, want.row)
		}
		if got := ts.protoType(f); got != want.typ {
			t.Errorf("%s is a %s, want %s", f.Name(), got, want.typ)
		}
	}
	want := "/** The protobuf message old.Ship. Unset fields have their zero values. */\nexport interface Ship {\n" +
		"  crew?: Crew;\n  nextShip?: Ship;\n  guns: Array<bigint>;\n  hull?: Uint8Array;\n  mass?: number;\n  afloat?: boolean;\n}\n\n"
	if got := ts.protos["old.Ship"]; got != want {
		t.Errorf("it is declared as\n%swant\n%s", got, want)
	}
	if len(ts.tables) != 2 {
		t.Errorf("%d tables of two messages", len(ts.tables))
	}
	if got := ts.protoField("old.Unknown"); got != "Uint8Array" {
		t.Errorf("a message that is not linked in is a %s", got)
	}
}

// A page contains the read rule of a field only if not all clients may read it.
func TestAPageHasTheRulesOfRestrictedFields(t *testing.T) {
	c, err := state.NewClass("ship", reflect.TypeFor[struct {
		X    int32
		Name string `net:"read=all"`
		Gold int32  `net:"read=owner"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rules(c), map[string]string{"Gold": "owner"}; !maps.Equal(got, want) {
		t.Errorf("the rules are %v, want %v", got, want)
	}
}

// TestAPageIsToldUnusualInterpolations has a class with none, and one with a single field that is
// not interpolated as its kind is.
func TestAPageIsToldUnusualInterpolations(t *testing.T) {
	for want, fields := range map[string]reflect.Type{
		"": reflect.TypeFor[struct {
			X float32
			N int8
		}](),
		"      lerp: { \"N\": \"linear\" },\n": reflect.TypeFor[struct {
			X float32
			N int8 `net:"lerp=linear"`
		}](),
	} {
		c, err := state.NewClass("ship", fields)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		writeClass(&b, c, false)
		if _, after, _ := strings.Cut(b.String(), "      },\n"); after != want+"    },\n" {
			t.Errorf("after its fields: %s, want %s", after, want)
		}
	}
}
