package replica

import (
	"iter"
	"slices"

	"github.com/netloop/netloop/internal/netvar/state"
)

// A server and its client may have different classes, and different fields in a class. The client
// then reads the server's layout. It binds each class of the server's table to its own class of the
// same name. Packets, masks, stored versions and digests use the server's layout; only the live
// value, an S of this side, holds the common fields.

// Adapt clears the replica for another server. It then reads the classes of the table, made by
// BindClass in the server's order, or its own classes if server is nil. Settings of TellChanges and
// KeepForDrawing are kept; classes that the server lacks have no objects.
func (r *Replica) Adapt(server *state.Table) {
	ours, silent, asked := r.ours, r.silent, r.drawing.asked
	if server == nil {
		*r = *New(ours)
		r.silent, r.quiet = silent, silent
		r.drawing.asked, r.drawing.keeps = asked, slices.Clone(asked)
		return
	}
	*r = *New(server)
	r.ours, r.silent, r.quiet = ours, silent, make([]bool, len(server.Classes()))
	r.drawing.asked = asked
	r.bound = make([]*state.Class, len(ours.Classes()))
	for _, c := range server.Classes() {
		r.quiet[c.Index()] = c.Unknown || silent[c.Declared().Index()]
		if !c.Unknown {
			r.drawing.keeps[c.Index()] = asked[c.Declared().Index()]
			r.bound[c.Declared().Index()] = c
		}
	}
}

// served returns the server's class that a class of this side is bound to, or nil.
func (r *Replica) served(c *state.Class) *state.Class {
	if r.bound == nil {
		return c
	}
	if c.Index() < 0 || c.Index() >= len(r.bound) {
		return nil
	}
	if b := r.bound[c.Index()]; b != nil && b.Declared() == c {
		return b
	}
	return nil // The server has no class of that name, or c belongs to another schema.
}

// Get implements Store.
func (r *Replica) Get(id state.ID) (*state.Object, bool) { return r.objects.Get(id) }

// All implements Store.
func (r *Replica) All(c *state.Class) iter.Seq[*state.Object] {
	own := c
	first := iter.Seq[*state.Object](func(func(*state.Object) bool) {})
	if c = r.served(c); c != nil {
		first = r.objects.All(c)
	}
	return r.then(first, func(o *state.Object) bool { return o.Class() == own })
}

// Len implements Store.
func (r *Replica) Len(c *state.Class) int {
	n := 0
	for _, o := range r.locals {
		if o.Class() == c {
			n++
		}
	}
	if c = r.served(c); r.table.Has(c) {
		n += r.objects.Count(c)
	}
	return n
}
