package netloop

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/room"
)

// VisibleTo lets only the clients of the target have the object. Without it
// everybody has it. See [Object.SetVisible] for when the target is asked. The ids of other objects
// do not tell a client that there is one which it has not.
func VisibleTo(to Target) SpawnOption {
	return func(s *spawn) { s.visible = to }
}

// SetVisible lets only the clients of the target have the object from the end of
// this tick on; [Everyone] is everybody. A client for which that makes the object
// appear sees a spawn, one that loses it a despawn; hiding it and showing it in one
// tick is nothing. It panics on a client.
//
// The object keeps its id. Only with [VisibleTo] is that one which does not count other objects, so
// spawn an object with it if its existence is secret from the start.
//
// The target stays with the object. It is asked at the end of the tick for every
// client, or on a [Grid] for those near enough, and then again
//
//   - for each client that joins, after its OnJoin functions have run;
//   - for each client that comes to or goes from a [ClientGroup] that it names;
//   - when the object's owner changes: [OwnerOf] names whoever owns it then;
//   - after [Object.Invalidate].
//
// It is not asked each tick: a function of [Where] that begins to answer differently
// needs an Invalidate. So does [Observers] when others begin to see its object. A
// function must not change the game's state; one that panics hides the object.
func (o *Object[S]) SetVisible(t *Tick, to Target) {
	t.server("Object.SetVisible").setVisible(o.o, to)
}

// Invalidate lets the target of [Object.SetVisible], and the rules of [Class.Reads],
// be asked again at the end of this tick, for every client. It panics on a client.
func (o *Object[S]) Invalidate(t *Tick) { t.server("Object.Invalidate").e.World().Judge(o.o) }

func (r *Room) setVisible(o *netvar.Object, to Target) {
	r.e.World().SetAudience(o, r.audience(o.Class(), to))
}

// audience returns a target as the audience of an object; nil is everybody.
func (r *Room) audience(c *netvar.Class, to Target) netvar.Audience {
	if to.everyone() {
		return nil
	}
	return &audience{r, c, to}
}

// audience is the target of an object, as package netvar asks for it.
type audience struct {
	room  *Room
	class *netvar.Class
	to    Target
}

// Includes implements netvar.Audience. It runs within netvar.snapshot, which is
// critical, so a function of the game must not get its panic through.
func (a *audience) Includes(p *netvar.Peer) bool {
	defer a.room.e.Guard().Recover(&panicguard.Place{Name: "VisibleTo", Of: a.class.Name(), So: "the object is hidden"}, nil)
	return a.to.includes(peerOf(p))
}

// peerOf is the client that package netvar asks about.
func peerOf(p *netvar.Peer) *Client { return clientOf(p.Handle.(*room.Client)) }

// ClientGroup is a set of clients that targets can name: a team, a squad, who is in
// a building. It belongs to the goroutine of the room whose clients are in it. A
// client that leaves the room leaves its groups, after the OnLeave functions have run.
type ClientGroup struct {
	named   []*netvar.Object // objects whose targets name the group, as of namedAt
	namedAt uint64           // 1 + the tick of the newest capture before Room.nameGroups
}

// NewClientGroup makes a group without members.
func NewClientGroup() *ClientGroup { return new(ClientGroup) }

// MaxClientGroups bounds the groups that a client is in at once: each is looked
// through when a target asks.
const MaxClientGroups = 64

// Add puts a client into the group. The objects that are visible to the group
// appear to it at the end of this tick. It panics when the client is in
// [MaxClientGroups] groups already, and on a client.
func (g *ClientGroup) Add(t *Tick, c *Client) {
	r := t.server("ClientGroup.Add")
	c.need("ClientGroup.Add")
	if g.Has(c) {
		return
	}
	if len(c.groups) == MaxClientGroups {
		panic(fmt.Sprintf("netloop: ClientGroup.Add: client %d is in %d groups, the most that there may be: remove it from some", c.ID(), MaxClientGroups))
	}
	c.groups = append(c.groups, g)
	r.moved(g, c)
}

// Remove takes a client out of the group. What it may see only as a member
// disappears at the end of this tick. It panics on a client.
func (g *ClientGroup) Remove(t *Tick, c *Client) {
	r := t.server("ClientGroup.Remove")
	c.need("ClientGroup.Remove")
	if i := slices.Index(c.groups, g); i >= 0 {
		c.groups = slices.Delete(c.groups, i, i+1)
		r.moved(g, c)
	}
}

// Has reports whether the client is in the group. Nil is in none.
func (g *ClientGroup) Has(c *Client) bool { return c != nil && slices.Contains(c.groups, g) }

// InGroup is the members of a group, as they are when the target is used.
func InGroup(g *ClientGroup) Target {
	return Target{matches: g.Has, groups: []*ClientGroup{g}}
}

// moved lets the objects that name a group be judged at the next capture for the client that has
// come or gone: for others its members say nothing else.
func (r *Room) moved(g *ClientGroup, c *Client) {
	for _, o := range r.naming(g) {
		r.e.World().JudgeFor(o, c.e.Peer())
	}
}

// naming returns the objects whose targets name a group. Objects that are spawned or get another
// target after the list was made are not in it: the next capture judges them for all clients.
func (r *Room) naming(g *ClientGroup) []*netvar.Object {
	if now := r.e.Captured() + 1; r.namedAt != now {
		r.namedAt = now
		r.nameGroups()
	}
	if g.namedAt != r.namedAt {
		return nil
	}
	return g.named
}

// nameGroups lists for all groups at once which objects name them, so that a tick looks at each
// object once, however many groups change.
func (r *Room) nameGroups() {
	w := r.e.World()
	for o := range w.Guarded {
		if a, ok := w.Audience(o).(*audience); ok {
			r.nameIn(a.to.groups, o)
		}
	}
	for o := range w.Restricted {
		for _, to := range *o.Handle.(interface{ readBy() *[]Target }).readBy() {
			r.nameIn(to.groups, o)
		}
	}
}

// nameIn adds an object to the lists of some groups.
func (r *Room) nameIn(groups []*ClientGroup, o *netvar.Object) {
	for _, g := range groups {
		if g.namedAt != r.namedAt {
			clear(g.named)
			g.named, g.namedAt = g.named[:0], r.namedAt
		}
		if n := len(g.named); n == 0 || g.named[n-1] != o { // A target may name a group twice.
			g.named = append(g.named, o)
		}
	}
}
