package refdecoder

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/testing/golden"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The examples of docs/WIRE.md, compared with their descriptions on the page.

func example(t *testing.T, name string) []byte {
	t.Helper()
	return golden.Example(t, "../../../docs/WIRE.md", name)
}

// kind and the functions after it make types for the tables of a test.
func kind(k netloopv1.TypeKind) *netloopv1.Type { return &netloopv1.Type{Kind: k} }

func limited(k netloopv1.TypeKind, limit uint32) *netloopv1.Type {
	return &netloopv1.Type{Kind: k, Max: limit}
}

func inSteps(k netloopv1.TypeKind, num, den uint64, low, high int64) *netloopv1.Type {
	return &netloopv1.Type{Kind: k, StepNum: num, StepDen: den, Low: low, High: high}
}

func listOf(k netloopv1.TypeKind, limit uint32, element *netloopv1.Type) *netloopv1.Type {
	return &netloopv1.Type{Kind: k, Max: limit, Element: element}
}

func structOf(fields ...*netloopv1.FieldTable) *netloopv1.Type {
	return &netloopv1.Type{Kind: kindStruct, Fields: fields}
}

func field(name string, t *netloopv1.Type) *netloopv1.FieldTable {
	return &netloopv1.FieldTable{Name: name, Type: t}
}

func classesOf(t *testing.T, fields ...*netloopv1.FieldTable) []Class {
	t.Helper()
	b, err := proto.Marshal(&netloopv1.SchemaTables{Classes: []*netloopv1.ClassTable{{Name: "c", Fields: fields}}})
	if err != nil {
		t.Fatal(err)
	}
	classes, err := ReadTables(b)
	if err != nil {
		t.Fatal(err)
	}
	return classes
}

func number(n int64) Value { return Value{Number: uint64(n)} }

func text(s string) Value { return Value{Bytes: []byte(s)} }

func TestPageSchemaPart(t *testing.T) {
	b := example(t, "frame-schema-part")
	var frame netloopv1.Frame
	if err := proto.Unmarshal(b[1:], &frame); err != nil {
		t.Fatal(err)
	}
	classes, err := ReadTables(frame.GetSchemaPart().GetData())
	if err != nil || len(classes) != 1 || classes[0].Name != "pos" || len(classes[0].Leaves) != 1 {
		t.Fatalf("%+v, %v", classes, err)
	}
	if l := classes[0].Leaves[0]; l.Name != "X" || l.Kind != kindFloat32 || l.Num != 1 || l.Den != 256 {
		t.Errorf("%+v", l)
	}
}

func TestPageBentPacket(t *testing.T) {
	f := kind(kindFloat32)
	classes := classesOf(t, field("X", f), field("V", f), field("W", f))
	float := func(f float32) Value { return number(int64(math.Float32bits(f))) }
	at := func(tick uint64, x, v float32) *Version {
		return &Version{Tick: tick, Fields: []Value{float(x), float(v), float(1)}}
	}
	r := NewReader(classes, 207)
	o := &Object{ID: 1, Lifetime: 200}
	o.Versions = []*Version{at(200, 0, 8), at(203, 2.25, -8), at(206, 9, 8)}
	r.shown[0] = o
	if _, err := r.Apply(example(t, "state-bent")); err != nil {
		t.Fatal(err)
	}
	if got := r.Objects()[0].Newest(); !Same(got.Fields, []Value{float(12.25), float(-8), float(1e30)}) {
		t.Errorf("%+v", *got)
	}
}

