package state

import (
	"fmt"
	"reflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// Class is the description of a kind of objects. It is immutable once it is in a Table.
type Class struct {
	name  string
	index int // -1 until it is in a table
	plan  *codec.Plan
	Large bool         // a value may not fit a packet: see netvar/large.go
	Heavy bool         // its versions may exceed MaxHistory
	Zero  codec.Values // the base of a full record
	reads reads

	fieldWeights []uint32 // by leaf, fixed-point numbers; nil if all are 1: see ChangedWeight

	onMap [2]string // leaves with the position on a map; empty: no map

	own     *Class // this side's declaration: itself, unless the class is bound (BindClass)
	Unknown bool   // this side does not declare the class
}

// NewClass compiles struct type t. It rejects misplaced tags, too many read rules, and a class with
// a value that might not fit one record of MaxRecord bytes; the last error names the largest field.
func NewClass(name string, t reflect.Type, e ...codec.Encodings) (*Class, error) {
	p, err := codec.Compile(t, e...)
	if err != nil {
		return nil, err
	}
	if field := p.Misplaced(); field != "" {
		return nil, fmt.Errorf("field %s is in a slice or map, which is captured as a whole: interval, threshold and weight belong on fields outside, interval and weight on the slice or map itself", field)
	}
	c := newClass(name, p)
	if err := c.setRules(); err != nil {
		return nil, err
	}
	c.setFieldWeights()
	size, largest := p.MaxDelta()
	size = (size + 7) / 8
	whole, _ := p.MaxSize()
	c.Heavy = whole+8*(c.Words()+1) > MaxHistory/maxVersions
	c.Large = size > packet.MaxSize-packet.MaxHeader-packet.MaxHead-c.MaskBytes()
	if room := packet.MaxRecord - packet.MaxLargeHead - c.MaskBytes(); size > room {
		return nil, fmt.Errorf("a value may take %d bytes and there is room for %d; the largest field is %s: give it a smaller max in its tag, or split the class", size, room, largest)
	}
	return c, nil
}

func newClass(name string, p *codec.Plan) *Class {
	c := &Class{name: name, index: -1, plan: p}
	c.own = c
	c.Zero = p.Zero()
	c.Zero.Words = append(c.Zero.Words, 0) // the owner
	return c
}

// Name returns the declared name of the class.
func (c *Class) Name() string { return c.name }

// Index returns the position in the table, which is the class number on the wire.
func (c *Class) Index() int { return c.index }

// Type returns the struct type of the class.
func (c *Class) Type() reflect.Type { return c.plan.Type() }

// Plan returns the encoding of the class's values.
func (c *Class) Plan() *codec.Plan { return c.plan }

// Declared returns this side's declaration: the class itself, unless it is bound to a server's
// layout.
func (c *Class) Declared() *Class { return c.own }

// Describe returns the fields with their wire types, for the fingerprint.
func (c *Class) Describe() []codec.FieldInfo { return c.plan.Describe() }

// DescribeLeaves returns the leaves, the values that change individually, in order of their
// numbers.
func (c *Class) DescribeLeaves() []codec.LeafInfo { return c.plan.DescribeLeaves() }

// TypeOf returns the type text of the field with this Go name.
func (c *Class) TypeOf(field string) string { return c.plan.TypeOf(field) }

// Layout returns the wire layout, for the class table.
func (c *Class) Layout() codec.Type { return c.plan.Layout() }

// Words returns the number of words of a captured value: the plan's, then the owner.
func (c *Class) Words() int { return c.plan.Words() + 1 }

func (c *Class) Owner(v *codec.Values) uint64 { return v.Words[c.plan.Words()] }

func (c *Class) Equal(a, b *codec.Values) bool {
	return c.Owner(a) == c.Owner(b) && c.plan.Equal(a, b)
}

// appendFull appends owner and all fields as bytes, for digests.
func (c *Class) appendFull(dst []byte, v *codec.Values) []byte {
	return c.plan.AppendValues(wire.AppendUvarint(dst, c.Owner(v)), v)
}

// Table is the ordered list of classes that both sides agree on.
type Table struct{ classes []*Class }

// NewTable numbers the classes in the order given. It panics if a class is nil, has the name of
// another, or has another number in an earlier table. These are mistakes in the schema, which no
// client could correct.
func NewTable(classes ...*Class) *Table {
	names := make(map[string]bool, len(classes))
	for i, c := range classes {
		switch {
		case c == nil:
			panic(fmt.Sprintf("netvar: class %d of the table is nil", i))
		case names[c.name]:
			panic(fmt.Sprintf("netvar: two classes are named %q; rename one", c.name))
		case c.index >= 0 && c.index != i:
			panic(fmt.Sprintf("netvar: class %q is already number %d of another table; declare it anew", c.name, c.index))
		}
		names[c.name] = true
		if c.index != i { // no write if two servers share a schema
			c.index = i
		}
	}
	return &Table{classes: append([]*Class(nil), classes...)}
}

// Classes returns the classes by number. The caller must not change the slice.
func (t *Table) Classes() []*Class { return t.classes }

func (t *Table) Class(i uint64) *Class {
	if i >= uint64(len(t.classes)) {
		return nil
	}
	return t.classes[i]
}

func (t *Table) Has(c *Class) bool { return c != nil && t.Class(uint64(c.index)) == c }
