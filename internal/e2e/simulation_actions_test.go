package e2e_test

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
)

// deed is something that the game does in a tick.
type deed struct {
	name   string
	weight int // how often, to those of the others
	do     func(r *trial, t *netloop.Tick)
}

// The deeds. Those that need an object, or a client in the room, do nothing without.
var deeds = []deed{
	{"spawn", 60, func(r *trial, t *netloop.Tick) {
		if len(r.m.items) < r.most {
			r.spawn(t)
		}
	}},
	{"spawn and despawn", 6, func(r *trial, t *netloop.Tick) { r.despawn(t, r.spawn(t)) }},
	{"despawn", 25, onItem((*trial).despawn)},
	{"despawn, and another in its place", 10, onItem(func(r *trial, t *netloop.Tick, it *item) {
		r.despawn(t, it)
		r.later(t, 1, func(t *netloop.Tick) { r.spawn(t) })
	})},
	{"edit", 400, onItem((*trial).edit)},
	{"march", 4, (*trial).march},
	{"edit and despawn", 5, onItem(func(r *trial, t *netloop.Tick, it *item) { r.edit(t, it); r.despawn(t, it) })},
	{"own", 30, onItem(func(r *trial, t *netloop.Tick, it *item) { r.own(t, it, r.someone()) })},
	{"own and edit", 30, onItem(func(r *trial, t *netloop.Tick, it *item) { r.own(t, it, r.someone()); r.edit(t, it) })},
	{"own by turns", 10, onItem(func(r *trial, t *netloop.Tick, it *item) {
		owner := it.owner
		r.own(t, it, r.someone())
		r.later(t, r.rng.IntN(3), func(t *netloop.Tick) { r.own(t, it, owner) })
	})},
	{"own by a leaver", 3, onItem(func(r *trial, t *netloop.Tick, it *item) { r.own(t, it, 1_000_000) })},
	{"show to some", 60, onItem(func(r *trial, t *netloop.Tick, it *item) { r.show(t, it, r.audience(it)) })},
	{"hide", 20, onItem(func(r *trial, t *netloop.Tick, it *item) { r.show(t, it, nobody) })},
	{"hide and show", 25, onItem(func(r *trial, t *netloop.Tick, it *item) {
		before := it.sees
		r.show(t, it, nobody)
		r.later(t, r.rng.IntN(4), func(t *netloop.Tick) { r.show(t, it, before) })
	})},
	{"grow, hide and show", 15, onItem(func(r *trial, t *netloop.Tick, it *item) {
		for range 6 { // which makes most tomes too large for a packet
			r.edit(t, it)
		}
		r.later(t, 1+r.rng.IntN(3), func(t *netloop.Tick) { r.show(t, it, nobody) })
		r.later(t, 4+r.rng.IntN(3), func(t *netloop.Tick) { r.show(t, it, everyone) })
	})},
	{"show and hide", 10, onItem(func(r *trial, t *netloop.Tick, it *item) {
		before := it.sees
		r.show(t, it, everyone)
		r.later(t, r.rng.IntN(4), func(t *netloop.Tick) { r.show(t, it, before) })
	})},
	{"let others in", 20, onItem(func(r *trial, t *netloop.Tick, it *item) {
		it.lit = r.some()
		it.obj.Invalidate(t)
	})},
	{"change a group", 30, onClient((*trial).regroup)},
	{"change the guild", 12, onClient(func(r *trial, t *netloop.Tick, c *netloop.Client, _ *guest) {
		r.m.guild[c.ID()] = !r.m.guild[c.ID()]
		for _, it := range r.m.items {
			if it.kind.ruled() {
				it.obj.Invalidate(t)
			}
		}
	})},
	{"look elsewhere", 40, onClient((*trial).look)},
	{"change a budget", 8, onClient(func(r *trial, t *netloop.Tick, c *netloop.Client, g *guest) {
		g.budget = []int{60, 100, 200, 400, 2000}[r.rng.IntN(5)]
		c.SetBudget(t, g.budget)
	})},
	{"change a weight", 10, onItem(func(r *trial, t *netloop.Tick, it *item) { it.obj.SetWeight(t, 8*r.rng.Float64()) })},
	{"explain", 15, func(r *trial, t *netloop.Tick) { r.explain(t) }},
	{"rest", 1, func(r *trial, t *netloop.Tick) { // for longer than versions are kept
		if r.rng.IntN(2) == 0 {
			r.idle = t.Number() + 130 + r.rng.Uint64N(40)
		}
	}},
}

