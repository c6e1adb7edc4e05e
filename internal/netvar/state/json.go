package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/netloop/netloop/internal/codec"
)

// LeafNames returns the names of the leaves in the order of AppendJSON.
func (c *Class) LeafNames() []string {
	names := make([]string, c.Leaves())
	for i := range names {
		names[i] = c.plan.LeafName(i)
	}
	return names
}

// AppendJSON appends the leaves of a version as a JSON array, in their order. The leaves of the
// withheld rules are null: see codec.Plan.AppendJSON.
func (c *Class) AppendJSON(dst []byte, v *codec.Values, withheld Rules) []byte {
	return c.plan.AppendJSON(dst, v, func(leaf int) bool { return c.Withheld(1+leaf, withheld) })
}

// SetMap sets the leaves with an object's position on a map. It returns an error unless both are
// leaves with a number.
func (c *Class) SetMap(x, y string) error {
	for _, name := range []string{x, y} {
		i := slices.IndexFunc(c.DescribeLeaves(), func(l codec.LeafInfo) bool { return l.Name == name })
		if i < 0 {
			return fmt.Errorf("it has no field %q; it has %s", name, strings.Join(c.LeafNames(), ", "))
		}
		if kind := c.DescribeLeaves()[i].Type; !strings.Contains(kind, "int") && !strings.Contains(kind, "float") {
			return fmt.Errorf("field %s is no number: it is a %s", name, kind)
		}
	}
	c.onMap = [2]string{x, y}
	return nil
}

// Map returns the names of the leaves of SetMap, or empty ones.
func (c *Class) Map() (x, y string) { return c.onMap[0], c.onMap[1] }
