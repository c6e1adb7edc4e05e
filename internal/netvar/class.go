package netvar

import (
	"fmt"
	"reflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// Class is the shape of a kind of objects. It never changes once it is in a Table.
type Class struct {
	name  string
	index int // -1 until it is in a table
	plan  *codec.Plan
	mask  int  // bytes of the changed-field mask: bit 0 is the owner, then one bit per leaf
	large bool // a value may not fit a packet: see large.go
	reads reads

	own     *Class // the declaration on this side: itself, unless it is bound (foreign.go)
	unknown bool   // nothing on this side declares it
}

// NewClass compiles struct type t. It refuses a class with a value that might not fit one
// record of MaxRecord bytes, and names the field that takes most of it.
func NewClass(name string, t reflect.Type, e ...codec.Encodings) (*Class, error) {
	p, err := codec.Compile(t, e...)
	if err != nil {
		return nil, fmt.Errorf("netvar: class %s: %w", name, err)
	}
	if field := p.Misplaced(); field != "" {
		return nil, fmt.Errorf("netvar: class %s: field %s lies in a slice or map, which is captured as a whole: interval and threshold belong on fields outside, and interval on the slice or map itself", name, field)
	}
	c := newClass(name, p)
	if err := c.setRules(); err != nil {
		return nil, err
	}
	size, largest := p.MaxSize()
	c.large = size > MaxPacket-maxHeader-maxRecordHead-c.mask
	if room := MaxRecord - maxLargeHead - c.mask; size > room {
		return nil, fmt.Errorf("netvar: class %s: a value may take %d bytes and there is room for %d; the largest field is %s: give it a smaller max in its tag, or split the class", name, size, room, largest)
	}
	return c, nil
}

func newClass(name string, p *codec.Plan) *Class {
	c := &Class{name: name, index: -1, plan: p, mask: (1 + p.Leaves() + 7) / 8}
	c.own, c.reads.zero = c, p.Zero()
	return c
}

// Name is the name that the class was declared with.
func (c *Class) Name() string { return c.name }

// Index is the position in the table; it is the class number on the wire.
func (c *Class) Index() int { return c.index }

// Type is the struct type of the class.
func (c *Class) Type() reflect.Type { return c.plan.Type() }

// Describe lists the fields with their wire types, for the fingerprint.
func (c *Class) Describe() []codec.FieldInfo { return c.plan.Describe() }

// DescribeLeaves describes the values that change on their own, in the order of their numbers.
func (c *Class) DescribeLeaves() []codec.LeafInfo { return c.plan.DescribeLeaves() }

// Layout is the wire layout, for the class table.
func (c *Class) Layout() codec.Type { return c.plan.Layout() }

// words is the number of words of one captured value: the plan's, then the owner.
func (c *Class) words() int { return c.plan.Words() + 1 }

func (c *Class) owner(v *codec.Values) uint64 { return v.Words[c.plan.Words()] }

func (c *Class) equal(a, b *codec.Values) bool {
	return c.owner(a) == c.owner(b) && c.plan.Equal(a, b)
}

// appendFull writes owner and all fields.
func (c *Class) appendFull(dst []byte, v *codec.Values) []byte {
	return c.plan.AppendValues(wire.AppendUvarint(dst, c.owner(v)), v)
}

func (c *Class) readFull(r *wire.Reader, v *codec.Values) {
	v.Words[c.plan.Words()] = r.Uvarint()
	c.plan.ReadValues(r, v)
}

var noMask [(1 + codec.MaxLeaves + 7) / 8]byte

// appendDiff writes the mask of what differs from base and then the differences.
func (c *Class) appendDiff(dst []byte, v, base *codec.Values) []byte {
	at := len(dst)
	dst = append(dst, noMask[:c.mask]...)
	if o, b := c.owner(v), c.owner(base); o != b {
		dst[at] |= 1
		dst = wire.AppendZigzag(dst, int64(o-b))
	}
	return c.plan.AppendDiff(dst, at, 1, v, base)
}

// readDiff changes v from the baseline to the version, in the fields of the mask. A bit beyond the last field is an error:
// it would come from a class that this side does not know.
func (c *Class) readDiff(r *wire.Reader, mask []byte, v *codec.Values) {
	if used := (1 + c.plan.Leaves()) & 7; used != 0 && mask[c.mask-1]>>used != 0 {
		r.Fail(ErrRecord)
		return
	}
	if mask[0]&1 != 0 {
		v.Words[c.plan.Words()] += uint64(r.Zigzag())
	}
	c.plan.ReadDiff(r, mask, 1, v)
}

// Table is the ordered list of classes that both sides agree on.
type Table struct{ classes []*Class }

// NewTable numbers the classes in the order given. It panics when a class is missing, has the
// name of another, or already has another number in an earlier table: all are mistakes in the
// schema that no client could make up for.
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
		if c.index != i { // not written again when two servers share a schema
			c.index = i
		}
	}
	return &Table{classes: append([]*Class(nil), classes...)}
}

// Classes lists the classes by number. The caller must not change the slice.
func (t *Table) Classes() []*Class { return t.classes }

func (t *Table) class(i uint64) *Class {
	if i >= uint64(len(t.classes)) {
		return nil
	}
	return t.classes[i]
}

func (t *Table) has(c *Class) bool { return c != nil && t.class(uint64(c.index)) == c }
