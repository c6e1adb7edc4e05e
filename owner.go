package netloop

import "github.com/netloop/netloop/internal/netvar"

// OwnedBy makes a client the owner of the object. With one that is not in the room, as
// it has left before the result of a [Go] came, the object is at once what its
// [LeavePolicy] says: despawned, and no client hears of it, or without an owner.
func OwnedBy(id ClientID) SpawnOption { return func(s *spawn) { s.owner = id } }

// LeavePolicy says what becomes of an object when its owner leaves.
type LeavePolicy uint8

// What may become of an object when its owner leaves. By default it despawns,
// after the room's OnLeave functions ran.
const (
	Despawn LeavePolicy = iota
	Keep                // it stays, without an owner
)

// OnLeave says what becomes of the object when its owner leaves.
func OnLeave(p LeavePolicy) SpawnOption { return func(s *spawn) { s.keep = p == Keep } }

// Owner returns the client that owns the object, or 0.
func (o *Object[S]) Owner() ClientID { return ClientID(o.o.Owner()) }

// SetOwner makes another client the owner of the object; 0 is nobody. With one that is
// not in the room, as it has left, the object is at once what its [LeavePolicy] says. It
// panics on a client.
func (o *Object[S]) SetOwner(t *Tick, c ClientID) {
	t.server("Object.SetOwner").setOwner(o.o, c)
}

// setOwner gives an object to a client, or to nobody. Nobody leaves an object behind:
// one that got it too late would never leave again.
func (r *Room) setOwner(o *netvar.Object, c ClientID) {
	r.world.SetOwner(o, uint64(c))
	if _, in := r.clients.get(c); !in && c != 0 {
		r.disown(o)
	}
}

// disownAll decides what becomes of a leaver's objects.
func (r *Room) disownAll(c *Client) {
	for o := range r.world.Owned(uint64(c.id)) {
		r.disown(o)
	}
}

func (r *Room) disown(o *netvar.Object) {
	if h, ok := o.Handle.(interface{ kept() bool }); ok && h.kept() {
		r.world.SetOwner(o, 0)
		return
	}
	r.world.Despawn(o)
}

// kept serves code that does not know S.
func (o *Object[S]) kept() bool { return o.keep }
