package codec

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// node is a Type together with the Go type of its values. A node without a Go type belongs to a
// foreign layout and has no field on this side.
type node struct {
	kind     Kind // the Go kind: an int is an Int
	num, den uint64
	low      int64
	high     int64
	max      int
	typ      reflect.Type
	proto    string // of a Proto: its name
	encoding *Encoding
	read     string // of a leaf: the read rule; "": all clients
	// of a Map, or of a Slice that has one: the field that identifies the elements
	key    string
	hold   holdTag
	lerp   Lerp    // of a leaf
	jump   bool    // of a leaf: it has the tag teleport
	weight float64 // of a leaf; 0: not set
	elem   *node
	fields []nodeField
}

// nodeField is a field of a struct.
type nodeField struct {
	name string // on the wire
	path string // in Go, for errors
	off  uintptr
	node *node
}

// describe returns the Type of the node.
func (n *node) describe() Type {
	t := Type{Kind: n.kind.onWire(), Num: n.num, Den: n.den, Low: n.low, High: n.high, Max: n.max, Proto: n.proto}
	if n.elem != nil {
		e := n.elem.describe()
		t.Elem = &e
	}
	for i := range n.fields {
		t.Fields = append(t.Fields, Field{n.fields[i].name, n.fields[i].node.describe()})
	}
	return t
}

// field finds a field by its name on the wire.
func (n *node) field(name string) *nodeField {
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

func (n *node) quantised() bool {
	return n.kind.Steps() || n.elem != nil && n.elem.quantised() ||
		slices.ContainsFunc(n.fields, func(f nodeField) bool { return f.node.quantised() })
}

// holdsText tells whether the elements of a slice, or the keys or values of a map, are strings,
// byte strings or protobuf messages, which need a max.
func (n *node) holdsText() bool {
	text := func(n *node) bool { return n.kind == String || n.kind == Bytes || n.kind == Proto }
	switch n.kind {
	case Slice:
		return text(n.elem)
	case Map:
		return slices.ContainsFunc(n.elem.fields, func(f nodeField) bool { return text(f.node) })
	default:
		return false
	}
}

// inside returns the part of g, the tag of a slice or map, that applies to its elements of type t.
func (g tag) inside(t reflect.Type) tag {
	g.max, g.key, g.hold, g.lerp, g.teleport, g.weight = 0, "", holdTag{}, lerpTag{}, false, 0
	if k := t.Kind(); k == reflect.String || k == reflect.Slice || k == reflect.Pointer {
		g.max = g.each
	}
	g.each = 0
	return g
}

// walker converts a Go type into nodes. The stack of outer types detects recursion, which is
// possible only through a slice or a map.
type walker struct {
	root   string
	stack  []reflect.Type
	budget *Budget // of flattening
	lists  int     // slices and maps around the part being flattened
	inList string  // a field in a list with a tag that only whole lists may have
	inside int     // slices and maps around the part being walked

	encodings []Encodings
}

// walk walks the struct type t.
func walk(t reflect.Type, e []Encodings) (*node, *walker, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("%v is not a struct; declare one with the fields to send", t)
	}
	w := &walker{root: rootName(t), encodings: e}
	n, err := w.structure(t, "", tag{}, 0)
	return n, w, err
}

// fail returns the error of a field, or of the whole struct.
func (w *walker) fail(path string, format string, a ...any) error {
	what := "type " + w.root
	if path != "" {
		what = "field " + join(w.root, path)
	}
	return fmt.Errorf("%s: %s", what, fmt.Sprintf(format, a...))
}

