package netloop

import (
	"cmp"
	"reflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Object is one replicated object: on the server the original, on a client the
// newest state that arrived.
type Object[S any] struct {
	o    *state.Object
	keep bool // is kept when its owner leaves

	readers []Target // on a server: the targets of Class.Reads, by rule
	asides  *asides  // on a server with Config.CheckEdits
}

// wrap returns the typed handle of an object, the same one each time.
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
	if o.asides != nil {
		o.asides.check()
	}
	return *(*S)(o.o.Live())
}

// Edit returns the object's state for changes, and marks the object as changed. The pointer may be
// used until the running call of game code returns; a later change through it may never be sent.
// Package netlooptest finds such changes, and a server with [Config] CheckEdits. Editing a
// despawned object has no visible effect. It panics on a client.
func (o *Object[S]) Edit(t *Tick) *S {
	t.server("Object.Edit").e.World().Edit(o.o)
	return (*S)(o.o.Live())
}

// Despawn removes the object. Clients learn of it with the snapshot of this
// tick. Despawning twice does nothing. It panics on a client.
func (o *Object[S]) Despawn(t *Tick) { t.server("Object.Despawn").e.World().Despawn(o.o) }

// Alive reports whether the object has not been despawned.
func (o *Object[S]) Alive() bool { return o.o.Alive() }

// ChangedTick returns the server's tick in which the value was captured. On a client it is the tick
// of the value that [Object.State] returns, and for an object that was hidden at least the tick in
// which it was shown; on a server it is the tick of the newest capture that found a change.
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

// readBy gives access to readers for code without the type S.
func (o *Object[S]) readBy() *[]Target { return &o.readers }

// Ref refers to an object without holding it: it is the object's id, the same on the server and on
// every client. It may be kept, compared, used as a key of a map, and sent in messages and in
// replicated state. The zero Ref refers to none.
type Ref[S any] struct{ ref codec.Ref }

// Get returns the object. It reports false if the object is despawned or, on a client, has not
// arrived yet or is not visible to it. It costs the same however many objects there are.
// [Class.All] and [Class.Owned] walk over several.
func (r Ref[S]) Get(t *Tick) (*Object[S], bool) {
	t.check("Ref.Get")
	o, ok := t.store.Get(state.ID(r.ref.ID))
	if !ok || o.Class().Type() != reflect.TypeFor[S]() { // A client may send any id.
		return nil, false
	}
	return wrap[S](o), true
}

// Compare orders Refs as All iterates over their objects: it returns −1, 0 or 1.
func (r Ref[S]) Compare(other Ref[S]) int { return cmp.Compare(r.ref.ID, other.ref.ID) }

// String returns the id in readable form, such as 17.3, as the admin page /explain takes it.
func (r Ref[S]) String() string { return state.ID(r.ref.ID).String() }

// IsZero reports whether the Ref refers to no object at all.
func (r Ref[S]) IsZero() bool { return r.ref.ID == 0 }

// OwnedBy makes a client the owner of the object. If the client is not in the room, because it left
// before the result of a [Go] arrived, the [LeavePolicy] applies at once: the object is despawned,
// and no client sees it, or it has no owner.
func OwnedBy(id ClientID) SpawnOption { return SpawnOption{func(s *spawn) { s.owner = id }} }

// LeavePolicy is the effect on an object when its owner leaves.
type LeavePolicy uint8

// The leave policies. By default the object despawns, after the room's OnLeave functions ran.
const (
	LeaveDespawns LeavePolicy = iota
	LeaveKeeps                // the object is kept, without an owner
)

// WhenOwnerLeaves sets the policy for when the object's owner leaves.
func WhenOwnerLeaves(p LeavePolicy) SpawnOption {
	return SpawnOption{func(s *spawn) { s.keep = p == LeaveKeeps }}
}

// Owner returns the client that owns the object, or 0.
func (o *Object[S]) Owner() ClientID { return ClientID(o.o.Owner()) }

// SetOwner makes another client the owner of the object; 0 is no owner. If the client has left the
// room, the object's [LeavePolicy] applies at once. It panics on a client.
func (o *Object[S]) SetOwner(t *Tick, c ClientID) {
	t.server("Object.SetOwner").setOwner(o.o, c)
}

// setOwner sets the owner of an object; 0 is none.
func (r *Room) setOwner(o *state.Object, c ClientID) {
	r.e.World().SetOwner(o, uint64(c))
	if _, in := r.e.Client(uint64(c)); !in && c != 0 {
		r.e.Disown(o)
	}
}

// kept gives access to keep for code without the type S.
func (o *Object[S]) kept() bool { return o.keep }