func TestPagePackets(t *testing.T) {
	quant := inSteps(kindFloat32, 1, 256, 0, 0)
	r := NewReader(classesOf(t, field("X", quant), field("Y", quant), field("Armed", kind(kindBool)), field("Name", limited(kindString, 8))), 100)
	for _, c := range []struct {
		name             string
		id, tick, behind uint64
		x, y, armed      int64
		text             string
		changed          uint64
		owner            uint64 // of slot 1; 99 if it was despawned
		y1               int64
	}{
		{"state-full", 1, 100, 0, 256, -128, 1, "ann", 100, 0, 0},
		{"state-delta", 2, 101, 0, 258, -128, 0, "bo", 101, 2, 0},
		{"state-repeat", 3, 103, 0, 258, 128, 0, "bo", 103, 2, 256},
		{"state-despawn", 4, 104, 0, 258, 128, 0, "bo", 103, 99, 0},
		{"state-digest", 5, 105, 0, 258, 128, 0, "bo", 103, 99, 0},
		{"state-older", 6, 108, 0, 258, 0, 0, "bo", 106, 99, 0},
	} {
		res, err := r.Apply(example(t, c.name))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if res.ID != c.id || res.Tick != c.tick || !res.Ack || !res.Whole {
			t.Errorf("%s: %+v", c.name, res)
		}
		all := r.Objects()
		v := all[0].Newest()
		if !Same(v.Fields, []Value{number(c.x), number(c.y), number(c.armed), text(c.text)}) || v.Owner != 7 || v.Tick != c.changed {
			t.Errorf("%s: slot 0 is %+v", c.name, *v)
		}
		if c.owner == 99 {
			if len(all) != 1 {
				t.Errorf("%s: %d objects", c.name, len(all))
			}
		} else if v = all[1].Newest(); !Same(v.Fields, []Value{number(0), number(c.y1), number(0), text("")}) || v.Owner != c.owner {
			t.Errorf("%s: slot 1 is %+v", c.name, *v)
		}
		if c.name == "state-digest" && (res.Digest != Equal || !res.Complete) {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

func TestPageMaskedPacket(t *testing.T) {
	r := NewReader(classesOf(t, field("X", kind(kindInt32)), field("Ammo", kind(kindInt32)), field("Name", limited(kindString, 8)), field("Y", kind(kindInt8))), 100)
	res, err := r.Apply(example(t, "state-masked"))
	if err != nil || res.Left != 0 || res.Total != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got, want := r.Objects()[0].hashed(&r.Classes[0]), example(t, "digest-masked"); string(got) != string(want) {
		t.Errorf("the digest is the hash of %x, want %x", got, want)
	}
	if v := r.Objects()[0].Newest(); !Same(v.Fields, []Value{number(5), number(0), text(""), number(-2)}) || v.Owner != 7 {
		t.Errorf("%+v", *v)
	}
}

func TestPageRecord(t *testing.T) {
	r := NewReader(classesOf(t, field("Text", limited(kindString, 2000))), 300)
	id, events, err := r.ApplyLarge(example(t, "state-record"))
	if err != nil || id != 1 || len(events) != 1 {
		t.Fatalf("%d, %v, %v", id, events, err)
	}
	o := r.Objects()[0]
	if v := o.Newest(); !Same(v.Fields, []Value{text("the quick brown fox jumps")}) || v.Owner != 7 || o.ID != 1<<32|1 || o.Lifetime != 301 || v.Tick != 301 {
		t.Errorf("%+v %+v", *o, *v)
	}
}

// readMessage reads a worked message and checks that writing it gives the same bytes.
func readMessage(t *testing.T, leaves []Leaf, name string) []Value {
	t.Helper()
	b := example(t, name)
	fields, err := ReadFields(b, leaves)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := AppendFields(nil, leaves, fields); string(got) != string(b) {
		t.Errorf("%s: it encodes to %x", name, got)
	}
	return fields
}

// readDifferences reads the differences of the leaves, all of them.
func readDifferences(t *testing.T, leaves []Leaf, base []Value, name string) (fields []Value) {
	t.Helper()
	var err error
	func() {
		defer caught(&err)
		r := &byteReader{example(t, name)}
		for i := range leaves {
			fields = append(fields, r.difference(&leaves[i], base[i]))
		}
		r.end()
	}()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return fields
}

func TestPageProto(t *testing.T) {
	said := &netloopv1.Type{Kind: kindProto, Proto: "arena.v1.Said", Max: 64}
	leaves := classesOf(t, field("Last", said), field("None", said))[0].Leaves
	if got := readMessage(t, leaves, "message-proto"); !got[0].Present || len(got[0].Bytes) != 9 || got[1].Present {
		t.Errorf("%+v", got)
	}
}

func TestPagePlain(t *testing.T) {
	leaves := classesOf(t, field("Target", kind(kindRef)), field("At", kind(kindInstant)), field("Damage", kind(kindInt16)),
		field("Angle", kind(kindFloat32)), field("Force", inSteps(kindFloat64, 1, 100, 0, 0)), field("Crit", kind(kindBool)),
		field("Tag", limited(kindArray8, 2)),
		field("Path", listOf(kindSlice, 64, structOf(field("X", kind(kindInt8)), field("Y", kind(kindInt8))))),
		field("Note", limited(kindString, 128)))[0].Leaves
	want := []Value{number(1<<32 | 3), number(1500), number(-3), number(0x3f000000), number(1234), number(1), text("\xca\xfe"),
		{Elements: [][]Value{{number(1), number(-1)}, {number(2), number(0)}}}, text("hé")}
	if got := readMessage(t, leaves, "message-plain"); !Same(got, want) {
		t.Errorf("%+v", got)
	}
	if f := leaves[4].Float(want[4]); f != 12.34 {
		t.Errorf("force %v", f)
	}
}

func TestPageLists(t *testing.T) {
	leaves := classesOf(t,
		field("Items", listOf(kindSlice, 64, structOf(field("ID", kind(kindUint16)), field("Count", kind(kindInt8))))),
		field("Ammo", listOf(kindMap, 64, structOf(field("Key", limited(kindString, 128)), field("Value", kind(kindUint8))))),
		field("Seen", listOf(kindMap, 64, structOf(field("Key", kind(kindInt16))))))[0].Leaves
	list := func(elements ...[]Value) Value { return Value{Elements: elements} }
	pair := func(a, b int64) []Value { return []Value{number(a), number(b)} }
	ammo := func(s string, n int64) []Value { return []Value{text(s), number(n)} }
	got := readMessage(t, leaves, "message-lists")
	if !Same(got, []Value{
		list(pair(1, 1), pair(2, 2), pair(3, 3), pair(4, 4), pair(5, 5), pair(6, 6)),
		list(ammo("arrow", 20), ammo("bolt", 5), ammo("stone", 9)),
		list([]Value{number(-4)}, []Value{number(3)}),
	}) {
		t.Errorf("%+v", got)
	}
	got = readDifferences(t, leaves, got, "differences-lists")
	if !Same(got, []Value{
		list(pair(2, 2), pair(3, 7), pair(4, 4), pair(5, 5), pair(6, 6), pair(9, -1)),
		list(ammo("arrow", 19), ammo("stone", 9)),
		list([]Value{number(8)}),
	}) {
		t.Errorf("%+v", got)
	}
}

func TestPageSteps(t *testing.T) {
	leaves := classesOf(t, field("X", inSteps(kindRange32, 1, 8, -800, 800)), field("Heat", inSteps(kindRange64, 1, 10, 200, 900)),
		field("Q", limited(kindQuat, 10)), field("None", limited(kindQuat, 4)))[0].Leaves
	got := readMessage(t, leaves, "message-steps")
	if x, heat := leaves[0].Float(got[0]), leaves[1].Float(got[1]); x != -99.5 || heat != 36.6 {
		t.Errorf("X %v, heat %v", x, heat)
	}
	if at, s := leaves[2].steps(got[2].Number); at != 3 || s != [3]int64{361, -361, -72} || got[3].Number != 0 {
		t.Errorf("largest %d, %v", at, s)
	}
	later := readDifferences(t, leaves[:3], got[:3], "differences-steps")
	if at, s := leaves[2].steps(later[2].Number); at != 3 || s != [3]int64{361, -361, -74} ||
		later[0].Number != got[0].Number+4 || later[1].Number != got[1].Number-1 {
		t.Errorf("%+v", later)
	}
}
