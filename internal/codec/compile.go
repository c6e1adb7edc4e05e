package codec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Ref is a reference to a replicated object; 0 is none. The codec also recognises a struct in which
// the only named field is an unexported Ref, so that a public type can wrap it.
type Ref struct{ ID uint64 }

// FieldInfo describes one field of the struct for the fingerprint of a schema: with equal texts,
// each side can read the values of the other side.
type FieldInfo struct{ Name, Type string }

// leaf is one scalar, string, byte string, slice or map of the flattened struct.
type leaf struct {
	kind Kind
	// the leaf is in the other side's layout (see Bind), and this side has no field for it: readers
	// skip it, and writers write zero
	absent    bool
	plain     bool   // see Kind.plain
	lerp      Lerp   // its interpolation for drawing
	straight  bool   // a float32 in steps, on the straight line
	run       uint16 // leaves of one run are components of one value: see expected
	pos       int    // index among the words or among the blobs
	off       uintptr
	low, span uint64 // of a word: it is from low to low+span, as two's complement
	num, den  float64
	unit      float64 // num/den, if a multiplication by it is as exact as the division; else 0
	turn      float64 // of an angle: its circle, of a quantised one in steps
	least     float64 // of a quantised value, in steps; a whole number
	most      float64
	max       int
	name      string    // path below the struct, for errors: "Pos.X", "Items[].Name"
	read      string    // the read rule, "" = all clients
	elem      *Plan     // of a Slice or a Map
	key       int       // index of the key leaf in elem, -1 if the index identifies elements
	entries   *entries  // of a Map
	encoding  *Encoding // of a Proto; nil without a field here
	typ       reflect.Type
}

// Plan is the compiled form of one struct type. It never changes after Compile or Bind and
// may be used by any number of goroutines at once.
type Plan struct {
	typ    reflect.Type
	leaves []leaf
	words  int
	byWord []uint16 // index of the leaf of each word
	blobs  int
	byBlob []uint16
	local  bool // contains slices or maps: a shallow copy would share memory
	layout Type // of a whole struct, not of a slice's elements
	least  int  // fewest wire bytes of one value
	size   uintptr
	groups []group  // fields that are captured together, at most once in an interval
	gaps   []gap    // thresholds of leaves
	rounds []uint16 // leaves that Round changes
	inList string   // see Misplaced

	teleports []uint16  // leaves with the tag teleport
	weights   []float64 // by leaf

	encodings []Encodings // passed to Compile
}

// Compile makes the plan of struct type t. The error names the field and suggests a fix.
func Compile(t reflect.Type, e ...Encodings) (*Plan, error) {
	n, w, err := walk(t, e)
	if err != nil {
		return nil, err
	}
	return w.compile(n, new(Budget))
}

// Budget limits the cost of compiling, because arrays of slices of arrays multiply, and a layout
// may be sent by a peer. The zero value is a full budget; plans that share a Budget share its
// limit.
type Budget struct{ spent int }

// maxParts is a full Budget: the number of structs, arrays and leaves that may be compiled. It is
// ten times the number in a schema with 500 methods and 100 classes, and takes about 20 ms.
const maxParts = 1 << 17

// compile makes the plan of a whole struct.
func (w *walker) compile(n *node, budget *Budget) (*Plan, error) {
	w.budget = budget
	p, err := w.plan(n, "")
	if err != nil {
		return nil, err
	}
	p.layout = n.describe()
	p.encodings, p.inList = w.encodings, w.inList
	return p, nil
}

// plan makes a plan of a node: of a whole struct, or of the elements of a slice or map.
func (w *walker) plan(n *node, path string) (*Plan, error) {
	p := &Plan{typ: n.typ}
	if n.typ != nil { // Otherwise these are elements of a slice without a field on this side.
		p.size = n.typ.Size()
	}
	if err := w.flatten(p, n, path, 0); err != nil {
		return nil, err
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		p.least = min(p.least+l.minWire(), 1<<30) // far beyond every limit
		if !l.absent && (l.kind.list() || l.kind == Bytes || l.kind == Proto) {
			p.local = true
		}
	}
	p.rounds = rounding(p.leaves)
	return p, nil
}

// flatten appends the leaves of a node to the plan, and their interval groups. The node is at
// offset off in the struct.
func (w *walker) flatten(p *Plan, n *node, path string, off uintptr) error {
	from := len(p.leaves)
	err := w.flattenParts(p, n, path, off)
	w.group(p, n, path, from)
	return err
}

