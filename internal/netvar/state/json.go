package state

import "github.com/netloop/netloop/internal/codec"

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
	if withheld == 0 || !c.Restricted() {
		return c.plan.AppendJSON(dst, v, nil)
	}
	return c.plan.AppendJSON(dst, v, func(leaf int) bool { return c.Withheld(1+leaf, withheld) })
}
