package netloop

import (
	"cmp"
	"reflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Object is one replicated object: on the server the original, on a client a copy with the newest
// state that has arrived.
type Object[S any] struct {
	o    *state.Object
	keep bool // the object is kept when its owner leaves

	readers []Target // on a server: the targets of Class.Reads, by rule
	offTick *offTick // on a server with Config.CheckEdits
}

// wrap returns the typed handle of an object, the same each time.
func wrap[S any](o *state.Object) *Object[S] {
	if h, ok := o.Handle.(*Object[S]); ok {
		return h
	}
	h := &Object[S]{o: o}
	o.Handle = h
	return h
}

// State returns a copy of the object's state. Slices and maps in it are shared with
// the object: copy them before changing them. On a server only the room's goroutine may call it;
// with [Config] CheckEdits, and in package netlooptest, it panics in work given to [Go] and in
// OnAdmit.
func (o *Object[S]) State() S {
	if o.offTick != nil {
		o.offTick.check()
	}
	return *(*S)(o.o.Live())
}

// Edit returns a pointer to the object's state, to change it, and marks the object as changed. Use
// the pointer only until the running call of game code returns: a later change through it may never
// be sent. Package netlooptest and [Config] CheckEdits find such changes. An edit of a despawned
// object has no visible effect. Edit panics on a client.
func (o *Object[S]) Edit(t *Tick) *S {
	t.server("Object.Edit").e.World().Edit(o.o)
	return (*S)(o.o.Live())
}

// Despawn removes the object. The snapshot of this tick removes it from clients. A second call has
// no effect. It panics on a client.
func (o *Object[S]) Despawn(t *Tick) { t.server("Object.Despawn").e.World().Despawn(o.o) }

// Alive reports whether the object has not been despawned.
func (o *Object[S]) Alive() bool { return o.o.Alive() }

// ChangedTick returns the tick of the object's last change, in the server's numbers. On a server it
// is the tick of the newest capture with a change of the object. On a client it is the tick in
// which the value of [Object.State] was captured; for an object that was hidden it is at least the
// tick in which the object appeared.
func (o *Object[S]) ChangedTick() uint64 { return o.o.Changed() }

// Ref returns a reference that can be sent in messages and in replicated state.
func (o *Object[S]) Ref() Ref[S] { return Ref[S]{codec.Ref{ID: uint64(o.o.ID())}} }

// observedBy reports whether a client has the object, or will have it with the
// next snapshot.
func (o *Object[S]) observedBy(c *Client) bool { return c.e.Peer().Shows(o.o) }

// object and repoint implement hooks of package bridge.
func (o *Object[S]) object() *state.Object { return o.o }

func (o *Object[S]) repoint(to *state.Object) {
	o.o = to
	to.Handle = o
}

// readBy returns readers, for code that does not know the type S.
func (o *Object[S]) readBy() *[]Target { return &o.readers }

// Ref refers to an object by its id, which is the same on the server and on every client. A Ref may
// be stored, compared, used as a key of a map, and sent in messages and in replicated state. The
// zero Ref refers to no object.
type Ref[S any] struct{ ref codec.Ref }

// Get returns the object. It reports false if the object is despawned or, on a client, has not
// arrived yet or is not visible. The cost does not depend on the number of objects. To iterate over
// objects use [Class.All] and [Class.Owned].
func (r Ref[S]) Get(t *Tick) (*Object[S], bool) {
	t.check("Ref.Get")
	o, ok := t.store.Get(state.ID(r.ref.ID))
	if !ok || o.Class().Type() != reflect.TypeFor[S]() { // A client may send any id.
		return nil, false
	}
	return wrap[S](o), true
}

// Compare returns −1, 0 or 1. It orders Refs in the order in which All iterates over their objects.
func (r Ref[S]) Compare(other Ref[S]) int { return cmp.Compare(r.ref.ID, other.ref.ID) }

// String returns the id in readable form, such as 17.3, as the admin page /explain accepts it.
func (r Ref[S]) String() string { return state.ID(r.ref.ID).String() }

// IsZero reports whether the Ref refers to no object at all.
func (r Ref[S]) IsZero() bool { return r.ref.ID == 0 }

// OwnedBy makes a client the owner of the object. If the client is not in the room, for example
// because it left before the result of a [Go] arrived, the [LeavePolicy] applies at once: the
// object is despawned before any client sees it, or it has no owner.
func OwnedBy(id ClientID) SpawnOption { return SpawnOption{func(s *spawn) { s.owner = id }} }

// LeavePolicy tells whether an object is despawned or kept when its owner leaves.
type LeavePolicy uint8

// The leave policies. By default the object is despawned, after the room's OnLeave functions have
// run.
const (
	LeaveDespawns LeavePolicy = iota
	LeaveKeeps                // the object is kept, without an owner
)

// WhenOwnerLeaves sets the object's [LeavePolicy].
func WhenOwnerLeaves(p LeavePolicy) SpawnOption {
	return SpawnOption{func(s *spawn) { s.keep = p == LeaveKeeps }}
}

// Owner returns the client that owns the object, or 0.
func (o *Object[S]) Owner() ClientID { return ClientID(o.o.Owner()) }

// SetOwner makes another client the owner of the object; 0: no owner. If the client has left the
// room, the object's [LeavePolicy] applies at once. It panics on a client.
func (o *Object[S]) SetOwner(t *Tick, c ClientID) {
	t.server("Object.SetOwner").setOwner(o.o, c)
}

// setOwner sets the owner of an object; 0: no owner.
func (r *Room) setOwner(o *state.Object, c ClientID) {
	r.e.World().SetOwner(o, uint64(c))
	if _, in := r.e.Client(uint64(c)); !in && c != 0 {
		r.e.Disown(o)
	}
}

// kept returns keep, for code that does not know the type S.
func (o *Object[S]) kept() bool { return o.keep }
