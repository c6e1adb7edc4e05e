package codec

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/netloop/netloop/internal/codec/quat"
)

// Type describes a value on the wire, without any Go type: each side sends its layout as Types. Two
// sides with equal Types write the same bytes.
type Type struct {
	Kind     Kind   // never Int or Uint, which are sent as Int64 and Uint64
	Num, Den uint64 // of Quant32, Quant64, Range32 and Range64: the step is Num/Den
	Low      int64  // of Range32 and Range64: the fewest steps
	High     int64  // and the most steps
	// String, Bytes, Slice, Map and Proto: the limit; ByteArray and Array: the length; Quat: the
	// bits
	Max    int
	Proto  string  // of Proto: the full name
	Elem   *Type   // of Array and Slice; of Map: a Struct of Key and, unless it is a set, Value
	Fields []Field // of Struct, in wire order
}

// Field is a field of a struct by its name on the wire.
type Field struct {
	Name string
	Type Type
}

// String returns the type text of docs/WIRE.md. Equal texts mean equal types. It also prints
// invalid types, which Check rejects.
func (t *Type) String() string {
	var b strings.Builder
	t.text(&b)
	return b.String()
}

func (t *Type) text(b *strings.Builder) {
	if t == nil {
		b.WriteString("nothing")
		return
	}
	switch t.Kind {
	case Quant32, Quant64:
		fmt.Fprintf(b, "%v quant=%d/%d", t.Kind, t.Num, t.Den)
	case Range32, Range64:
		fmt.Fprintf(b, "%v quant=%d/%d steps=%d:%d", t.Kind, t.Num, t.Den, t.Low, t.High)
	case Quat:
		fmt.Fprintf(b, "quat bits=%d", t.Max)
	case String, Bytes:
		fmt.Fprintf(b, "%v max=%d", t.Kind, t.Max)
	case Proto:
		fmt.Fprintf(b, "proto %s max=%d", t.Proto, t.Max)
	case ByteArray:
		fmt.Fprintf(b, "[%d]byte", t.Max)
	case Slice:
		b.WriteString("[]")
		t.Elem.text(b)
		fmt.Fprintf(b, " max=%d", t.Max)
	case Map:
		t.mapText(b)
	case Array:
		fmt.Fprintf(b, "[%d]", t.Max)
		t.Elem.text(b)
	case Struct:
		b.WriteString("{")
		for i := range t.Fields {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(t.Fields[i].Name + " ")
			t.Fields[i].Type.text(b)
		}
		b.WriteString("}")
	default:
		b.WriteString(t.Kind.String())
	}
}

func (t *Type) mapText(b *strings.Builder) {
	if !t.entries() {
		b.WriteString("map of nothing")
		return
	}
	open, f := "map[", t.Elem.Fields
	if len(f) == 1 {
		open = "set["
	}
	b.WriteString(open)
	f[0].Type.text(b)
	b.WriteString("]")
	if len(f) == 2 {
		f[1].Type.text(b)
	}
	fmt.Fprintf(b, " max=%d", t.Max)
}

// entries reports whether the elements of t, a Map, have the fields of a map entry: a key and,
// unless it is a set, a value.
func (t *Type) entries() bool {
	if t.Elem == nil || t.Elem.Kind != Struct {
		return false
	}
	f := t.Elem.Fields
	return (len(f) == 1 || len(f) == 2 && f[1].Name == entryValue) && f[0].Name == entryKey && f[0].Type.Kind.keys()
}

// Limits of a Type, so that a layout from a peer costs no more than a layout that a game declares.
const (
	// MaxName limits a field's name, in bytes: the handshake contains a table of them.
	MaxName = 64
	// MaxDepth limits the nesting of structs, arrays and slices.
	MaxDepth = 24
	// maxProto limits the full name of a protobuf message.
	maxProto = 256
	// maxNum and maxDen limit the two parts of a step: a step is above 2^-40 and below 2^20.
	maxNum = 1<<20 - 1
	maxDen = 1<<40 - 1
)

// validName reports whether a field may have the name on the wire: letters, digits and underscores,
// as an identifier, so that a type text is unambiguous.
func validName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return true
}

// Check returns an error if a Type sent by a peer is invalid.
func (t *Type) Check() error { return t.check(0) }

// lowestTerms reports whether a fraction cannot be reduced, so that equal steps have equal texts.
func lowestTerms(num, den uint64) bool {
	for den != 0 {
		num, den = den, num%den
	}
	return num == 1
}

func (t *Type) check(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("a type is nested deeper than %d levels", MaxDepth)
	}
	least, most := 0, 0 // of Max
	switch k := t.Kind; {
	case k == String || k == Bytes || k == Slice || k == Map || k == Proto:
		least, most = 1, largestMax
	case k == ByteArray || k == Array:
		most = largestMax
	case k == Quat:
		least, most = quat.MinBits, quat.MaxBits
	case k == Int || k == Uint || k == Invalid || k == endOfKinds || k > Struct:
		return fmt.Errorf("there is no kind %d of types", k)
	}
	if t.Max < least || t.Max > most {
		return fmt.Errorf("a limit of %d does not fit a %v", t.Max, t.Kind)
	}
	if quant := t.Kind.Steps(); quant != (t.Num != 0) || quant != (t.Den != 0) || t.Num > maxNum || t.Den > maxDen || quant && !lowestTerms(t.Num, t.Den) {
		return fmt.Errorf("a step of %d/%d does not fit a %v", t.Num, t.Den, t.Kind)
	}
	if limit := t.Kind.maxSteps(); t.Kind.ranged() != (t.Low < t.High) || !t.Kind.ranged() && (t.Low != 0 || t.High != 0) || t.Low < -limit || t.High > limit {
		return fmt.Errorf("a range of %d to %d steps does not fit a %v", t.Low, t.High, t.Kind)
	}
	if t.Kind == Proto != (t.Proto != "") || len(t.Proto) > maxProto {
		return fmt.Errorf("a %v of protobuf type %.*q", t.Kind, maxProto, t.Proto)
	}
	if t.Kind == Map && !t.entries() {
		return errors.New("a map whose elements are no entries")
	}
	if (t.Kind.list() || t.Kind == Array) != (t.Elem != nil) || t.Kind != Struct && len(t.Fields) > 0 {
		return fmt.Errorf("a %v with the parts of another type", t.Kind)
	}
	if t.Elem != nil {
		return t.Elem.check(depth + 1)
	}
	names := make(map[string]bool, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		if !validName(f.Name) || names[f.Name] {
			return fmt.Errorf("a field cannot be named %q, or not twice", f.Name)
		}
		names[f.Name] = true
		if err := f.Type.check(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
