package refdecoder

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Class is a class of the server's tables.
type Class struct {
	Name   string
	Leaves []Leaf
}

// Leaf is one leaf of a flattened struct, with its type.
type Leaf struct {
	Name      string
	Kind      netloopv1.TypeKind
	Max       uint64
	Num, Den  uint64
	Low, High int64
	Proto     string
	Element   []Leaf // of a slice, map or set
}

const (
	kindBool    = netloopv1.TypeKind_TYPE_KIND_BOOL
	kindInt8    = netloopv1.TypeKind_TYPE_KIND_INT8
	kindInt16   = netloopv1.TypeKind_TYPE_KIND_INT16
	kindInt32   = netloopv1.TypeKind_TYPE_KIND_INT32
	kindInt64   = netloopv1.TypeKind_TYPE_KIND_INT64
	kindUint8   = netloopv1.TypeKind_TYPE_KIND_UINT8
	kindUint16  = netloopv1.TypeKind_TYPE_KIND_UINT16
	kindUint32  = netloopv1.TypeKind_TYPE_KIND_UINT32
	kindUint64  = netloopv1.TypeKind_TYPE_KIND_UINT64
	kindFloat32 = netloopv1.TypeKind_TYPE_KIND_FLOAT32
	kindFloat64 = netloopv1.TypeKind_TYPE_KIND_FLOAT64
	kindRef     = netloopv1.TypeKind_TYPE_KIND_REF
	kindInstant = netloopv1.TypeKind_TYPE_KIND_INSTANT
	kindString  = netloopv1.TypeKind_TYPE_KIND_STRING
	kindBytes   = netloopv1.TypeKind_TYPE_KIND_BYTES
	kindArray8  = netloopv1.TypeKind_TYPE_KIND_BYTE_ARRAY
	kindArray   = netloopv1.TypeKind_TYPE_KIND_ARRAY
	kindSlice   = netloopv1.TypeKind_TYPE_KIND_SLICE
	kindStruct  = netloopv1.TypeKind_TYPE_KIND_STRUCT
	kindProto   = netloopv1.TypeKind_TYPE_KIND_PROTO
	kindRange32 = netloopv1.TypeKind_TYPE_KIND_RANGE32
	kindRange64 = netloopv1.TypeKind_TYPE_KIND_RANGE64
	kindQuat    = netloopv1.TypeKind_TYPE_KIND_QUAT
	kindMap     = netloopv1.TypeKind_TYPE_KIND_MAP
)

const (
	maxLeaves = 256 // of a class or of an element
	maxLevels = 24
)

// ReadTables reads the classes of a server from the bytes of its SchemaTables.
func ReadTables(b []byte) (classes []Class, err error) {
	defer caught(&err)
	var tables netloopv1.SchemaTables
	if proto.Unmarshal(b, &tables) != nil {
		return nil, errors.New("refdecoder: the bytes are no SchemaTables")
	}
	for _, c := range tables.GetClasses() {
		for _, other := range classes {
			if other.Name == c.GetName() {
				refuse("a class that is there twice")
			}
		}
		checkName(c.GetName())
		classes = append(classes, Class{c.GetName(), leavesOf(nil, "", c.GetFields(), 1)})
	}
	return classes, nil
}

func checkName(name string) {
	if name == "" || len(name) > 64 {
		refuse("a name of %d bytes", len(name))
	}
}

// leavesOf appends the leaves of fields.
func leavesOf(leaves []Leaf, path string, fields []*netloopv1.FieldTable, level int) []Leaf {
	for i, f := range fields {
		checkName(f.GetName())
		for i, c := range f.GetName() {
			if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
				refuse("%s: a field that is called %q", path, f.GetName())
			}
		}
		for _, other := range fields[:i] {
			if other.GetName() == f.GetName() {
				refuse("%s: two fields %s", path, f.GetName())
			}
		}
		leaves = flatten(leaves, strings.TrimPrefix(path+"."+f.GetName(), "."), f.GetType(), level+1)
	}
	return leaves
}

