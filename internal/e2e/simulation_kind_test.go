package e2e_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// kindOf is a kind with the state type S.
type kindOf[S any] struct {
	class  *netloop.Class[S]
	fresh  func(*rand.Rand) S
	change func(*S, *rand.Rand)
	clone  func(S) S
	count  func(*S) *uint32
	hide   func(*S, rights)                          // zeroes unreadable fields, unless nil
	hold   func(it *item, last, now *S, tick uint64) // restores fields not captured yet, unless nil
	place  func(*S) (x, y float64)                   // nil: not on the grid
	side   func(*S) int                              // the group that may read; nil: none
	size   func(*S) int                              // estimated bytes; nil: less than its text
}

func (k kindOf[S]) name() string            { return k.class.Name() }
func (k kindOf[S]) fields() []netloop.Field { return k.class.Fields() }
func (k kindOf[S]) onGrid() bool            { return k.place != nil }
func (k kindOf[S]) ruled() bool             { return k.hide != nil }

func (k kindOf[S]) spawn(t *netloop.Tick, it *item, rng *rand.Rand, o []netloop.SpawnOption) {
	s := k.fresh(rng)
	obj := k.class.Spawn(t, k.clone(s), o...)
	it.obj, it.key, it.live, it.last = obj, obj.Ref().String(), &s, &s
}

// edit changes the object and the test's own copy in the same way, separately.
func (k kindOf[S]) edit(t *netloop.Tick, it *item, seed uint64) {
	k.change(it.obj.(*netloop.Object[S]).Edit(t), rand.New(rand.NewPCG(seed, 0)))
	k.change(it.live.(*S), rand.New(rand.NewPCG(seed, 0)))
}

func (k kindOf[S]) step(t *netloop.Tick, it *item) {
	*k.count(it.obj.(*netloop.Object[S]).Edit(t))++
	*k.count(it.live.(*S))++
}

func (k kindOf[S]) capture(it *item, tick uint64) {
	now := k.clone(*it.live.(*S))
	if k.hold != nil {
		k.hold(it, it.last.(*S), &now, tick)
	}
	it.last = &now
}

func (k kindOf[S]) position(it *item) (x, y float64) { return k.place(it.live.(*S)) }

func (k kindOf[S]) sideOf(it *item) int {
	if k.side == nil {
		return -1
	}
	return k.side(it.live.(*S))
}

func (k kindOf[S]) shown(it *item, r rights) string {
	s := *it.last.(*S)
	if k.hide != nil {
		k.hide(&s, r)
	}
	return textOf(it.owner, s)
}

func (k kindOf[S]) sizeOf(it *item) int {
	if k.size != nil {
		return recordSize + k.size(it.last.(*S))
	}
	return recordSize + len(textOf(it.owner, *it.last.(*S)))
}

// recordSize is an upper bound of a record's bytes without its values.
const recordSize = 24

// textOf returns the compared text of an object: its state and owner. Nil and empty are equal.
func textOf[S any](owner netloop.ClientID, s S) string { return fmt.Sprintf("owner %d %+v", owner, s) }

func (k kindOf[S]) has(t *netloop.Tick, yield func(key, text string)) {
	for o := range k.class.All(t) {
		yield(o.Ref().String(), textOf(o.Owner(), o.State()))
	}
}

func (k kindOf[S]) watch(g *simClient) {
	told := func(o *netloop.Object[S]) watcherCall {
		s := o.State()
		return watcherCall{kind: k, key: o.Ref().String(), text: textOf(o.Owner(), s), n: *k.count(&s), changed: o.ChangedTick()}
	}
	client.Watch(g.c, k.class, client.Watcher[S]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[S]) { g.spawned(told(o)) },
		Change:  func(_ *netloop.Tick, o *netloop.Object[S], old S) { g.changed(told(o), fmt.Sprintf("%+v", old)) },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[S], last S) { g.despawned(told(o), fmt.Sprintf("%+v", last)) },
	})
}

func (k kindOf[S]) audit(w *netlooptest.World, g *simClient) {
	rules := map[string]string{} // as in ruleOf
	for _, f := range k.class.Fields() {
		rules[f.Name] = f.Read
	}
	netlooptest.Audit(w, g.c, k.class, func(_ *netloop.Tick, _ *netloop.Client, o *netloop.Object[S], field string) bool {
		v := g.newest(o.Ref().String())
		return v.since > 0 && v.rights.allows(rules[field])
	})
}
