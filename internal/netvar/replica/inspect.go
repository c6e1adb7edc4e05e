package replica

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Carried is a decoded record, with the set of fields that it reveals.
type Carried struct {
	Tick   uint64 // tick of the snapshot
	ID     state.ID
	Class  *state.Class
	leaves []bool
}

// Tells reports whether the record reveals leaf i: the record is a full one with the leaf in its
// mask, or the decoded value differs from the baseline or from the zero value, which replaces
// withheld values.
func (c *Carried) Tells(i int) bool { return c.leaves[i] }

// Table returns the classes that the replica reads, which are the server's.
func (r *Replica) Table() *state.Table { return r.table }

// Objects returns the objects that the server has sent. The caller must not change the set.
func (r *Replica) Objects() *state.Set { return &r.objects }

// Records iterates over the heads of the records of the packet applied last.
func (r *Replica) Records(yield func(*packet.Head) bool) {
	for i := range r.staged {
		if !yield(&r.staged[i].Head) {
			return
		}
	}
}

// Corrupt replaces the newest version of an object, to simulate a fault.
func (r *Replica) Corrupt(o *state.Object, v *codec.Values) {
	was := o.Hist.Newest()
	r.restore(o, v, &was)
	r.stored += o.Hist.ReplaceNewest(v)
	o.Hashed = 0
	r.compare(&packet.Header{HasDigest: true}) // stores the hash
}

// Track makes the replica add the slots of applied records to a set.
func (r *Replica) Track(touched *bitset.Set) { r.touched = touched }

// Mask returns the mask of the readable fields of the object in a slot; empty if all are readable.
func (r *Replica) Mask(slot int) []byte { return r.masks.of(slot) }

// Inspect sets a function that is called with each record that carries fields, before it is
// applied. The function must not retain its argument.
func (r *Replica) Inspect(fn func(*Carried)) { r.inspector = fn }

// inspect passes a checked record to the inspector. It uses only decoded values and the mask of
// full records, so the result does not depend on the server's information about readers.
func (r *Replica) inspect(s *stagedRecord) {
	if s.Kind == packet.Despawn {
		return
	}
	c := Carried{Tick: r.context.Tick, Class: s.class, leaves: make([]bool, s.class.Plan().Leaves())}
	base := s.class.Zero
	if s.Kind == packet.Full {
		c.ID = state.MakeID(s.Slot, s.Gen)
	} else {
		c.ID = s.object.ID()
		base = s.object.Hist.Values(s.base)
	}
	for i := range c.leaves {
		has := s.Kind == packet.Full && (len(s.mask) == 0 || s.mask[i>>3]>>(i&7)&1 != 0)
		c.leaves[i] = has || !s.class.Plan().Same(i, &s.values, &base) || !s.class.Plan().Same(i, &s.values, &s.class.Zero)
	}
	r.inspector(&c)
}
