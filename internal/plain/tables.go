package plain

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Class is a class of the server's tables.
type Class struct {
	Name   string
	Leaves []Leaf
}

// Leaf is one leaf of a flattened struct: what the tables say of its type.
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
		return nil, errors.New("plain: bytes that are no SchemaTables")
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
	for _, f := range fields {
		checkName(f.GetName())
		leaves = flatten(leaves, strings.TrimPrefix(path+"."+f.GetName(), "."), f.GetType(), level+1)
	}
	return leaves
}

// flatten appends the leaves of a type.
func flatten(leaves []Leaf, path string, t *netloopv1.Type, level int) []Leaf {
	if level > maxLevels {
		refuse("%s: types nested too deep", path)
	}
	switch t.GetKind() {
	case kindStruct:
		return leavesOf(leaves, path, t.GetFields(), level)
	case kindArray:
		for i := range t.GetMax() {
			leaves = flatten(leaves, path+"["+strconv.Itoa(int(i))+"]", t.GetElement(), level+1)
		}
		return leaves
	}
	l := Leaf{Name: path, Kind: t.GetKind(), Max: uint64(t.GetMax()), Num: t.GetStepNum(), Den: t.GetStepDen(),
		Low: t.GetLow(), High: t.GetHigh(), Proto: t.GetProto()}
	if l.Kind == kindSlice || l.Kind == kindMap {
		l.Element = flatten(nil, "", t.GetElement(), level+1)
	}
	checkLeaf(&l)
	if len(leaves) == maxLeaves {
		refuse("more than %d leaves", maxLeaves)
	}
	return append(leaves, l)
}

// checkLeaf refuses a type without what its kind needs.
func checkLeaf(l *Leaf) {
	ok := true
	switch l.Kind {
	case netloopv1.TypeKind_TYPE_KIND_UNSPECIFIED:
		ok = false
	case kindString, kindBytes, kindSlice, kindMap, kindProto:
		ok = l.Max >= 1 && l.Max <= 65536
	case kindArray8:
		ok = l.Max <= 65536
	case kindQuat:
		ok = l.Max >= 3 && l.Max <= 20
	case kindRange32, kindRange64:
		ok = l.stepped() && l.Low < l.High
	}
	if !ok {
		refuse("%s: a type that makes no sense", l.Name)
	}
}

// stepped tells whether the leaf is a float in steps.
func (l *Leaf) stepped() bool { return l.Den != 0 }

// ranged tells whether it also has a range.
func (l *Leaf) ranged() bool { return l.Kind == kindRange32 || l.Kind == kindRange64 }

// float tells whether the leaf is a float without steps.
func (l *Leaf) float() bool {
	return (l.Kind == kindFloat32 || l.Kind == kindFloat64) && !l.stepped()
}
