package netvar

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// A predicting client creates objects that the server is about to spawn. They exist on this client
// only, have no slot and no id, and follow the other objects in iterations.

// AddLocal adds an object of a class of this side. live points to an S and belongs to the object.
func (r *Replica) AddLocal(c *Class, live unsafe.Pointer, owner uint64) *Object {
	o := &Object{class: c, live: live, owner: owner, alive: true}
	if bound := r.served(c); bound != nil {
		o.class = bound
	}
	r.locals = append(slices.Clip(r.locals), o)
	return o
}

// RemoveLocal removes a local object. It may be called during an iteration.
func (r *Replica) RemoveLocal(o *Object) {
	o.alive = false
	r.locals = slices.DeleteFunc(slices.Clone(r.locals), func(other *Object) bool { return other == o })
}

// then appends the local objects to an iteration. A local object that is removed meanwhile is
// skipped, as Store requires.
func (r *Replica) then(first iter.Seq[*Object], which func(*Object) bool) iter.Seq[*Object] {
	if len(r.locals) == 0 {
		return first
	}
	return func(yield func(*Object) bool) {
		locals := r.locals
		for o := range first {
			if !yield(o) {
				return
			}
		}
		for _, o := range locals {
			if o.alive && which(o) && !yield(o) {
				return
			}
		}
	}
}

// Owned implements Store.
func (r *Replica) Owned(owner uint64) iter.Seq[*Object] {
	return r.then(r.set.Owned(owner), func(o *Object) bool { return o.owner == owner })
}

// OwnedHere is Owned without the local objects.
func (r *Replica) OwnedHere(owner uint64) iter.Seq[*Object] { return r.set.Owned(owner) }

// Plan returns the encoding of the object's values, which is the server's layout.
func (o *Object) Plan() *codec.Plan { return o.class.plan }

// Newest returns the newest version. It is valid until the next packet is applied.
func (o *Object) Newest() codec.Values { return o.hist.newest() }
