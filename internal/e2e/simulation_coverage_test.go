package e2e_test

import (
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// coverage counts the cases that simulations have reached; the test requires all of them.
type coverage struct {
	actions, events           map[string]int
	reasons                   map[netloop.Reason]int
	spawns, changes, despawns int
	verified                  int
	late                      float64 // the largest fraction that a client took of its bound
	stats                     client.Stats
}

func newCoverage() *coverage {
	return &coverage{actions: map[string]int{}, events: map[string]int{}, reasons: map[netloop.Reason]int{}}
}

// explain calls Explain for a random object, field and client.
func (s *simulation) explain(t *netloop.Tick) (x netloop.Explanation, it *item, g *simClient) {
	items := append(slices.Clone(s.m.items), s.m.removedItems[max(0, len(s.m.removedItems)-1):]...)
	c, ok := t.Client(s.randomClient())
	if !ok || !c.Connected() || len(items) == 0 {
		return x, nil, nil
	}
	it = items[s.rng.IntN(len(items))]
	names := []string{"", "(owner)"}
	for _, f := range it.kind.fields() {
		names = append(names, f.Name)
	}
	x, err := it.obj.Explain(t, c, names[s.rng.IntN(len(names))])
	if err != nil || x.Reason.String() == "unknown" || x.Tick != s.m.tick {
		s.t.Fatalf("%v, %v at tick %d", x, err, s.m.tick)
	}
	s.tally.reasons[x.Reason]++
	return x, it, s.m.simClient(c.ID())
}

// explained compares an explanation with the model, right after a tick.
func (s *simulation) explained(t *netloop.Tick) {
	x, it, g := s.explain(t)
	if it == nil {
		return
	}
	v, want := g.newest(it.key), netloop.Reason(0)
	switch {
	case it.dead:
		want = netloop.ReasonDespawned
	case v.since == 0:
		want = netloop.ReasonHidden
	case !v.rights.allows(ruleOf(it.kind, x.Field)):
		want = netloop.ReasonNoPermission
	}
	wrong := want != 0 && x.Reason != want
	told, has := g.told[it.key]
	switch x.Reason {
	case netloop.ReasonDespawned, netloop.ReasonHidden, netloop.ReasonNoPermission:
		wrong = want != x.Reason
	case netloop.ReasonThreshold, netloop.ReasonInterval:
		wrong = wrong || it.kind.name() != boilers.Name()
	case netloop.ReasonNew, netloop.ReasonUnnoticed:
		wrong = true
	case netloop.ReasonAcknowledged, netloop.ReasonNotEdited, netloop.ReasonUnchanged:
		wrong = wrong || !has || !slices.Contains(told.lives, v.since)
	}
	if wrong {
		s.t.Fatalf("%v, and the client shall have %+v, its watcher got %+v", x, v, told)
	}
}

// ruleOf returns the read tag of a field.
func ruleOf(k kind, field string) string {
	for _, f := range k.fields() {
		if f.Name == field {
			return f.Read
		}
	}
	return ""
}

// notReached are reasons that the simulations reach rarely or never: changes without Edit, an
// overloaded server, snapshots of ten full packets, lagging streams, and a call between poll and
// snapshot.
var notReached = []netloop.Reason{
	netloop.ReasonUnnoticed, netloop.ReasonShed, netloop.ReasonPackets, netloop.ReasonStreamFull, netloop.ReasonNext,
}

// reachesEverything fails the test if the seeds missed a case.
func (c *coverage) reachesEverything(t *testing.T) {
	t.Helper()
	for _, a := range actions {
		if c.actions[a.name] == 0 {
			t.Errorf("no seed has come to: %s", a.name)
		}
	}
	for _, e := range events {
		if c.events[e.name] == 0 {
			t.Errorf("no seed has come to: %s", e.name)
		}
	}
	for reason := netloop.ReasonDespawned; reason <= netloop.ReasonNext; reason++ {
		if c.reasons[reason] == 0 && !slices.Contains(notReached, reason) {
			t.Errorf("no seed has come to the reason: %v", reason)
		}
	}
	if s := c.stats; s.Records == 0 || s.Stale == 0 || s.Lost == 0 || s.HeldBack == 0 || c.spawns == 0 || c.changes == 0 || c.despawns == 0 {
		t.Errorf("the seeds do not reach everything: %+v", *c)
	}
}
