package e2e_test

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
)

// action is a random change that the game makes in a tick.
type action struct {
	name   string
	weight int // relative frequency
	do     func(s *simulation, t *netloop.Tick)
}

// Actions that need an object or a client in the room have no effect without one.
var actions = []action{
	{"spawn", 60, func(s *simulation, t *netloop.Tick) {
		if len(s.m.items) < s.most {
			s.spawn(t)
		}
	}},
	{"spawn and despawn", 6, func(s *simulation, t *netloop.Tick) { s.despawn(t, s.spawn(t)) }},
	{"despawn", 25, onItem((*simulation).despawn)},
	{"despawn, and another in its place", 10, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		s.despawn(t, it)
		s.later(t, 1, func(t *netloop.Tick) { s.spawn(t) })
	})},
	{"edit", 400, onItem((*simulation).edit)},
	{"march", 4, (*simulation).march},
	{"edit and despawn", 5, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.edit(t, it); s.despawn(t, it) })},
	{"own", 30, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.own(t, it, s.randomClient()) })},
	{"own and edit", 30, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.own(t, it, s.randomClient()); s.edit(t, it) })},
	{"own by turns", 10, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		owner := it.owner
		s.own(t, it, s.randomClient())
		s.later(t, s.rng.IntN(3), func(t *netloop.Tick) { s.own(t, it, owner) })
	})},
	{"own by a leaver", 3, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.own(t, it, 1_000_000) })},
	{"show to some", 60, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.show(t, it, s.audience(it)) })},
	{"hide", 20, onItem(func(s *simulation, t *netloop.Tick, it *item) { s.show(t, it, nobody) })},
	{"hide and show", 25, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		before := it.sees
		s.show(t, it, nobody)
		s.later(t, s.rng.IntN(4), func(t *netloop.Tick) { s.show(t, it, before) })
	})},
	{"grow, hide and show", 15, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		for range 6 { // most tomes exceed a packet afterwards
			s.edit(t, it)
		}
		s.later(t, 1+s.rng.IntN(3), func(t *netloop.Tick) { s.show(t, it, nobody) })
		s.later(t, 4+s.rng.IntN(3), func(t *netloop.Tick) { s.show(t, it, everyone) })
	})},
	{"show and hide", 10, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		before := it.sees
		s.show(t, it, everyone)
		s.later(t, s.rng.IntN(4), func(t *netloop.Tick) { s.show(t, it, before) })
	})},
	{"let others in", 20, onItem(func(s *simulation, t *netloop.Tick, it *item) {
		it.namedClients = s.some()
		it.obj.Invalidate(t)
	})},
	{"change a group", 30, onClient((*simulation).regroup)},
	{"change the guild", 12, onClient(func(s *simulation, t *netloop.Tick, c *netloop.Client, _ *simClient) {
		s.m.guild[c.ID()] = !s.m.guild[c.ID()]
		for _, it := range s.m.items {
			if it.kind.ruled() {
				it.obj.Invalidate(t)
			}
		}
	})},
	{"look elsewhere", 40, onClient((*simulation).look)},
	{"change a budget", 8, onClient(func(s *simulation, t *netloop.Tick, c *netloop.Client, g *simClient) {
		g.budget = []int{60, 100, 200, 400, 2000}[s.rng.IntN(5)]
		c.SetBudget(t, g.budget)
	})},
	{"explain", 15, func(s *simulation, t *netloop.Tick) { s.explain(t) }},
	{"rest", 1, func(s *simulation, t *netloop.Tick) { // for longer than the history of versions
		if s.rng.IntN(2) == 0 {
			s.idle = t.Number() + 130 + s.rng.Uint64N(40)
		}
	}},
}

// onItem applies a function to a random object.
func onItem(do func(s *simulation, t *netloop.Tick, it *item)) func(*simulation, *netloop.Tick) {
	return func(s *simulation, t *netloop.Tick) {
		if n := len(s.m.items); n > 0 {
			do(s, t, s.m.items[s.rng.IntN(n)])
		}
	}
}

