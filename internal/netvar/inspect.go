package netvar

// Carried is one record as a reader has decoded it: which fields it tells something of.
type Carried struct {
	Tick   uint64 // of the snapshot
	ID     ID
	Class  *Class
	leaves []bool
}

// Tells reports whether the record tells anything of leaf i: it has the leaf, or the value that
// comes of it is not what stands there for a field that may not be read.
func (c *Carried) Tells(i int) bool { return c.leaves[i] }

// Leaves is the number of values that change on their own.
func (c *Class) Leaves() int { return c.plan.Leaves() }

// Inspect lets fn see every record that carries fields, before it is applied. It must not keep what
// it is shown.
func (r *Replica) Inspect(fn func(*Carried)) { r.inspector = fn }

// inspect shows a checked record to the inspector. It goes by the values that were decoded and by
// what a full record says of itself, so it needs no word of the server about who may read what.
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
