package netvar

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// A client that predicts makes objects that the server is about to spawn. They are the client's
// alone: they have no slot and no id, and come behind the others.

// AddLocal adds an object of a class of this side. live points to an S and belongs to the object.
func (r *Replica) AddLocal(c *Class, live unsafe.Pointer, owner uint64) *Object {
	o := &Object{class: c, live: live, owner: owner, alive: true}
	if bound := r.served(c); bound != nil {
		o.class = bound
	}
	r.locals = append(slices.Clip(r.locals), o)
	return o
}

// RemoveLocal takes it away. The list may be walked meanwhile.
func (r *Replica) RemoveLocal(o *Object) {
	o.alive = false
	r.locals = slices.DeleteFunc(slices.Clone(r.locals), func(other *Object) bool { return other == o })
}

// then comes to the local objects behind others. The functions of Store need it that a local object
// which is there at the beginning and goes meanwhile is left out.
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

// Plan is how values of the object are coded: by the server's layout.
func (o *Object) Plan() *codec.Plan { return o.class.plan }

// Newest is the newest version. It is valid until the next packet is applied.
func (o *Object) Newest() codec.Values { return o.hist.newest() }
