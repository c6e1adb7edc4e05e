package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Ref is a reference to a replicated object; 0 refers to nothing. The codec also recognises a
// struct whose only named field is an unexported Ref, so that a public type can wrap it.
type Ref struct{ ID uint64 }

// FieldInfo describes one field of the struct for the class table and the fingerprint: equal
// texts mean that one side can read what the other writes.
type FieldInfo struct{ Name, Type string }

// leaf is one scalar, string, byte string or slice of the flattened struct.
type leaf struct {
	kind      Kind
	pos       int // index among the words or among the blobs
	off       uintptr
	low, span uint64 // of a word: it is from low to low+span, as two's complement
	num, den  float64
	limit     int64 // of a quantised value, in steps, either sign
	max       int
	name      string // path below the struct, for errors: "Pos.X", "Items[].Name"
	elem      *Plan  // of a Slice
	typ       reflect.Type
}

// Plan is the compiled form of one struct type. It never changes after Compile and may be
// used by any number of goroutines at once.
type Plan struct {
	typ    reflect.Type
	leaves []leaf
	words  int
	byWord []uint16 // which leaf a word belongs to
	blobs  int
	byBlob []uint16
	local  bool // has slices somewhere: a plain copy would share memory
	fields []FieldInfo
	least  int // fewest wire bytes of one value
	size   uintptr
}

// Compile makes the plan of struct type t. The error names the field and says what to do.
func Compile(t reflect.Type) (*Plan, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("codec: %v is not a struct; declare one with the fields to send", t)
	}
	c := compiler{root: t.Name()}
	if c.root == "" {
		c.root = "struct"
	}
	return c.plan(t, "", tag{}, true)
}

// compiler walks one type. The stack of types being walked finds recursion, which only a
// slice can make.
type compiler struct {
	root  string
	stack []reflect.Type
}

func (c *compiler) fail(path string, format string, a ...any) error {
	return fmt.Errorf("codec: %s%s: %s", c.root, dotted(path), fmt.Sprintf(format, a...))
}

func dotted(path string) string {
	if path == "" {
		return ""
	}
	return "." + path
}

func (c *compiler) plan(t reflect.Type, path string, g tag, top bool) (*Plan, error) {
	p := &Plan{typ: t, size: t.Size()}
	if top {
		text, err := c.fieldsOf(p, t, path, 0, g)
		if err != nil {
			return nil, err
		}
		p.fields = text
	} else {
		text, err := c.add(p, t, path, 0, g)
		if err != nil {
			return nil, err
		}
		p.fields = []FieldInfo{{Type: text}}
	}
	for i := range p.leaves {
		p.least += p.leaves[i].minWire()
		if k := p.leaves[i].kind; k == Slice || k == Bytes {
			p.local = true
		}
	}
	return p, nil
}

// fieldsOf adds the fields of struct t, which lies at off, and returns their descriptions.
func (c *compiler) fieldsOf(p *Plan, t reflect.Type, path string, off uintptr, g tag) ([]FieldInfo, error) {
	if slices.Contains(c.stack, t) {
		return nil, c.fail(path, "%v contains itself; refer to other objects by Ref or by index", t)
	}
	c.stack = append(c.stack, t)
	defer func() { c.stack = c.stack[:len(c.stack)-1] }()
	var infos []FieldInfo
	for i := range t.NumField() {
		f := t.Field(i)
		sub := f.Name
		if path != "" {
			sub = path + "." + f.Name
		}
		text, set := f.Tag.Lookup("net")
		own, err := parseTag(text)
		if err != nil {
			return nil, c.fail(sub, "%v", err)
		}
		if own.skip {
			continue
		}
		if !f.IsExported() {
			return nil, c.fail(sub, "unexported field; export it, or tag it `net:\"-\"` to keep it local")
		}
		if own.quant == "" { // a step given further out holds for the floats inside
			own.num, own.den, own.quant = g.num, g.den, g.quant
			set = false
		}
		before := len(p.leaves)
		desc, err := c.add(p, f.Type, sub, off+f.Offset, own)
		if err != nil {
			return nil, err
		}
		if set && !quantUsed(p.leaves[before:]) {
			return nil, c.fail(sub, "quant on a field without floats; remove it")
		}
		infos = append(infos, FieldInfo{Name: f.Name, Type: desc})
	}
	return infos, nil
}

func quantUsed(leaves []leaf) bool {
	for i := range leaves {
		l := &leaves[i]
		if l.kind == Quant32 || l.kind == Quant64 || l.kind == Slice && quantUsed(l.elem.leaves) {
			return true
		}
	}
	return false
}

var (
	refType     = reflect.TypeFor[Ref]()
	instantType = reflect.TypeFor[Instant]()
)

// wrapped returns the recognised type that t is or wraps, or nil.
func wrapped(t reflect.Type) reflect.Type {
	if t == refType || t == instantType {
		return t
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var found reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Name == "_" && f.Type.Size() == 0: // a phantom field that carries a type parameter
		case found == nil && f.Offset == 0 && !f.IsExported() && (f.Type == refType || f.Type == instantType):
			found = f.Type
		default:
			return nil
		}
	}
	return found
}