// onClient applies a function to a random client in the room.
func onClient(do func(s *simulation, t *netloop.Tick, c *netloop.Client, g *simClient)) func(*simulation, *netloop.Tick) {
	return func(s *simulation, t *netloop.Tick) {
		if c, ok := t.Client(s.randomClient()); ok {
			do(s, t, c, s.m.simClient(c.ID()))
		}
	}
}

// pick returns an entry of a table, by weight.
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

// act is the game's system: it runs a few actions, and earlier ones that are due in this tick.
func (s *simulation) act(t *netloop.Tick) {
	due := s.due[t.Number()]
	delete(s.due, t.Number())
	for _, do := range due {
		do(t)
	}
	if t.Number() < s.idle || s.over {
		return
	}
	for len(s.m.items) < s.most/2 && t.Number() == 1 {
		s.spawn(t)
	}
	for range s.rng.IntN(5) {
		a := pick(s.rng, actions, func(a *action) int { return a.weight })
		a.do(s, t)
		s.tally.actions[a.name]++
	}
}

// later runs a function some ticks later, or at once.
func (s *simulation) later(t *netloop.Tick, ticks int, do func(t *netloop.Tick)) {
	if ticks == 0 {
		do(t)
		return
	}
	at := t.Number() + uint64(ticks)
	s.due[at] = append(s.due[at], do)
}