func (w *walker) flattenParts(p *Plan, n *node, path string, off uintptr) error {
	if w.budget.spent++; w.budget.spent > maxParts {
		return w.fail(path, "too many parts in all; nest fewer arrays and slices in each other")
	}
	switch n.kind {
	case Struct:
		for i := range n.fields {
			f := &n.fields[i]
			if err := w.flatten(p, f.node, join(path, f.path), off+f.off); err != nil {
				return err
			}
		}
		return nil
	case Array:
		return w.flattenArray(p, n, path, off)
	default:
		return w.leaf(p, n, path, off)
	}
}

func (w *walker) flattenArray(p *Plan, n *node, path string, off uintptr) error {
	var step uintptr
	if n.elem.typ != nil {
		step = n.elem.typ.Size()
	}
	for i := range n.max {
		before := len(p.leaves)
		if err := w.flatten(p, n.elem, fmt.Sprintf("%s[%d]", path, i), off+uintptr(i)*step); err != nil {
			return err
		}
		if len(p.leaves) == before {
			break // The elements have no leaves.
		}
	}
	return nil
}

// leaf appends one leaf.
func (w *walker) leaf(p *Plan, n *node, path string, off uintptr) error {
	if len(p.leaves) >= MaxLeaves {
		return w.fail(path, "more than %d values in one struct; use a slice for a long array", MaxLeaves)
	}
	l := leaf{kind: n.kind, plain: n.kind.plain(), absent: n.typ == nil, lerp: n.lerp, off: off, max: n.max, name: path, read: n.read, typ: n.typ, encoding: n.encoding}
	switch n.kind {
	case Quant32, Quant64, Range32, Range64:
		l.num, l.den = float64(n.num), float64(n.den)
		l.straight = n.lerp == LerpLinear && (n.kind == Quant32 || n.kind == Range32)
		if n.den&(n.den-1) == 0 {
			l.unit = l.num / l.den
		}
		l.least, l.most = float64(-n.kind.maxSteps()), float64(n.kind.maxSteps())
		if n.kind.ranged() {
			l.least, l.most = float64(n.low), float64(n.high)
		}
	case Slice, Map:
		var err error
		w.lists++
		l.elem, err = w.plan(n.elem, path+"[]")
		w.lists--
		if err != nil {
			return err
		}
		if l.elem.least == 0 {
			return w.fail(path, "elements without any field to send; a count alone is an integer")
		}
		l.key = l.elem.find(path+"[].", n.key)
		if n.kind == Map && !l.absent {
			l.entries = &entries{typ: n.elem.typ}
		}
	}
	if l.turn = l.circle(); n.kind.Steps() {
		l.turn = l.turn * l.den / l.num
	}
	w.gap(p, &l, n)
	if n.jump {
		p.teleports = append(p.teleports, uint16(len(p.leaves)))
	}
	p.weights = append(p.weights, cmp.Or(n.weight, 1))
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
	if last := len(p.leaves) - 1; last >= 0 {
		l.run = p.leaves[last].run
		if !l.continues(&p.leaves[last]) {
			l.run++
		}
	}
	p.leaves = append(p.leaves, l)
	return nil
}

// noRun is the run before the first leaf: it differs from the run of every leaf.
const noRun = 1<<16 - 1

// continues reports whether l is in the same run as the previous leaf: both have the same kind and
// step, like the components of a vector, and so probably change together.
func (l *leaf) continues(before *leaf) bool {
	return l.kind.onWire() == before.kind.onWire() && l.num == before.num && l.den == before.den
}

// find returns the index of the leaf named prefix+name, or -1 if there is none or name is empty.
func (p *Plan) find(prefix, name string) int {
	return slices.IndexFunc(p.leaves, func(l leaf) bool { return name != "" && l.name == prefix+name })
}

// Describe lists the fields sent on the wire, in order, with their types, limits and steps.
func (p *Plan) Describe() []FieldInfo {
	var infos []FieldInfo
	for i := range p.layout.Fields {
		f := &p.layout.Fields[i]
		infos = append(infos, FieldInfo{Name: f.Name, Type: f.Type.String()})
	}
	return infos
}

// Layout returns the wire layout of the plan, for the tables that a server sends. The caller must
// not modify it.
func (p *Plan) Layout() Type { return p.layout }

// Encodings returns the encodings passed to Compile.
func (p *Plan) Encodings() []Encodings { return p.encodings }

// Type returns the struct type of the plan.
func (p *Plan) Type() reflect.Type { return p.typ }

// MinSize returns the smallest size of a message in bytes.
func (p *Plan) MinSize() int { return p.least }

// errNil is the error for a nil struct: a defect of the calling program.
var errNil = errors.New("codec: nil struct")