// add appends the leaves of one value of type t at off and returns the text of its type.
func (c *compiler) add(p *Plan, t reflect.Type, path string, off uintptr, g tag) (string, error) {
	if w := wrapped(t); w != nil {
		k := RefKind
		if w == instantType {
			k = InstantKind
		}
		return c.leaf(p, leaf{name: path, kind: k, off: off}, g)
	}
	if k, ok := scalars[t.Kind()]; ok {
		l := leaf{name: path, kind: k, off: off}
		if g.quant != "" && (k == Float32 || k == Float64) {
			l.kind, l.num, l.den, l.limit = Quant32, g.num, g.den, 1<<31-1
			if k == Float64 {
				l.kind, l.limit = Quant64, 1<<53
			}
		}
		return c.leaf(p, l, g)
	}
	switch t.Kind() {
	case reflect.String:
		return c.leaf(p, leaf{name: path, kind: String, off: off, max: orDefault(g.max, DefaultMaxString)}, tag{})
	case reflect.Slice:
		return c.slice(p, t, path, off, g)
	case reflect.Array:
		return c.array(p, t, path, off, g)
	case reflect.Struct:
		if g.max != 0 {
			return "", c.fail(path, "max on a struct; put it on the string or slice inside")
		}
		infos, err := c.fieldsOf(p, t, path, off, g)
		if err != nil {
			return "", err
		}
		return structText(infos), nil
	default:
		return "", c.fail(path, "a %v cannot be sent; use a plain struct, a slice or a Ref, or tag it `net:\"-\"`", t.Kind())
	}
}

func (c *compiler) slice(p *Plan, t reflect.Type, path string, off uintptr, g tag) (string, error) {
	e := t.Elem()
	if e.Kind() == reflect.Uint8 {
		return c.leaf(p, leaf{name: path, kind: Bytes, off: off, typ: t, max: orDefault(g.max, DefaultMaxBytes)}, tag{})
	}
	if e.Kind() == reflect.Slice && e.Elem().Kind() != reflect.Uint8 {
		return "", c.fail(path, "a slice of slices; wrap the inner one in a struct, where it has a max of its own")
	}
	l := leaf{name: path, kind: Slice, off: off, typ: t, max: orDefault(g.max, DefaultMaxSlice)}
	inner := g
	inner.max = 0
	var err error
	if l.elem, err = c.plan(e, path+"[]", inner, false); err != nil {
		return "", err
	}
	if l.elem.least == 0 {
		return "", c.fail(path, "elements without any field to send; a count alone is an integer")
	}
	return c.leaf(p, l, tag{})
}

func (c *compiler) array(p *Plan, t reflect.Type, path string, off uintptr, g tag) (string, error) {
	e := t.Elem()
	if e.Kind() == reflect.Uint8 {
		if g.max != 0 {
			return "", c.fail(path, "max on an array, whose length is its type; remove it")
		}
		if t.Len() > largestMax {
			return "", c.fail(path, "an array of %d bytes; the most is %d", t.Len(), largestMax)
		}
		return c.leaf(p, leaf{name: path, kind: ByteArray, off: off, max: t.Len()}, g)
	}
	var text string
	for i := range t.Len() {
		var err error
		if text, err = c.add(p, e, fmt.Sprintf("%s[%d]", path, i), off+uintptr(i)*e.Size(), g); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("[%d]%s", t.Len(), text), nil
}

// leaf appends l. The tag g holds what has not been used up yet: max on a number is a mistake.
func (c *compiler) leaf(p *Plan, l leaf, g tag) (string, error) {
	if g.max != 0 {
		return "", c.fail(l.name, "max on a %v; it belongs on a string, []byte or slice", l.kind)
	}
	if len(p.leaves) >= MaxLeaves {
		return "", c.fail(l.name, "more than %d values in one struct; use a slice for a long array", MaxLeaves)
	}
	if l.kind.Blob() {
		l.pos = p.blobs
		p.byBlob = append(p.byBlob, uint16(len(p.leaves)))
		p.blobs++
	} else {
		l.pos = p.words
		l.low, l.span = l.interval()
		p.byWord = append(p.byWord, uint16(len(p.leaves)))
		p.words++
	}
	p.leaves = append(p.leaves, l)
	return l.text(), nil
}

func orDefault(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}

var scalars = map[reflect.Kind]Kind{
	reflect.Bool: Bool,
	reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64, reflect.Int: Int,
	reflect.Uint8: Uint8, reflect.Uint16: Uint16, reflect.Uint32: Uint32, reflect.Uint64: Uint64, reflect.Uint: Uint,
	reflect.Float32: Float32, reflect.Float64: Float64,
}

// text is the type of the leaf in the class table.
func (l *leaf) text() string {
	switch l.kind {
	case Quant32, Quant64:
		return fmt.Sprintf("%v quant=%v/%v", l.kind, l.num, l.den)
	case String, Bytes:
		return fmt.Sprintf("%v max=%d", l.kind, l.max)
	case ByteArray:
		return fmt.Sprintf("[%d]byte", l.max)
	case Slice:
		return fmt.Sprintf("[]%s max=%d", l.elem.fields[0].Type, l.max)
	default:
		return l.kind.String()
	}
}

func structText(infos []FieldInfo) string {
	var b strings.Builder
	b.WriteString("{")
	for i, f := range infos {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Name + " " + f.Type)
	}
	b.WriteString("}")
	return b.String()
}

// Describe lists the fields that travel, in order, with their types, limits and steps.
func (p *Plan) Describe() []FieldInfo { return slices.Clone(p.fields) }

// Type is the struct type of the plan.
func (p *Plan) Type() reflect.Type { return p.typ }

// errNil is what a caller gets for a missing struct: it is a mistake in this program.
var errNil = errors.New("codec: nil struct")