// onItem does it to one of the objects.
func onItem(do func(r *trial, t *netloop.Tick, it *item)) func(*trial, *netloop.Tick) {
	return func(r *trial, t *netloop.Tick) {
		if n := len(r.m.items); n > 0 {
			do(r, t, r.m.items[r.rng.IntN(n)])
		}
	}
}

// onClient does it to one of the clients in the room.
func onClient(do func(r *trial, t *netloop.Tick, c *netloop.Client, g *guest)) func(*trial, *netloop.Tick) {
	return func(r *trial, t *netloop.Tick) {
		if c, ok := t.Client(r.someone()); ok {
			do(r, t, c, r.m.guest(c.ID()))
		}
	}
}

// pick returns one of a table by weight.
func pick[D any](rng *rand.Rand, table []D, weight func(*D) int) *D {
	all := 0
	for i := range table {
		all += weight(&table[i])
	}
	k := rng.IntN(all)
	for i := range table {
		if k -= weight(&table[i]); k < 0 {
			return &table[i]
		}
	}
	panic("unreachable")
}

// act is the game's system: it does a few deeds, and what earlier ones have left for this tick.
func (r *trial) act(t *netloop.Tick) {
	due := r.due[t.Number()]
	delete(r.due, t.Number())
	for _, do := range due {
		do(t)
	}
	if t.Number() < r.idle || r.over {
		return
	}
	for len(r.m.items) < r.most/2 && t.Number() == 1 {
		r.spawn(t)
	}
	for range r.rng.IntN(5) {
		d := pick(r.rng, deeds, func(d *deed) int { return d.weight })
		d.do(r, t)
		r.tally.deeds[d.name]++
	}
}

// later does something some ticks later, or at once.
func (r *trial) later(t *netloop.Tick, ticks int, do func(t *netloop.Tick)) {
	if ticks == 0 {
		do(t)
		return
	}
	at := t.Number() + uint64(ticks)
	r.due[at] = append(r.due[at], do)
}

func (r *trial) spawn(t *netloop.Tick) *item {
	it := &item{kind: kinds[r.rng.IntN(len(kinds))], sees: everyone, edited: true, lit: r.some(), texts: map[rights]string{}}
	var o []netloop.SpawnOption
	if it.keep = r.rng.IntN(2) == 0; it.keep {
		o = append(o, netloop.WhenOwnerLeaves(netloop.Keep))
	}
	if r.rng.IntN(3) == 0 {
		it.owner = r.someone()
		o = append(o, netloop.OwnedBy(it.owner))
	}
	if r.rng.IntN(4) == 0 {
		it.sees = r.audience(it)
		o = append(o, netloop.VisibleTo(it.sees.target))
	}
	it.kind.spawn(t, it, r.rng, o)
	r.m.items = append(r.m.items, it)
	return it
}

func (r *trial) despawn(t *netloop.Tick, it *item) {
	it.obj.Despawn(t)
	it.dead = true
}

// edit also tells who reads a vault that its side may be another.
func (r *trial) edit(t *netloop.Tick, it *item) {
	if it.dead {
		return
	}
	side := it.kind.sideOf(it)
	it.kind.edit(t, it, r.rng.Uint64())
	if it.edited = true; it.kind.sideOf(it) != side {
		it.obj.Invalidate(t)
	}
}

// march changes all objects, or those that everybody may read, in each tick for a while, mostly
// undisturbed: so they are steady and go in runs, which all else disturbs again.
func (r *trial) march(t *netloop.Tick) {
	ticks, all := 10+r.rng.IntN(40), r.rng.IntN(2) == 0
	if r.rng.IntN(4) > 0 {
		r.idle = t.Number() + uint64(ticks)
	}
	for n := range ticks {
		r.later(t, n, func(t *netloop.Tick) {
			for _, it := range r.m.items {
				if !it.dead && (all || !it.kind.ruled()) {
					it.kind.step(t, it)
					it.edited = true
				}
			}
		})
	}
}

func (r *trial) own(t *netloop.Tick, it *item, id netloop.ClientID) {
	if !it.dead {
		it.obj.SetOwner(t, id)
		r.m.own(it, id)
	}
}

