package e2e_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// kind is a class of the simulation whose state has a type of its own.
type kind interface {
	name() string
	fields() []netloop.Field
	onGrid() bool
	ruled() bool // not everybody reads everything

	spawn(t *netloop.Tick, it *item, rng *rand.Rand, o []netloop.SpawnOption)
	edit(t *netloop.Tick, it *item, seed uint64)
	step(t *netloop.Tick, it *item) // counts

	capture(it *item, tick uint64)
	position(it *item) (x, y float64)
	sideOf(it *item) int
	shown(it *item, r rights) string
	sizeOf(it *item) int

	has(t *netloop.Tick, yield func(key, text string)) // what a client has
	watch(g *guest)
	audit(w *netlooptest.World, g *guest)
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

// model is what each client shall have, from plain values that the simulation keeps: it makes every
// change to both, and never asks the runtime what came of it.
type model struct {
	tick    uint64
	items   []*item // in the order of their spawns
	buried  []*item // despawned
	guests  []*guest
	sides   [numSides]map[netloop.ClientID]bool // the members of each group
	guild   map[netloop.ClientID]bool           // by a function, which needs Invalidate
	largest int                                 // record of all so far
}

const numSides = 3

// item is an object as the test knows it.
type item struct {
	kind  kind
	obj   object
	key   string
	live  any // a pointer to what the game has made of it
	last  any // to what was captured of it last
	owner netloop.ClientID
	keep  bool // when its owner leaves
	sees  audience
	lit   map[netloop.ClientID]bool // of an audience that is a function

	dead   bool
	edited bool   // since the last capture
	slow   uint64 // tick of its first capture, and see holdBoiler
	x, y   float64
	texts  map[rights]string // of what was captured last
}

// audience is a target, and what the test means by it.
type audience struct {
	target netloop.Target
	admits func(id netloop.ClientID) bool
}

// view is what a client shall have of an object from a tick on, until the next view.
type view struct {
	tick   uint64
	since  uint64 // since when it may see the object without a break, 0 = it may not
	rights rights
	text   string
}

// eye is a viewpoint on the grid, which goes along with an item or with none.
type eye struct {
	with *item
	x, y float64
}

// settle says what each client shall have at the end of a tick, right before netvar.snapshot.
func (m *model) settle(tick uint64) {
	m.tick = tick
	for _, it := range m.items {
		if it.capture(tick) {
			m.largest = max(m.largest, it.kind.sizeOf(it))
		}
	}
	for _, g := range m.guests {
		if g.in {
			g.settleEyes()
		}
	}
	for _, it := range m.items {
		for _, g := range m.guests {
			if g.in {
				m.settleFor(g, it)
			}
		}
	}
	m.items = slices.DeleteFunc(m.items, func(it *item) bool {
		if it.dead {
			m.buried = append(m.buried, it)
		}
		return it.dead
	})
}

// capture keeps what the snapshot shows of the item, and tells whether that may be new.
func (it *item) capture(tick uint64) (looked bool) {
	if it.dead {
		return false
	}
	if it.slow == 0 {
		it.slow = tick
	}
	looked = it.edited || it.kind.name() == boilers.Name() // which may have waited
	if it.edited = false; looked {
		it.kind.capture(it, tick)
		clear(it.texts)
	}
	if it.kind.onGrid() {
		it.x, it.y = it.kind.position(it)
	}
	return looked
}

// settleFor adds a view if it is another than before.
func (m *model) settleFor(g *guest, it *item) {
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

func (m *model) rightsOf(g *guest, it *item) rights {
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

// The measures of the simulation's grid. Zones are of whole cells: nothing is seen beyond cells
// whose gap is wider than radius and margin, and what is seen stays until then.
const gridCell, gridRadius, gridMargin = 10.0, 40.0, 20.0

// near says whether one of the eyes sees the item, which it did or did not before.
func (g *guest) near(it *item, before bool) bool {
	for _, e := range g.eyes {
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

// settleEyes moves the eyes along with their items. Those whose item is despawned stay where they
// were, and were nowhere if it was so when they were set.
func (g *guest) settleEyes() {
	if g.looks != nil {
		g.eyes, g.looks = slices.DeleteFunc(g.looks, func(e eye) bool { return e.with != nil && e.with.dead }), nil
	}
	for i := range g.eyes {
		if e := &g.eyes[i]; e.with != nil && !e.with.dead {
			e.x, e.y = e.with.x, e.with.y
		}
	}
}

// join and leave follow the room's hooks.
func (m *model) join(g *guest, id netloop.ClientID) { g.id, g.in = id, true }

func (m *model) leave(id netloop.ClientID) {
	m.guest(id).in = false
	for _, members := range append(m.sides[:], m.guild) {
		delete(members, id)
	}
	for _, it := range m.items {
		if it.owner == id {
			m.own(it, id)
		}
	}
}

// own gives the item to a client, or does with it what is done with what a leaver has.
func (m *model) own(it *item, id netloop.ClientID) {
	clear(it.texts)
	switch {
	case id == 0 || m.guest(id) != nil:
		it.owner = id
	case it.keep:
		it.owner = 0
	default:
		it.dead = true
	}
}

// guest returns the client of that id, if it is in the room.
func (m *model) guest(id netloop.ClientID) *guest {
	for _, g := range m.guests {
		if g.in && g.id == id {
			return g
		}
	}
	return nil
}

// newest returns what the client shall have of an object as of the last tick.
func (g *guest) newest(key string) view {
	if views := g.views[key]; len(views) > 0 {
		return views[len(views)-1]
	}
	return view{}
}

// between yields what it should have had in the ticks from first to last, in order.
func (g *guest) between(key string, first, last uint64) []view {
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