// rootName returns the name of a struct type, the root of the paths of its fields.
func rootName(t reflect.Type) string {
	if name := t.Name(); name != "" {
		return name
	}
	return "struct"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *walker) structure(t reflect.Type, path string, g tag, depth int) (*node, error) {
	if slices.Contains(w.stack, t) {
		return nil, w.fail(path, "%v contains itself; refer to other objects by Ref or by index", t)
	}
	w.stack = append(w.stack, t)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	if t == reflect.TypeFor[time.Time]() {
		return nil, w.fail(path, "%v cannot be sent; use a Deadline, a time.Duration or an integer, or tag it `net:\"-\"`", t)
	}
	n := &node{kind: Struct, typ: t}
	for i := range t.NumField() {
		f := t.Field(i)
		sub := join(path, f.Name)
		text, set := f.Tag.Lookup("net")
		own, err := parseTag(text)
		if err != nil {
			return nil, w.fail(sub, "%v", err)
		}
		if own.skip {
			continue
		}
		if !f.IsExported() {
			return nil, w.fail(sub, "unexported field; export it, or tag it `net:\"-\"` to keep it local")
		}
		if own.read == "" { // an outer rule applies to inner fields
			own.read = g.read
		} else if w.inside > 0 {
			return nil, w.fail(sub, "read=%s inside a slice or map, which is read as a whole; put it on the slice or map", own.read)
		}
		quant := set && (own.num != 0 || own.from != nil)
		// an outer step and its range apply to the floats inside
		if own.num == 0 {
			own.num, own.den = g.num, g.den
			if own.from == nil {
				own.from, own.to = g.from, g.to
			}
		}
		if !own.lerp.set {
			own.lerp = g.lerp.inherited()
		}
		if own.teleport && w.inside > 0 {
			return nil, w.fail(sub, "teleport inside a slice or map; put it on the slice or map")
		}
		own.teleport = own.teleport || g.teleport // an outer tag applies to inner fields
		threshold := own.hold.threshold != nil
		if !threshold && own.quat == 0 { // an outer threshold applies to the numbers inside
			own.hold.threshold = g.hold.threshold
		}
		if own.weight == 0 { // an outer weight applies to inner fields
			own.weight = g.weight
		}
		v, err := w.value(f.Type, sub, own, depth+1)
		if err != nil {
			return nil, err
		}
		v.hold.interval = own.hold.interval
		if err := w.draw(v, own.lerp); err != nil {
			return nil, w.fail(sub, "%v", err)
		}
		if threshold && !v.holdsThreshold() {
			return nil, w.fail(sub, "threshold on a field without numbers; remove it")
		}
		v.readBy(own.read)
		v.weigh(own.weight)
		v.jumps(own.teleport)
		if quant && !v.quantised() {
			return nil, w.fail(sub, "quant or range on a field without floats; remove it")
		}
		if own.key != "" && v.kind != Slice {
			return nil, w.fail(sub, "key on a %v; it belongs on a slice of structs", v.kind)
		}
		if own.each != 0 && !v.holdsText() {
			return nil, w.fail(sub, "each on a %v; it belongs on a slice or map of strings or []byte, or on a map by strings", v.kind)
		}
		name, err := w.name(n, sub, f.Name, own.name)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, nodeField{name: name, path: f.Name, off: f.Offset, node: v})
	}
	return n, nil
}

// name returns the wire name of a field, which must be unique among the earlier fields.
func (w *walker) name(n *node, path, name, given string) (string, error) {
	if given != "" {
		name = given
	}
	if len(name) > MaxName {
		return "", w.fail(path, "its name has more than %d bytes; give it a shorter one on the wire with name= in its tag", MaxName)
	}
	if f := n.field(name); f != nil {
		return "", w.fail(path, "it is named %s on the wire, as %s is; change one of the tags", name, f.path)
	}
	return name, nil
}

var (
	refType     = reflect.TypeFor[Ref]()
	instantType = reflect.TypeFor[Instant]()
)

// wrapped returns the type of Ref or Instant if t is it or a struct that wraps it, else nil.
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

// value walks one value of type t.
func (w *walker) value(t reflect.Type, path string, g tag, depth int) (*node, error) {
	if depth > MaxDepth {
		return nil, w.fail(path, "nested deeper than %d levels; flatten it", MaxDepth)
	}
	if found := wrapped(t); found != nil {
		k := RefKind
		if found == instantType {
			k = InstantKind
		}
		return w.scalar(&node{kind: k, typ: t}, path, g)
	}
	if g.quat != 0 {
		return w.quaternion(t, path, g)
	}
	if k, ok := scalars[t.Kind()]; ok {
		n := &node{kind: k, typ: t}
		if k == Float32 || k == Float64 {
			if err := n.quantise(g); err != nil {
				return nil, w.fail(path, "%v", err)
			}
		}
		if err := n.setThreshold(g.hold.threshold); err != nil {
			return nil, w.fail(path, "%v", err)
		}
		return w.scalar(n, path, g)
	}
	for _, find := range w.encodings {
		if e := find(t); e != nil {
			return &node{kind: Proto, typ: t, max: orDefault(g.max, DefaultMaxBytes), proto: e.Name, encoding: e}, nil
		}
	}
	switch t.Kind() {
	case reflect.String:
		return &node{kind: String, typ: t, max: orDefault(g.max, DefaultMaxString)}, nil
	case reflect.Map:
		return w.mapping(t, path, g, depth)
	case reflect.Slice:
		return w.slice(t, path, g, depth)
	case reflect.Array:
		return w.array(t, path, g, depth)
	case reflect.Struct:
		if g.max != 0 {
			return nil, w.fail(path, "max on a struct; put it on the string or slice inside")
		}
		return w.structure(t, path, g, depth)
	default:
		return nil, w.fail(path, "%v cannot be sent; use a plain struct, a slice, a map, a Ref or a protobuf message, or tag it `net:\"-\"`", t)
	}
}