func (s *simulation) spawn(t *netloop.Tick) *item {
	it := &item{kind: kinds[s.rng.IntN(len(kinds))], sees: everyone, edited: true, namedClients: s.some(), texts: map[rights]string{}}
	var o []netloop.SpawnOption
	if it.keep = s.rng.IntN(2) == 0; it.keep {
		o = append(o, netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
	}
	if s.rng.IntN(3) == 0 {
		it.owner = s.randomClient()
		o = append(o, netloop.OwnedBy(it.owner))
	}
	if s.rng.IntN(4) == 0 {
		it.sees = s.audience(it)
		o = append(o, netloop.VisibleTo(it.sees.target))
	}
	it.kind.spawn(t, it, s.rng, o)
	s.m.items = append(s.m.items, it)
	return it
}

func (s *simulation) despawn(t *netloop.Tick, it *item) {
	it.obj.Despawn(t)
	it.dead = true
}

// edit also invalidates the read rules of a vault, because its group may change.
func (s *simulation) edit(t *netloop.Tick, it *item) {
	if it.dead {
		return
	}
	side := it.kind.sideOf(it)
	it.kind.edit(t, it, s.rng.Uint64())
	if it.edited = true; it.kind.sideOf(it) != side {
		it.obj.Invalidate(t)
	}
}

// march changes all objects, or those that every client may read, in each tick for a while,
// mostly without other changes: their encodings are then shared in runs, which other actions
// split again.
func (s *simulation) march(t *netloop.Tick) {
	ticks, all := 10+s.rng.IntN(40), s.rng.IntN(2) == 0
	if s.rng.IntN(4) > 0 {
		s.idle = t.Number() + uint64(ticks)
	}
	for n := range ticks {
		s.later(t, n, func(t *netloop.Tick) {
			for _, it := range s.m.items {
				if !it.dead && (all || !it.kind.ruled()) {
					it.kind.step(t, it)
					it.edited = true
				}
			}
		})
	}
}

func (s *simulation) own(t *netloop.Tick, it *item, id netloop.ClientID) {
	if !it.dead {
		it.obj.SetOwner(t, id)
		s.m.own(it, id)
	}
}

func (s *simulation) show(t *netloop.Tick, it *item, to audience) {
	if !it.dead {
		it.obj.SetVisible(t, to.target)
		it.sees = to
	}
}

func (s *simulation) regroup(t *netloop.Tick, c *netloop.Client, _ *simClient) {
	for range 1 + s.rng.IntN(2) { // the two changes of one tick may cancel out
		n := s.rng.IntN(numSides)
		if s.m.sides[n][c.ID()] {
			s.sides[n].Remove(t, c)
			delete(s.m.sides[n], c.ID())
		} else {
			s.sides[n].Add(t, c)
			s.m.sides[n][c.ID()] = true
		}
	}
}

// look gives a client up to three viewpoints, at positions and in walkers.
func (s *simulation) look(t *netloop.Tick, c *netloop.Client, g *simClient) {
	var from []netloop.Viewpoint
	g.nextViewpoints = []viewpoint{}
	for range s.rng.IntN(4) {
		it := s.walker()
		if it == nil || s.rng.IntN(2) == 0 {
			e := viewpoint{x: float64(coordinate(s.rng)), y: float64(coordinate(s.rng))}
			from, g.nextViewpoints = append(from, netloop.ViewAt(e.x, e.y, 0)), append(g.nextViewpoints, e)
			continue
		}
		from = append(from, netloop.ViewFrom(it.obj.(*netloop.Object[walker])))
		g.nextViewpoints = append(g.nextViewpoints, viewpoint{with: it})
	}
	s.grid.SetView(t, c, from...)
}

// walker returns a random item on the grid, or nil.
func (s *simulation) walker() *item {
	var all []*item
	for _, it := range s.m.items {
		if it.kind.onGrid() && !it.dead {
			all = append(all, it)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[s.rng.IntN(len(all))]
}

// randomClient returns a random client in the room, or 0.
func (s *simulation) randomClient() netloop.ClientID {
	ids := s.inRoom()
	if len(ids) == 0 || s.rng.IntN(6) == 0 {
		return 0
	}
	return ids[s.rng.IntN(len(ids))]
}

// some returns random clients of the room.
func (s *simulation) some() map[netloop.ClientID]bool {
	some := map[netloop.ClientID]bool{}
	for _, id := range s.inRoom() {
		some[id] = s.rng.IntN(2) == 0
	}
	return some
}

func (s *simulation) inRoom() (ids []netloop.ClientID) {
	for _, g := range s.m.clients {
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

// audience returns a random audience for the item.
func (s *simulation) audience(it *item) audience {
	n, other := s.rng.IntN(numSides), s.rng.IntN(numSides)
	member := func(n int) func(id netloop.ClientID) bool {
		return func(id netloop.ClientID) bool { return s.m.sides[n][id] }
	}
	named := slices.Sorted(maps.Keys(s.some()))
	named = named[:s.rng.IntN(len(named)+1)]
	isNamed := func(id netloop.ClientID) bool { return slices.Contains(named, id) }
	namedClients := audience{netloop.Where(func(c *netloop.Client) bool { return it.namedClients[c.ID()] }), func(id netloop.ClientID) bool { return it.namedClients[id] }}
	switch s.rng.IntN(8) {
	case 0:
		return nobody
	case 1:
		return audience{netloop.To(named...), isNamed}
	case 2:
		return audience{netloop.Except(named...), func(id netloop.ClientID) bool { return !isNamed(id) }}
	case 3:
		return audience{netloop.InGroup(s.sides[n]), member(n)}
	case 4:
		return audience{netloop.InGroup(s.sides[n]).And(namedClients.target), func(id netloop.ClientID) bool { return member(n)(id) && it.namedClients[id] }}
	case 5:
		return audience{netloop.InGroup(s.sides[n]).Or(netloop.InGroup(s.sides[other])).Except(named...),
			func(id netloop.ClientID) bool { return (member(n)(id) || member(other)(id)) && !isNamed(id) }}
	case 6:
		if it.obj != nil {
			return audience{netloop.OwnerOf(it.obj), func(id netloop.ClientID) bool { return it.owner == id }}
		}
	case 7:
		return namedClients
	}
	return everyone
}
