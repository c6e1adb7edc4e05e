package codec

import (
	"fmt"
	"reflect"
)

// Mismatch is the error of a field with different types on the two sides, by its name on the wire.
type Mismatch struct {
	Field       string // the path below the struct, such as "Pos.X"
	Here, There string // the type texts
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("field %s is %s there, but %s here", m.Field, m.There, m.Here)
}

// Bind makes the plan that reads and writes the layout of the other side, with the struct type t of
// this side. Fields are matched by their names on the wire, at every level:
//
//   - A field of the layout alone is skipped by readers and written as zero. Captured Values
//     include it: they have the fields of the layout.
//   - A field of t alone is neither written nor changed.
//   - A field of both must be of the same kind, with the same step, range, bits or array length;
//     otherwise the error is a *Mismatch. The limit of a string, byte string or slice may differ:
//     that of the layout applies.
//
// The layout may be invalid, since the other side has sent it.
func Bind(t reflect.Type, layout Type, budget *Budget, e ...Encodings) (*Plan, error) {
	if err := layout.Check(); err != nil {
		return nil, err
	}
	if layout.Kind != Struct {
		return nil, fmt.Errorf("the layout is a %v, not a struct", layout.Kind)
	}
	own, w, err := walk(t, e)
	if err != nil {
		return nil, err
	}
	bound, err := bind(&layout, own, "")
	if err != nil {
		return nil, err
	}
	return w.compile(bound, budget)
}

// bind makes the node of a layout, with the offsets and Go types of own; own is nil if this side
// lacks the field.
func bind(t *Type, own *node, path string) (*node, error) {
	n := &node{kind: t.Kind, num: t.Num, den: t.Den, low: t.Low, high: t.High, max: t.Max, proto: t.Proto}
	if own != nil {
		if !t.fits(own) {
			here := own.describe()
			return nil, &Mismatch{Field: path, Here: here.String(), There: t.String()}
		}
		n.kind, n.typ, n.encoding = own.kind, own.typ, own.encoding
		n.lerp, n.jump = own.lerp, own.jump // This side decides the way of drawing.
	}
	if t.Kind == Map {
		n.key = entryKey
	}
	if t.Elem != nil {
		var elem *node
		if own != nil {
			elem = own.elem
		}
		var err error
		if n.elem, err = bind(t.Elem, elem, path+"[]"); err != nil {
			return nil, err
		}
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		there := nodeField{name: f.Name, path: f.Name}
		var value *node
		if own != nil {
			if here := own.field(f.Name); here != nil {
				there.off, there.path, value = here.off, here.path, here.node
			}
		}
		var err error
		if there.node, err = bind(&f.Type, value, join(path, f.Name)); err != nil {
			return nil, err
		}
		n.fields = append(n.fields, there)
	}
	return n, nil
}

// fits reports whether the type has the same kind, step and range as n, the field of this side,
// and the same Max if that is a fixed length. If Max is a limit, the two may differ. It does not
// compare elements and fields.
func (t *Type) fits(n *node) bool {
	if t.Kind != n.kind.onWire() || t.Num != n.num || t.Den != n.den || t.Low != n.low || t.High != n.high || t.Proto != n.proto {
		return false
	}
	if t.Kind == Map && len(t.Elem.Fields) != len(n.elem.fields) {
		return false // A set is not a map.
	}
	return t.Max == n.max || t.Kind == String || t.Kind == Bytes || t.Kind == Proto || t.Kind.list()
}
