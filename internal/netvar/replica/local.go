package replica

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// A predicting client creates objects that the server is about to spawn. They exist on this client
// only, have no slot and no id, and follow the other objects in iterations.

// AddLocal adds an object of a class of this side. live points to an S and belongs to the object.
func (r *Replica) AddLocal(c *state.Class, live unsafe.Pointer, owner uint64) *state.Object {
	if bound := r.served(c); bound != nil {
		c = bound
	}
	o := state.NewObject(0, c, live, owner)
	o.SetAlive(true)
	r.locals = append(slices.Clip(r.locals), o)
	return o
}

// RemoveLocal removes a local object. It may be called during an iteration.
func (r *Replica) RemoveLocal(o *state.Object) {
	o.SetAlive(false)
	r.locals = slices.DeleteFunc(slices.Clone(r.locals), func(other *state.Object) bool { return other == o })
}

// then appends to an iteration the local objects for which the function which returns true. A
// local object that is removed meanwhile is skipped, as Store requires.
func (r *Replica) then(first iter.Seq[*state.Object], which func(*state.Object) bool) iter.Seq[*state.Object] {
	if len(r.locals) == 0 {
		return first
	}
	return func(yield func(*state.Object) bool) {
		locals := r.locals
		for o := range first {
			if !yield(o) {
				return
			}
		}
		for _, o := range locals {
			if o.Alive() && which(o) && !yield(o) {
				return
			}
		}
	}
}

// Owned implements Store.
func (r *Replica) Owned(owner uint64) iter.Seq[*state.Object] {
	return r.then(r.objects.Owned(owner), func(o *state.Object) bool { return o.Owner() == owner })
}

// OwnedHere is Owned without the local objects.
func (r *Replica) OwnedHere(owner uint64) iter.Seq[*state.Object] { return r.objects.Owned(owner) }
