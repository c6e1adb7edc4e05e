package netvar

import (
	"testing"
	"unsafe"
)

// guards are a world of light agents that two clients join in the same tick.
type guards struct {
	schema
	t       *testing.T
	w       *World
	rules   *rules
	objects []*Object
	p       [2]*Peer
	r       [2]*Replica
	tick    uint64
}

func newGuards(t *testing.T, objects int) *guards {
	t.Helper()
	g := &guards{schema: newSchema(t).withLightAgents(t), t: t, rules: new(rules), tick: 1}
	g.w = NewWorld(g.table)
	g.w.farBehind = 1
	g.w.SetReaders(g.agent, g.rules)
	for i := range objects {
		a := &lightAgent{X: int32(i), Heat: 20}
		g.objects = append(g.objects, g.w.Spawn(g.agent, unsafe.Pointer(a), 0, 1))
	}
	g.w.Capture(1)
	for i := range g.p {
		g.p[i], g.r[i] = g.w.NewPeer(1), NewReplica(g.table)
		g.p[i].Handle = i + 1
		g.r[i].StartAt(1)
	}
	return g
}

func (g *guards) edit(o *Object) *lightAgent { g.w.Edit(o); return live[lightAgent](o) }

// next is a tick. It returns the packets of both clients.
func (g *guards) next(lim Limit) (packets [2][][]byte) {
	g.tick++
	g.w.Capture(g.tick)
	for i, p := range g.p {
		packets[i], _ = snap(p, g.tick, lim)
	}
	return packets
}

// deliver is a tick in which everything arrives.
func (g *guards) deliver(lim Limit) {
	g.t.Helper()
	for i, packets := range g.next(lim) {
		mustApply(g.t, g.r[i], g.p[i], packets...)
	}
}

// A client whose view changes while it loads gives its versions to no other client that joined in
// the same tick.
func TestAChangedViewDuringTheJoinDoesNotReachAnotherClient(t *testing.T) {
	g := newGuards(t, 600)
	for _, team := range []clientSet{0b110, 0b100, 0b110} {
		g.rules.team = team
		for _, o := range g.objects {
			g.w.Judge(o)
		}
		g.tick++
		g.w.Capture(g.tick)
	}
	for g.tick < 40 {
		g.edit(g.objects[g.tick]).X++
		g.deliver(wide)
		g.edit(g.objects[g.tick]).X++
	}
	g.deliver(wide)
	for i, r := range g.r {
		if !g.p[i].Settled() {
			t.Errorf("client %d is not settled: %d objects are owed", i, g.p[i].owed.count())
		}
		for _, o := range g.objects {
			got, _ := r.Get(o.ID())
			if want := g.p[i].view(o.id.slot()).version(o); got == nil || got.changed != want || live[lightAgent](got).X != live[lightAgent](o).X {
				t.Fatalf("client %d has %+v of %v, want version %d", i, got, o.ID(), want)
			}
		}
	}
}
