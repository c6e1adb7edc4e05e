package netloop

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/room"
)

// Target is a set of clients: the receivers of a message, or the clients that may see an object
// ([VisibleTo]). The zero Target is empty. Targets combine: Observers(ship).Except(from.ID()) is
// every client that sees the ship except the sender.
type Target struct {
	all      bool
	to       []ClientID
	matches  func(*Client) bool
	observed interface{ observedBy(*Client) bool }
	owned    interface{ Owner() ClientID }
	groups   []*ClientGroup // groups that the target names; it changes with their members

	except []ClientID // clients that are removed from the target
}

// Everyone is the target of all clients that have joined.
func Everyone() Target { return Target{all: true} }

// To is the target of the given clients. Without ids the target is empty.
func To(ids ...ClientID) Target { return Target{to: ids} }

// Except is the target of all clients except the given ones.
func Except(ids ...ClientID) Target { return Target{all: true, except: ids} }

// OwnerOf is the target of the client that owns an object when the target is used; it may be empty.
func OwnerOf(o interface{ Owner() ClientID }) Target { return Target{owned: o} }

// Observers is the target of the clients that have an [Object], or will have it with their next
// snapshot. A despawned object has no observers.
func Observers(o interface{ observedBy(*Client) bool }) Target { return Target{observed: o} }

// Where is the target of the clients for which the function returns true.
func Where(fn func(*Client) bool) Target { return Target{matches: fn} }

// Except returns the target without the given clients.
func (g Target) Except(ids ...ClientID) Target {
	g.except = append(slices.Clip(g.except), ids...)
	return g
}

// And returns the target of the clients that are in both targets.
func (g Target) And(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) && other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// Or returns the target of the clients that are in at least one of both targets. Each gets the
// message once.
func (g Target) Or(other Target) Target {
	return Target{
		matches: func(c *Client) bool { return g.includes(c) || other.includes(c) },
		groups:  slices.Concat(g.groups, other.groups),
	}
}

// everyone reports whether the target includes all clients, including clients that join later.
func (g *Target) everyone() bool { return g.all && len(g.except) == 0 }

func (g *Target) includes(c *Client) bool {
	switch {
	case slices.Contains(g.except, c.ID()):
		return false
	case g.all:
		return true
	case g.matches != nil:
		return g.matches(c)
	case g.observed != nil:
		return g.observed.observedBy(c)
	case g.owned != nil:
		return g.owned.Owner() == c.ID()
	}
	return slices.Contains(g.to, c.ID())
}

// VisibleTo shows the object to the clients of the target only. Without it all clients have the
// object. [Object.SetVisible] documents the times at which the target is evaluated. A client cannot
// infer a hidden object from the ids of other objects.
func VisibleTo(to Target) SpawnOption {
	return SpawnOption{func(s *spawn) { s.visible = to }}
}

// SetVisible shows the object only to the clients of the target, from the end of this tick;
// [Everyone] shows it to all clients. A client for which the object appears gets a spawn, and a
// client for which it disappears gets a despawn. To hide and show an object within one tick has no
// effect. SetVisible panics on a client.
//
// The object keeps its id, and the id of an object that was spawned without [VisibleTo] reveals
// that other objects exist. So use that option if the existence of the object is secret from the
// start.
//
// The target is stored with the object. It is evaluated at the end of the tick for every client, or
// on a [Grid] for clients that are near enough, and then again
//
//   - for each client that joins, after its OnJoin functions have run;
//   - for each client that joins or leaves a [ClientGroup] that the target names;
//   - when the object's owner changes: [OwnerOf] names the new owner;
//   - after [Object.Invalidate].
//
// It is not evaluated each tick: call Invalidate when the result of a [Where] function changes, or
// when the clients of [Observers] change. A function must not change the game's state; if it
// panics, the object is hidden.
func (o *Object[S]) SetVisible(t *Tick, to Target) {
	t.server("Object.SetVisible").setVisible(o.o, to)
}

// Invalidate makes the room evaluate the target of [Object.SetVisible] and the rules of
// [Class.Reads] again at the end of this tick, for every client. It panics on a client.
func (o *Object[S]) Invalidate(t *Tick) { t.server("Object.Invalidate").e.World().Recheck(o.o) }

func (r *Room) setVisible(o *state.Object, to Target) {
	r.e.World().SetAudience(o, r.audience(o.Class(), to))
}

// audience returns a target as the audience of an object; nil: all clients.
func (r *Room) audience(c *state.Class, to Target) interest.Audience {
	if to.everyone() {
		return nil
	}
	return &audience{r, c, to}
}

