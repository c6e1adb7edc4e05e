package e2e_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// kind is a class of the simulation with any state type.
type kind interface {
	name() string
	fields() []netloop.Field
	onGrid() bool
	ruled() bool // some fields have read rules

	spawn(t *netloop.Tick, it *item, rng *rand.Rand, o []netloop.SpawnOption)
	edit(t *netloop.Tick, it *item, seed uint64)
	step(t *netloop.Tick, it *item) // increments the count

	capture(it *item, tick uint64)
	position(it *item) (x, y float64)
	sideOf(it *item) int
	shown(it *item, r rights) string
	sizeOf(it *item) int

	has(t *netloop.Tick, yield func(key, text string)) // yields a client's objects
	watch(g *simClient)
	audit(w *netlooptest.World, g *simClient)
}

// object is a netloop.Object of any kind.
type object interface {
	Owner() netloop.ClientID
	SetOwner(*netloop.Tick, netloop.ClientID)
	SetVisible(*netloop.Tick, netloop.Target)
	Invalidate(*netloop.Tick)
	Despawn(*netloop.Tick)
	Explain(*netloop.Tick, *netloop.Client, string) (netloop.Explanation, error)
}

// model computes the expected state of each client from plain values of the simulation, which
// makes every change in both and reads none back from the runtime.
type model struct {
	tick         uint64
	items        []*item // in the order of their spawns
	removedItems []*item // despawned
	clients      []*simClient
	sides        [numSides]map[netloop.ClientID]bool // the members of each group
	guild        map[netloop.ClientID]bool           // by a function; needs Invalidate
	largest      int                                 // size of the largest record so far
}

const numSides = 3

// item is the test's copy of an object.
type item struct {
	kind         kind
	obj          object
	key          string
	live         any // a pointer to the current state
	last         any // a pointer to the state at its last capture
	owner        netloop.ClientID
	keep         bool // kept after its owner's leave
	sees         audience
	namedClients map[netloop.ClientID]bool // members of an audience by function

	dead   bool
	edited bool   // since the last capture
	slow   uint64 // tick of the first capture; see holdBoiler
	x, y   float64
	texts  map[rights]string // of the last capture
}

// audience is a target, and the test's own version of it.
type audience struct {
	target netloop.Target
	admits func(id netloop.ClientID) bool
}

// view is the expected state of an object at a client from a tick until the next view.
type view struct {
	tick   uint64
	since  uint64 // the first tick of its visibility without a break, 0 = hidden
	rights rights
	text   string
}

// viewpoint is a viewpoint on the grid, at an item or at a position.
type viewpoint struct {
	with *item
	x, y float64
}

// settle computes the expected state of each client at the end of a tick, right before
// netvar.snapshot.
func (m *model) settle(tick uint64) {
	m.tick = tick
	for _, it := range m.items {
		if it.capture(tick) {
			m.largest = max(m.largest, it.kind.sizeOf(it))
		}
	}
	for _, g := range m.clients {
		if g.in {
			g.settleViewpoints()
		}
	}
	for _, it := range m.items {
		for _, g := range m.clients {
			if g.in {
				m.settleFor(g, it)
			}
		}
	}
	m.items = slices.DeleteFunc(m.items, func(it *item) bool {
		if it.dead {
			m.removedItems = append(m.removedItems, it)
		}
		return it.dead
	})
}

// capture stores the state for the snapshot, and reports whether it may have changed.
func (it *item) capture(tick uint64) (looked bool) {
	if it.dead {
		return false
	}
	if it.slow == 0 {
		it.slow = tick
	}
	looked = it.edited || it.kind.name() == boilers.Name() // its changes may have waited
	if it.edited = false; looked {
		it.kind.capture(it, tick)
		clear(it.texts)
	}
	if it.kind.onGrid() {
		it.x, it.y = it.kind.position(it)
	}
	return looked
}

