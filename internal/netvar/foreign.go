package netvar

import (
	"iter"
	"reflect"
	"slices"

	"github.com/netloop/netloop/internal/codec"
)

// A server may have other classes than its client, and other fields in them. The client then reads
// the server's layout. It binds each class of the server's table to its own class of the same name.
// Packets, masks, stored versions and digests use the server's layout; only the live value, an S of
// this side, holds the common fields.

// BindClass returns the client's binding of a class of the server, with the server's name and
// layout and the live values of own. If own is nil, this side does not declare the class: its
// objects are stored, because records and digests count them, but are not visible to the game. If a
// field has another type on this side, the error is a *codec.Mismatch.
func BindClass(name string, own *Class, layout codec.Type, budget *codec.Budget) (*Class, error) {
	t, e := reflect.TypeFor[nobody](), []codec.Encodings(nil)
	if own != nil {
		t, e = own.Type(), own.plan.Encodings()
	}
	p, err := codec.Bind(t, layout, budget, e...)
	if err != nil {
		return nil, err
	}
	c := newClass(name, p)
	if c.unknown = own == nil; !c.unknown {
		c.own = own
	}
	return c, nil
}

// nobody is the type of live values of undeclared classes. No game can name it.
type nobody struct{}

// shows reports whether two values differ on this side: in the owner, or in a field that both sides
// have.
func (c *Class) shows(a, b *codec.Values) bool {
	return c.owner(a) != c.owner(b) || c.plan.Shows(a, b)
}

// Adapt clears the replica for another server. It then reads the classes of the table, made by
// BindClass in the server's order, or its own classes if server is nil. Settings of TellChanges and
// KeepForDrawing are kept; classes that the server lacks have no objects.
func (r *Replica) Adapt(server *Table) {
	ours, silent, asked := r.ours, r.silent, r.drawing.asked
	if server == nil {
		*r = *NewReplica(ours)
		r.silent, r.quiet = silent, silent
		r.drawing.asked, r.drawing.keeps = asked, slices.Clone(asked)
		return
	}
	*r = *NewReplica(server)
	r.ours, r.silent, r.quiet = ours, silent, make([]bool, len(server.classes))
	r.drawing.asked = asked
	r.bound = make([]*Class, len(ours.classes))
	for _, c := range server.classes {
		r.quiet[c.index] = c.unknown || silent[c.own.index]
		if !c.unknown {
			r.drawing.keeps[c.index] = asked[c.own.index]
			r.bound[c.own.index] = c
		}
	}
}

// served returns the server's class that a class of this side is bound to, or nil.
func (r *Replica) served(c *Class) *Class {
	if r.bound == nil {
		return c
	}
	if c.index < 0 || c.index >= len(r.bound) {
		return nil
	}
	if b := r.bound[c.index]; b != nil && b.own == c {
		return b
	}
	return nil // The server has no class of that name, or c belongs to another schema.
}

// All implements Store.
func (r *Replica) All(c *Class) iter.Seq[*Object] {
	own := c
	first := iter.Seq[*Object](func(func(*Object) bool) {})
	if c = r.served(c); c != nil {
		first = r.set.All(c)
	}
	return r.then(first, func(o *Object) bool { return o.Class() == own })
}

// Len implements Store.
func (r *Replica) Len(c *Class) int {
	n := 0
	for _, o := range r.locals {
		if o.Class() == c {
			n++
		}
	}
	if c = r.served(c); r.table.has(c) {
		n += r.classes[c.index].count()
	}
	return n
}