func (r *trial) show(t *netloop.Tick, it *item, to audience) {
	if !it.dead {
		it.obj.SetVisible(t, to.target)
		it.sees = to
	}
}

func (r *trial) regroup(t *netloop.Tick, c *netloop.Client, _ *guest) {
	for range 1 + r.rng.IntN(2) { // within one tick it may be nothing
		n := r.rng.IntN(numSides)
		if r.m.sides[n][c.ID()] {
			r.sides[n].Remove(t, c)
			delete(r.m.sides[n], c.ID())
		} else {
			r.sides[n].Add(t, c)
			r.m.sides[n][c.ID()] = true
		}
	}
}

// look gives a client up to three viewpoints, at places and in walkers.
func (r *trial) look(t *netloop.Tick, c *netloop.Client, g *guest) {
	var from []netloop.Viewpoint
	g.looks = []eye{}
	for range r.rng.IntN(4) {
		it := r.walker()
		if it == nil || r.rng.IntN(2) == 0 {
			e := eye{x: float64(coordinate(r.rng)), y: float64(coordinate(r.rng))}
			from, g.looks = append(from, netloop.ViewAt(e.x, e.y, 0)), append(g.looks, e)
			continue
		}
		from = append(from, netloop.ViewFrom(it.obj.(*netloop.Object[walker])))
		g.looks = append(g.looks, eye{with: it})
	}
	r.grid.SetView(t, c, from...)
}

// walker returns one of the items on the grid, if there is one.
func (r *trial) walker() *item {
	var all []*item
	for _, it := range r.m.items {
		if it.kind.onGrid() && !it.dead {
			all = append(all, it)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[r.rng.IntN(len(all))]
}

// someone returns a client in the room, or 0.
func (r *trial) someone() netloop.ClientID {
	ids := r.inRoom()
	if len(ids) == 0 || r.rng.IntN(6) == 0 {
		return 0
	}
	return ids[r.rng.IntN(len(ids))]
}

// some returns some of the clients in the room.
func (r *trial) some() map[netloop.ClientID]bool {
	some := map[netloop.ClientID]bool{}
	for _, id := range r.inRoom() {
		some[id] = r.rng.IntN(2) == 0
	}
	return some
}

func (r *trial) inRoom() (ids []netloop.ClientID) {
	for _, g := range r.m.guests {
		if g.in {
			ids = append(ids, g.id)
		}
	}
	return ids
}

var (
	everyone = audience{netloop.Everyone(), func(netloop.ClientID) bool { return true }}
	nobody   = audience{netloop.To(), func(netloop.ClientID) bool { return false }}
)

// audience makes one for the item.
func (r *trial) audience(it *item) audience {
	n, other := r.rng.IntN(numSides), r.rng.IntN(numSides)
	member := func(n int) func(id netloop.ClientID) bool {
		return func(id netloop.ClientID) bool { return r.m.sides[n][id] }
	}
	named := slices.Sorted(maps.Keys(r.some()))
	named = named[:r.rng.IntN(len(named)+1)]
	isNamed := func(id netloop.ClientID) bool { return slices.Contains(named, id) }
	lit := audience{netloop.Where(func(c *netloop.Client) bool { return it.lit[c.ID()] }), func(id netloop.ClientID) bool { return it.lit[id] }}
	switch r.rng.IntN(8) {
	case 0:
		return nobody
	case 1:
		return audience{netloop.To(named...), isNamed}
	case 2:
		return audience{netloop.Except(named...), func(id netloop.ClientID) bool { return !isNamed(id) }}
	case 3:
		return audience{netloop.InGroup(r.sides[n]), member(n)}
	case 4:
		return audience{netloop.InGroup(r.sides[n]).And(lit.target), func(id netloop.ClientID) bool { return member(n)(id) && it.lit[id] }}
	case 5:
		return audience{netloop.InGroup(r.sides[n]).Or(netloop.InGroup(r.sides[other])).Except(named...),
			func(id netloop.ClientID) bool { return (member(n)(id) || member(other)(id)) && !isNamed(id) }}
	case 6:
		if it.obj != nil {
			return audience{netloop.OwnerOf(it.obj), func(id netloop.ClientID) bool { return it.owner == id }}
		}
	case 7:
		return lit
	}
	return everyone
}
