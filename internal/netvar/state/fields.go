package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/netloop/netloop/internal/codec"
)

// Leaves returns the number of leaves, the values that change individually.
func (c *Class) Leaves() int { return c.plan.Leaves() }

// FieldName returns the name of field i: 0 is the owner, and i is leaf i-1. SpentOnFields uses the
// same numbers.
func (c *Class) FieldName(i int) string {
	if i == 0 {
		return "(owner)"
	}
	return c.plan.LeafName(i - 1)
}

// FieldHash returns a hash of a field's value.
func (c *Class) FieldHash(i int, v *codec.Values) uint64 {
	if i == 0 {
		return c.Owner(v)
	}
	word, blob := c.plan.Leaf(i-1, v)
	return HashBytes(HashUint64(HashStart, word), blob)
}

// FieldsNamed returns the numbers, as in FieldName, of the fields with this name: one field, all
// fields inside a struct or array, or all fields of the class if the name is empty.
func (c *Class) FieldsNamed(name string) (fields []int) {
	for i := range 1 + c.plan.Leaves() {
		rest, ok := strings.CutPrefix(c.FieldName(i), name)
		if ok && (name == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			fields = append(fields, i)
		}
	}
	return fields
}

// LastChanged returns the field that was changed last. If several were changed in that tick, it
// returns the first of them, and the owner only if it is the only one.
func (o *Object) LastChanged(fields []int) int {
	return slices.MaxFunc(fields, func(a, b int) int {
		return cmp.Or(cmp.Compare(o.Fields[a], o.Fields[b]), cmp.Compare(min(a, 1), min(b, 1)))
	})
}