// settleFor adds a view if it differs from the last one.
func (m *model) settleFor(g *simClient, it *item) {
	before := g.newest(it.key)
	v := view{tick: m.tick}
	if !it.dead && it.sees.admits(g.id) && (it.owner == g.id || !it.kind.onGrid() || g.near(it, before.since > 0)) {
		v.rights = m.rightsOf(g, it)
		v.text = it.text(v.rights)
		if v.since = before.since; v.since == 0 {
			v.since = m.tick
		}
	}
	if v.since != before.since || v.rights != before.rights || v.text != before.text {
		g.views[it.key] = append(g.views[it.key], v)
	}
}

func (m *model) rightsOf(g *simClient, it *item) rights {
	if !it.kind.ruled() {
		return rights{true, true, true}
	}
	side := it.kind.sideOf(it)
	return rights{owner: it.owner == g.id, side: side >= 0 && m.sides[side][g.id], guild: m.guild[g.id]}
}

func (it *item) text(r rights) string {
	if it.texts[r] == "" {
		it.texts[r] = it.kind.shown(it, r)
	}
	return it.texts[r]
}

// The measures of the simulation's grid. Zones consist of whole cells: an item becomes visible if
// the gap between cells is within the radius, and hidden beyond radius and margin.
const gridCell, gridRadius, gridMargin = 10.0, 40.0, 20.0

// near reports whether one of the eyes sees the item; before is the last result.
func (g *simClient) near(it *item, before bool) bool {
	for _, e := range g.viewpoints {
		gap := math.Hypot(cellsBetween(e.x, it.x), cellsBetween(e.y, it.y)) * gridCell
		if gap <= gridRadius || before && gap <= gridRadius+gridMargin {
			return true
		}
	}
	return false
}

func cellsBetween(a, b float64) float64 {
	return max(0, math.Abs(math.Floor(a/gridCell)-math.Floor(b/gridCell))-1)
}

// settleViewpoints moves the eyes with their items. An eye of a despawned item remains at its last
// position; if the item was despawned before the eye was set, there is no eye.
func (g *simClient) settleViewpoints() {
	if g.nextViewpoints != nil {
		g.viewpoints, g.nextViewpoints = slices.DeleteFunc(g.nextViewpoints, func(e viewpoint) bool { return e.with != nil && e.with.dead }), nil
	}
	for i := range g.viewpoints {
		if e := &g.viewpoints[i]; e.with != nil && !e.with.dead {
			e.x, e.y = e.with.x, e.with.y
		}
	}
}

// join and leave follow the room's hooks.
func (m *model) join(g *simClient, id netloop.ClientID) { g.id, g.in = id, true }

func (m *model) leave(id netloop.ClientID) {
	m.simClient(id).in = false
	for _, members := range append(m.sides[:], m.guild) {
		delete(members, id)
	}
	for _, it := range m.items {
		if it.owner == id {
			m.own(it, id)
		}
	}
}

// own gives the item to a client; an absent client's item is kept or despawned like a leaver's.
func (m *model) own(it *item, id netloop.ClientID) {
	clear(it.texts)
	switch {
	case id == 0 || m.simClient(id) != nil:
		it.owner = id
	case it.keep:
		it.owner = 0
	default:
		it.dead = true
	}
}

// simClient returns the client with an id, or nil if it is not in the room.
func (m *model) simClient(id netloop.ClientID) *simClient {
	for _, g := range m.clients {
		if g.in && g.id == id {
			return g
		}
	}
	return nil
}

// newest returns the expected state of an object as of the last tick.
func (g *simClient) newest(key string) view {
	if views := g.views[key]; len(views) > 0 {
		return views[len(views)-1]
	}
	return view{}
}

// between returns the expected states in the ticks from first to last, in order.
func (g *simClient) between(key string, first, last uint64) []view {
	views := g.views[key]
	i := len(views)
	for i > 0 && views[i-1].tick > last {
		i--
	}
	end := i
	for i > 0 && views[i-1].tick > first {
		i--
	}
	return views[max(0, i-1):end]
}