// flatten appends the leaves of a type.
func flatten(leaves []Leaf, path string, t *netloopv1.Type, level int) []Leaf {
	if level > maxLevels {
		refuse("%s: types nested too deep", path)
	}
	checkType(path, t)
	switch t.GetKind() {
	case kindStruct:
		return leavesOf(leaves, path, t.GetFields(), level)
	case kindArray:
		if t.GetMax() == 0 {
			flatten(nil, path, t.GetElement(), level+1) // must be valid also if there is none of it
		}
		for i := range t.GetMax() {
			before := len(leaves)
			leaves = flatten(leaves, path+"["+strconv.Itoa(int(i))+"]", t.GetElement(), level+1)
			if len(leaves) == before {
				break // no leaves, however many
			}
		}
		return leaves
	}
	l := Leaf{Name: path, Kind: t.GetKind(), Max: uint64(t.GetMax()), Num: t.GetStepNum(), Den: t.GetStepDen(),
		Low: t.GetLow(), High: t.GetHigh(), Proto: t.GetProto()}
	if l.Kind == kindSlice || l.Kind == kindMap {
		l.Element = flatten(nil, "", t.GetElement(), level+1)
		if !slices.ContainsFunc(l.Element, func(e Leaf) bool { return e.Kind != kindArray8 || e.Max > 0 }) {
			refuse("%s: elements of no bytes", path)
		}
	}
	if len(leaves) == maxLeaves {
		refuse("more than %d leaves", maxLeaves)
	}
	return append(leaves, l)
}

// checkType refuses a type that lacks a part of its kind, or has another part.
func checkType(path string, t *netloopv1.Type) {
	need := func(ok bool, what string) {
		if !ok {
			refuse("%s: %v %s", path, t.GetKind(), what)
		}
	}
	k := t.GetKind()
	need(k >= kindBool && k <= kindMap, "is no kind")
	most, least := uint32(0), uint32(0)
	switch k {
	case kindString, kindBytes, kindSlice, kindMap, kindProto:
		least, most = 1, 65536
	case kindArray8, kindArray:
		most = 65536
	case kindQuat:
		least, most = 3, 20
	}
	need(t.GetMax() >= least && t.GetMax() <= most, "has another max")
	need((t.GetElement() != nil) == (k == kindArray || k == kindSlice || k == kindMap), "and elements")
	need(k == kindStruct || len(t.GetFields()) == 0, "and fields")
	need((t.GetProto() != "") == (k == kindProto) && len(t.GetProto()) <= 256, "and the name of a message")
	ranged := k == kindRange32 || k == kindRange64
	if num, den := t.GetStepNum(), t.GetStepDen(); num != 0 || den != 0 {
		need(ranged || k == kindFloat32 || k == kindFloat64, "and a step")
		need(num >= 1 && num < 1<<20 && den >= 1 && den < 1<<40, "has another step")
		need(gcd(num, den) == 1, "has a step that is not in lowest terms")
	} else {
		need(!ranged, "has no step")
	}
	bound := int64(1<<31 - 1)
	if k == kindRange64 {
		bound = 1 << 53
	}
	if ranged {
		need(t.GetLow() < t.GetHigh() && t.GetLow() >= -bound && t.GetHigh() <= bound, "has another range")
	} else {
		need(t.GetLow() == 0 && t.GetHigh() == 0, "and a range")
	}
	if k == kindMap {
		e := t.GetElement()
		f := e.GetFields()
		need(e.GetKind() == kindStruct && len(f) >= 1 && len(f) <= 2, "has no entries")
		need(f[0].GetName() == "Key" && (len(f) == 1 || f[1].GetName() == "Value"), "has other entries")
		key := f[0].GetType().GetKind()
		need(key >= kindInt8 && key <= kindUint64 || key == kindRef || key == kindString, "has another key")
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// stepped reports whether the leaf is a float in steps.
func (l *Leaf) stepped() bool { return l.Den != 0 }

// ranged reports whether the leaf is a float in steps with a range.
func (l *Leaf) ranged() bool { return l.Kind == kindRange32 || l.Kind == kindRange64 }

// float reports whether the leaf is a float without steps.
func (l *Leaf) float() bool {
	return (l.Kind == kindFloat32 || l.Kind == kindFloat64) && !l.stepped()
}
