package state

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// Rules is a set of rules of one class, by number. It never contains 0, the rule of fields that all
// clients may read.
type Rules uint16

// MaxRules bounds the rules of a class to the bits of Rules.
const MaxRules = 15

// reads is the set of rules of a class.
type reads struct {
	rules []string // by number; empty if all clients may read all fields
	rule  []uint8  // by leaf
	first []string // by number: the first field with the rule

	leaves [][]uint16 // by number: the leaves with the rule
}

// setRules numbers the rules of the fields.
func (c *Class) setRules() error {
	s := &c.reads
	for i := range c.plan.Leaves() {
		name := c.plan.ReadRule(i)
		if name == "" {
			continue
		}
		if s.rule == nil {
			s.rules, s.first, s.rule = []string{""}, []string{""}, make([]uint8, c.plan.Leaves())
		}
		n := slices.Index(s.rules, name)
		if n < 0 {
			if n = len(s.rules); n > MaxRules {
				return fmt.Errorf("field %s has read=%s, which would be rule %d; the most is %d", c.plan.LeafName(i), name, n, MaxRules)
			}
			s.rules, s.first = append(s.rules, name), append(s.first, c.plan.LeafName(i))
		}
		s.rule[i] = uint8(n)
	}
	s.leaves = make([][]uint16, len(s.rules))
	for i, n := range s.rule {
		s.leaves[n] = append(s.leaves[n], uint16(i))
	}
	return nil
}

// Rules returns the names of the rules by number, or nil if the class has none. Rule 0 is "". The
// caller must not change the slice.
func (c *Class) Rules() []string { return c.reads.rules }

// RuleField returns the name of the first field with a rule.
func (c *Class) RuleField(n int) string { return c.reads.first[n] }

// Restricted reports whether a field of the class has a rule.
func (c *Class) Restricted() bool { return c.reads.rules != nil }

// AllRules returns the set of all rules.
func (c *Class) AllRules() Rules { return Rules(1)<<len(c.reads.rules) - 2 }

// RuleOf returns the rule of a field: see FieldName. It must not be called for a class without
// rules.
func (c *Class) RuleOf(field int) int {
	if field == 0 {
		return 0
	}
	return int(c.reads.rule[field-1])
}

// Withheld reports whether the rule of a field is in a set of withheld rules.
func (c *Class) Withheld(field int, rules Rules) bool {
	return c.Restricted() && rules>>c.RuleOf(field)&1 != 0
}

// Withhold sets the fields of the withheld rules to 0.
func (c *Class) Withhold(v *codec.Values, withheld Rules) {
	for rule, leaves := range c.reads.leaves {
		if withheld>>rule&1 != 0 {
			c.plan.Withhold(v, leaves, &c.Zero)
		}
	}
}

// MaskBytes returns the size of a mask of leaves.
func (c *Class) MaskBytes() int { return (c.plan.Leaves() + 7) / 8 }

// AppendMask appends the mask of the readable leaves.
func (c *Class) AppendMask(dst []byte, withheld Rules) []byte {
	at := len(dst)
	dst = append(dst, NoMask[:c.MaskBytes()]...)
	for i, rule := range c.reads.rule {
		if withheld>>rule&1 == 0 {
			dst[at+i>>3] |= 1 << (i & 7)
		}
	}
	return dst
}

// WithheldBy returns the rules of the leaves that are not in a mask. An empty mask means all
// leaves.
func (c *Class) WithheldBy(mask []byte) (withheld Rules) {
	if len(mask) == 0 {
		return 0
	}
	for i, rule := range c.reads.rule {
		if mask[i>>3]>>(i&7)&1 == 0 {
			withheld |= 1 << rule
		}
	}
	return withheld
}

// AppendMasked appends the mask, the owner and the leaves of the mask.
func (c *Class) AppendMasked(dst []byte, v *codec.Values, mask []byte) []byte {
	dst = wire.AppendUvarint(append(dst, mask...), c.Owner(v))
	return c.plan.AppendSome(dst, v, mask)
}

// PutMask writes the mask of the readable leaves.
func (c *Class) PutMask(w *wire.BitWriter, withheld Rules) {
	for _, rule := range c.reads.rule {
		w.Bit(withheld>>rule&1 == 0)
	}
}

// CheckMask rejects a value with a non-zero leaf that is not in the mask.
func (c *Class) CheckMask(in *wire.BitReader, v *codec.Values, mask []byte) {
	if len(mask) == 0 || in.Err() != nil {
		return
	}
	for i := range c.plan.Leaves() {
		if mask[i>>3]>>(i&7)&1 == 0 && !c.plan.Same(i, v, &c.Zero) {
			in.Fail(packet.ErrRecord)
			return
		}
	}
}

var NoMask [(codec.MaxLeaves + 7) / 8]byte

// looksSame reports whether two versions are equal in all fields that are not withheld.
func (c *Class) looksSame(h *History, i, j int, withheld Rules) bool {
	a, b := h.Values(i), h.Values(j)
	if c.Owner(&a) != c.Owner(&b) {
		return false
	}
	for leaf, rule := range c.reads.rule {
		if withheld>>rule&1 == 0 && !c.plan.Same(leaf, &a, &b) {
			return false
		}
	}
	return true
}