// quaternion makes one leaf of four contiguous float32.
func (w *walker) quaternion(t reflect.Type, path string, g tag) (*node, error) {
	if g.num != 0 || g.from != nil || g.max != 0 {
		return nil, w.fail(path, "quat together with quant, range or max; the bits say it all")
	}
	if t.Size() != 16 || floats(t) != 4 {
		return nil, w.fail(path, "quat on a %v; it belongs on four float32, as [4]float32 or a struct of them", t)
	}
	n := &node{kind: Quat, typ: t, max: g.quat}
	if err := n.setThreshold(g.hold.threshold); err != nil {
		return nil, w.fail(path, "%v", err)
	}
	return n, nil
}

// floats counts the float32 in t; any other part counts as more than four.
func floats(t reflect.Type) (n int) {
	switch t.Kind() {
	case reflect.Float32:
		return 1
	case reflect.Array:
		return t.Len() * floats(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			n += floats(t.Field(i).Type)
		}
		return n
	default:
		return 5
	}
}

// scalar returns n, or an error if the tag has a max, because values of fixed size have no max.
func (w *walker) scalar(n *node, path string, g tag) (*node, error) {
	if g.max != 0 {
		return nil, w.fail(path, "max on a %v; it belongs on a string, []byte or slice", n.kind)
	}
	return n, nil
}

func (w *walker) slice(t reflect.Type, path string, g tag, depth int) (*node, error) {
	e := t.Elem()
	if e.Kind() == reflect.Uint8 {
		return &node{kind: Bytes, typ: t, max: orDefault(g.max, DefaultMaxBytes)}, nil
	}
	if listed(e) {
		return nil, w.fail(path, "a slice of %ss; wrap the inner one in a struct, where it has a max of its own", e.Kind())
	}
	n := &node{kind: Slice, typ: t, max: orDefault(g.max, DefaultMaxSlice), key: g.key}
	w.inside++
	defer func() { w.inside-- }()
	var err error
	if n.elem, err = w.value(e, path+"[]", g.inside(e), depth+1); err != nil || n.key == "" {
		return n, err
	}
	i := slices.IndexFunc(n.elem.fields, func(f nodeField) bool { return f.path == n.key })
	if i < 0 || !n.elem.fields[i].node.kind.keys() {
		return nil, w.fail(path, "key=%s is not a field of its elements that is an integer, a string or a Ref", n.key)
	}
	return n, nil
}

// listed reports whether a type is encoded as a Slice or a Map.
func listed(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

// mapping walks a map. It is sent as a slice of entries in the order of their keys; a set is a map
// to the empty struct, and its entries have only keys.
func (w *walker) mapping(t reflect.Type, path string, g tag, depth int) (*node, error) {
	if listed(t.Elem()) {
		return nil, w.fail(path, "a map of %ss; wrap the inner one in a struct, where it has a max of its own", t.Elem().Kind())
	}
	n := &node{kind: Map, typ: t, max: orDefault(g.max, DefaultMaxSlice), key: entryKey}
	w.inside++
	defer func() { w.inside-- }()
	key, err := w.value(t.Key(), path+"[]."+entryKey, tag{each: g.each}.inside(t.Key()), depth+1)
	if err != nil {
		return nil, err
	}
	if !key.kind.keys() {
		return nil, w.fail(path, "a map by %v; keys are integers, strings and Refs", t.Key())
	}
	n.elem = &node{kind: Struct, fields: []nodeField{{name: entryKey, path: entryKey, node: key}}}
	if t.Elem().Kind() != reflect.Struct || t.Elem().NumField() > 0 {
		value, err := w.value(t.Elem(), path+"[]."+entryValue, g.inside(t.Elem()), depth+1)
		if err != nil {
			return nil, err
		}
		n.elem.fields = append(n.elem.fields, nodeField{name: entryValue, path: entryValue, node: value})
	}
	n.elem.typ = entryOf(t)
	if len(n.elem.fields) == 2 {
		n.elem.fields[1].off = n.elem.typ.Field(1).Offset
	}
	return n, nil
}

func (w *walker) array(t reflect.Type, path string, g tag, depth int) (*node, error) {
	if t.Len() > largestMax {
		return nil, w.fail(path, "an array of %d elements; the most is %d", t.Len(), largestMax)
	}
	n := &node{kind: Array, typ: t, max: t.Len()}
	if t.Elem().Kind() == reflect.Uint8 {
		if g.max != 0 {
			return nil, w.fail(path, "max on an array, whose length is its type; remove it")
		}
		n.kind = ByteArray
		return n, nil
	}
	var err error
	n.elem, err = w.value(t.Elem(), path+"[]", g, depth+1)
	return n, err
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
