package netvar

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// A field may have a rule for its readers (`net:"read=owner"`). A client must not notice changes of
// fields that it may not read. So such a change makes no record pending; the version of a record is
// the tick of the newest readable change; and unreadable values are 0 in it. They are replaced
// before encoding, so no coder ever sees a value that it must not send.
//
// Rules are evaluated together with audiences (visible.go), for each object and client. A change of
// the result within a lifetime begins a new view: acknowledgements of earlier packets do not count,
// and the object is pending in full.

// Rules is a set of rules of one class, by number. It never contains 0, the rule of fields that all
// clients may read.
type Rules uint16

// MaxRules bounds the rules of a class to the bits of Rules.
const MaxRules = 15

// Readers decides which fields of a class's objects a client may read. Both methods run within a
// capture.
type Readers interface {
	// Ask is called before Withheld is called again for each client.
	Ask(o *Object)
	// Withheld returns the rules of the fields that the client may not read.
	Withheld(o *Object, p *Peer) Rules
}

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

// maskBytes returns the size of a mask of leaves.
func (c *Class) maskBytes() int { return (c.plan.Leaves() + 7) / 8 }

// appendMask appends the mask of the readable leaves.
func (c *Class) appendMask(dst []byte, withheld Rules) []byte {
	at := len(dst)
	dst = append(dst, noMask[:c.maskBytes()]...)
	for i, rule := range c.reads.rule {
		if withheld>>rule&1 == 0 {
			dst[at+i>>3] |= 1 << (i & 7)
		}
	}
	return dst
}

// withheldBy returns the rules of the leaves that are not in a mask. An empty mask means all
// leaves.
func (c *Class) withheldBy(mask []byte) (withheld Rules) {
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

// appendMasked appends the mask, the owner and the leaves of the mask.
func (c *Class) appendMasked(dst []byte, v *codec.Values, mask []byte) []byte {
	dst = wire.AppendUvarint(append(dst, mask...), c.owner(v))
	return c.plan.AppendSome(dst, v, mask)
}

// putMask writes the mask of the readable leaves.
func (c *Class) putMask(w *wire.BitWriter, withheld Rules) {
	for _, rule := range c.reads.rule {
		w.Bit(withheld>>rule&1 == 0)
	}
}

// takeMask reads the mask of a full record into the scratch.
func (r *Replica) takeMask(in *wire.BitReader, c *Class) []byte {
	start := len(r.texts)
	r.texts = append(r.texts, noMask[:c.maskBytes()]...)
	mask := r.texts[start:len(r.texts):len(r.texts)]
	for i := range c.plan.Leaves() {
		if in.Bit() {
			mask[i>>3] |= 1 << (i & 7)
		}
	}
	return mask
}

// mustWithhold rejects a value with a non-zero leaf that is not in the mask.
func (c *Class) mustWithhold(in *wire.BitReader, v *codec.Values, mask []byte) {
	if len(mask) == 0 || in.Err() != nil {
		return
	}
	for i := range c.plan.Leaves() {
		if mask[i>>3]>>(i&7)&1 == 0 && !c.plan.Same(i, v, &c.zero) {
			in.Fail(ErrRecord)
			return
		}
	}
}

var noMask [(codec.MaxLeaves + 7) / 8]byte

// reading is the world's state of rules.
type reading struct {
	readers []Readers       // by class
	moved   bitset          // scratch of readable
	news    []bitset        // by rule: slots of which the running capture changed a field
	mask    []byte          // scratch of digests
	values  [4]codec.Values // scratch of permit
}

// SetReaders sets the readers of a class's fields that have a rule. Without readers no client may
// read them. It must be called before the first object is spawned.
func (w *World) SetReaders(c *Class, r Readers) {
	if w.reading.readers == nil {
		w.reading.readers = make([]Readers, len(w.table.classes))
	}
	w.reading.readers[c.index] = r
}

// note adds an object to the news of the rules of its changed fields.
func (s *reading) note(o *Object, tick uint64) {
	for i, changed := range o.fields {
		if changed != tick {
			continue
		}
		rule := 0
		if i > 0 {
			rule = int(o.class.reads.rule[i-1])
		}
		for len(s.news) <= rule {
			s.news = append(s.news, nil)
		}
		s.news[rule].set(o.id.slot())
	}
}

// restricted reports whether o has fields with a rule.
func (w *World) restricted(o *Object) bool { return o.class.reads.rules != nil }

// Restricted iterates over the living objects that have fields with a rule, in id order.
func (w *World) Restricted(yield func(*Object) bool) {
	for _, c := range w.table.classes {
		if c.reads.rules == nil {
			continue
		}
		for o := range w.All(c) {
			if !yield(o) {
				return
			}
		}
	}
}

func (w *World) readersOf(o *Object) Readers {
	if w.reading.readers == nil {
		return nil
	}
	return w.reading.readers[o.class.index]
}

// askRules announces that the rules of o are evaluated again.
func (w *World) askRules(o *Object) {
	if !w.restricted(o) {
		return
	}
	if r := w.readersOf(o); r != nil {
		r.Ask(o)
	}
}

// withheld evaluates which rules a client may not read.
func (w *World) withheld(o *Object, p *Peer) Rules {
	all := Rules(1)<<len(o.class.reads.rules) - 2
	if r := w.readersOf(o); r != nil {
		return r.Withheld(o, p) & all
	}
	return all
}

// permit sets v to version i of o with zeros in the withheld fields. The copy is in one of the four
// scratch buffers that a delta needs at once: number which.
func (w *World) permit(v *codec.Values, o *Object, i int, withheld Rules, which int) {
	v.Words, v.Blobs = o.hist.words(i), o.hist.blobsOf(i)
	if withheld == 0 {
		return
	}
	to := &w.reading.values[which]
	to.Words, to.Blobs = append(to.Words[:0], v.Words...), append(to.Blobs[:0], v.Blobs...)
	for rule, leaves := range o.class.reads.leaves {
		if withheld>>rule&1 != 0 {
			o.class.plan.Withhold(to, leaves, &o.class.zero)
		}
	}
	*v = *to
}

// looksSame reports whether two versions are equal without the withheld fields.
func (c *Class) looksSame(h *history, i, j int, withheld Rules) bool {
	a, b := h.values(i), h.values(j)
	if c.owner(&a) != c.owner(&b) {
		return false
	}
	for leaf, rule := range c.reads.rule {
		if withheld>>rule&1 == 0 && !c.plan.Same(leaf, &a, &b) {
			return false
		}
	}
	return true
}

// masks are the masks of a client's objects, by slot; nil if all fields may be read.
type masks [][]byte

func (m *masks) set(slot int, mask []byte) {
	if len(mask) == 0 {
		if slot < len(*m) {
			(*m)[slot] = nil
		}
		return
	}
	for len(*m) <= slot {
		*m = append(*m, nil)
	}
	(*m)[slot] = append((*m)[slot][:0], mask...)
}

func (m masks) mask(slot int) []byte {
	if slot < len(m) {
		return m[slot]
	}
	return nil
}