// audience is the target of an object. It implements interest.Audience.
type audience struct {
	room  *Room
	class *state.Class
	to    Target
}

// Includes implements interest.Audience. It runs within the critical system netvar.snapshot, so it
// recovers a panic of the game's function.
func (a *audience) Includes(p *interest.Viewer) bool {
	defer a.room.e.Guard().Recover(&panicguard.Func{Name: "VisibleTo", Class: a.class.Name(), Effect: "the object is hidden"}, nil)
	return a.to.includes(peerOf(p))
}

// peerOf returns the client of an interest.Viewer.
func peerOf(p *interest.Viewer) *Client { return clientOf(p.Handle.(*room.Client)) }

// ClientGroup is a set of clients that targets can name, such as a team, a squad or the visitors of
// a building. The goroutine of its clients' room owns it. A client that leaves the room is removed
// from its groups after the OnLeave functions have run.
type ClientGroup struct {
	objects   []*state.Object // objects whose target names the group, as of indexedAt
	indexedAt uint64          // objects is current if this equals Room.indexedAt
}

// NewClientGroup makes a group without members.
func NewClientGroup() *ClientGroup { return new(ClientGroup) }

// MaxClientGroups bounds the number of groups of a client, because each evaluation of a target
// searches them.
const MaxClientGroups = 64

// Add adds a client to the group. The objects that are visible to the group appear for the client
// at the end of this tick. Add panics if the client is already in [MaxClientGroups] groups, and on
// a client.
func (g *ClientGroup) Add(t *Tick, c *Client) {
	r := t.server("ClientGroup.Add")
	c.mustExist("ClientGroup.Add")
	if g.Has(c) {
		return
	}
	if len(c.groups) == MaxClientGroups {
		panic(fmt.Sprintf("netloop: ClientGroup.Add: client %d is in %d groups, the most that there may be: remove it from some", c.ID(), MaxClientGroups))
	}
	c.groups = append(c.groups, g)
	r.groupChanged(g, c)
}

// Remove removes a client from the group. Objects that the client sees only as a member disappear
// for it at the end of this tick. It panics on a client.
func (g *ClientGroup) Remove(t *Tick, c *Client) {
	r := t.server("ClientGroup.Remove")
	c.mustExist("ClientGroup.Remove")
	if i := slices.Index(c.groups, g); i >= 0 {
		c.groups = slices.Delete(c.groups, i, i+1)
		r.groupChanged(g, c)
	}
}

// Has reports whether the client is in the group. Nil is in no group.
func (g *ClientGroup) Has(c *Client) bool { return c != nil && slices.Contains(c.groups, g) }

// InGroup is the target of a group's members at the time the target is used.
func InGroup(g *ClientGroup) Target {
	return Target{matches: g.Has, groups: []*ClientGroup{g}}
}

// groupChanged marks the objects whose targets name a group: the next capture evaluates them for
// the client that has joined or left the group. For other clients the result does not change.
func (r *Room) groupChanged(g *ClientGroup, c *Client) {
	for _, o := range r.objectsNaming(g) {
		r.e.World().RecheckFor(o, &c.e.Peer().Viewer)
	}
}

// objectsNaming returns the objects whose target names a group. It does not return objects that
// were spawned or got another target since the last capture, because the next capture evaluates
// these for all clients.
func (r *Room) objectsNaming(g *ClientGroup) []*state.Object {
	if now := r.e.Captured() + 1; r.indexedAt != now {
		r.indexedAt = now
		r.indexAllGroups()
	}
	if g.indexedAt != r.indexedAt {
		return nil
	}
	return g.objects
}

// indexAllGroups sets the lists of objects of all groups at once, so that a tick visits each object
// only once, independent of the number of changed groups.
func (r *Room) indexAllGroups() {
	w := r.e.World()
	for o := range w.Guarded {
		if a, ok := w.Audience(o).(*audience); ok {
			r.indexGroups(a.to.groups, o)
		}
	}
	for o := range w.Restricted {
		for _, to := range *o.Handle.(interface{ readBy() *[]Target }).readBy() {
			r.indexGroups(to.groups, o)
		}
	}
}

// indexGroups adds an object to the lists of the given groups.
func (r *Room) indexGroups(groups []*ClientGroup, o *state.Object) {
	for _, g := range groups {
		if g.indexedAt != r.indexedAt {
			clear(g.objects)
			g.objects, g.indexedAt = g.objects[:0], r.indexedAt
		}
		if n := len(g.objects); n == 0 || g.objects[n-1] != o { // A target may name a group twice.
			g.objects = append(g.objects, o)
		}
	}
}
