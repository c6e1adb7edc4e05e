package netvar

// Carried is a decoded record, with the set of fields that it reveals.
type Carried struct {
	Tick   uint64 // of the snapshot
	ID     ID
	Class  *Class
	leaves []bool
}

// Tells reports whether the record reveals leaf i: it carries the leaf, or the decoded value
// differs from that of a withheld field.
func (c *Carried) Tells(i int) bool { return c.leaves[i] }

// Leaves returns the number of leaves, the values that change individually.
func (c *Class) Leaves() int { return c.plan.Leaves() }

// Inspect sets a function that is called with each record that carries fields, before it is
// applied. The function must not retain its argument.
func (r *Replica) Inspect(fn func(*Carried)) { r.inspector = fn }

// inspect passes a checked record to the inspector. It uses only decoded values and the mask of
// full records, so the result does not depend on the server's information about readers.
func (r *Replica) inspect(s *stagedRecord) {
	if s.Kind == recordDespawn {
		return
	}
	c := Carried{Tick: r.context.tick, Class: s.class, leaves: make([]bool, s.class.plan.Leaves())}
	base := s.class.zero
	if s.Kind == recordFull {
		c.ID = makeID(s.Slot, s.Gen)
	} else {
		c.ID = s.object.id
		base = s.object.hist.values(s.base)
	}
	for i := range c.leaves {
		has := s.Kind == recordFull && (len(s.mask) == 0 || s.mask[i>>3]>>(i&7)&1 != 0)
		c.leaves[i] = has || !s.class.plan.Same(i, &s.values, &base) || !s.class.plan.Same(i, &s.values, &s.class.zero)
	}
	r.inspector(&c)
}
