package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// guards are a world of light agents that two clients join in the same tick.
type guards struct {
	schema
	t       *testing.T
	w       *World
	rules   *rules
	objects []*state.Object
	p       [2]*Peer
	r       [2]*replica.Replica
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
		g.p[i], g.r[i] = g.w.NewPeer(1), replica.New(g.table)
		g.p[i].Handle = i + 1
		g.r[i].StartAt(1)
	}
	return g
}

func (g *guards) edit(o *state.Object) *lightAgent { g.w.Edit(o); return live[lightAgent](o) }

// next is a tick. It returns the packets of both clients.
func (g *guards) next(lim Limit) (packets [2][][]byte) {
	g.tick++
	g.w.Capture(g.tick)
	for i, p := range g.p {
		packets[i], _ = snap(p, g.tick, lim)
	}
	return packets
}

// deliver is a tick without losses.
func (g *guards) deliver(lim Limit) {
	g.t.Helper()
	for i, packets := range g.next(lim) {
		mustApply(g.t, g.r[i], g.p[i], packets...)
	}
}

// A change of view during the join affects the versions of that client only, not of another one
// that joined in the same tick.
func TestAChangedViewDuringTheJoinDoesNotReachAnotherClient(t *testing.T) {
	g := newGuards(t, 600)
	for _, team := range []clientSet{0b110, 0b100, 0b110} {
		g.rules.team = team
		for _, o := range g.objects {
			g.w.Recheck(o)
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
			t.Errorf("client %d is not settled: %d objects are owed", i, g.p[i].pending.Count())
		}
		for _, o := range g.objects {
			got, _ := r.Get(o.ID())
			if want := g.p[i].View(o.Slot()).Version(o); got == nil || got.Changed() != want || live[lightAgent](got).X != live[lightAgent](o).X {
				t.Fatalf("client %d has %+v of %v, want version %d", i, got, o.ID(), want)
			}
		}
	}
}

// The first state becomes complete although objects change, in readable and in other fields,
// between a snapshot and its acknowledgement.
func TestTheFirstStateEndsAlthoughObjectsChangeBeforeTheyAreAcknowledged(t *testing.T) {
	g := newGuards(t, 1224)
	hidden := func() {
		for _, o := range g.objects {
			g.edit(o).Ammo++
		}
	}
	for range state.Horizon + 2 { // the version of the spawn is dropped
		hidden()
		g.tick++
		g.w.Capture(g.tick)
	}
	packets := g.next(wide)
	for range 3 {
		hidden()
		for _, o := range g.objects[:3] {
			g.edit(o).X++
		}
		g.next(wide) // lost
	}
	for i := range g.p {
		mustApply(t, g.r[i], g.p[i], packets[i]...)
	}
	for range 20 {
		hidden()
		for _, o := range g.objects[:3] {
			g.edit(o).X++
		}
		g.deliver(wide)
	}
	hidden()
	g.deliver(wide)
	for i, p := range g.p {
		if p.first.left > 0 || !p.Settled() {
			t.Errorf("client %d has everything, and still lacks %d objects of the first state; %d are owed", i, p.first.left, p.pending.Count())
		}
	}
}

// Two clients acknowledge nothing for longer than the horizon. The baseline of the first client
// remains, because its readable fields have not changed since; that of the owner is dropped. The
// owner's records cannot be patches of the first client's run.
func TestABaselineMayExistForOneClientOnly(t *testing.T) {
	g := newGuards(t, 2)
	for _, o := range g.objects {
		g.w.SetOwner(o, 2)
	}
	for range 4 {
		for _, o := range g.objects {
			g.edit(o).X++
		}
		g.deliver(wide)
	}
	for _, o := range g.objects {
		g.edit(o).Ammo++
	}
	for range state.Horizon + 1 {
		g.next(wide)
	}
	before := g.w.stats
	for _, o := range g.objects {
		g.edit(o).X++
	}
	packets := g.next(wide)
	if now := g.w.stats; now.Deltas != before.Deltas+2 || now.FullEvicted != before.FullEvicted+2 {
		t.Errorf("%d deltas and %d full records, want 2 each", now.Deltas-before.Deltas, now.FullEvicted-before.FullEvicted)
	}
	for i := range packets {
		mustApply(t, g.r[i], g.p[i], packets[i]...)
		for _, o := range g.objects {
			want := *live[lightAgent](o)
			if got, _ := g.r[i].Get(o.ID()); live[lightAgent](got).X != want.X || i == 1 && live[lightAgent](got).Ammo != want.Ammo {
				t.Errorf("client %d shows %+v, want %+v", i, *live[lightAgent](got), want)
			}
		}
	}
}

// For a client that never saw a hidden object, its end leaves no state behind.
func TestTheEndOfAHiddenObjectKeepsNothing(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	p := w.NewPeer(1)
	p.Handle = 1
	hidden, seen := s.spawnRock(w, rock{X: 1}, 1), s.spawnRock(w, rock{X: 2}, 1)
	w.SetAudience(hidden, clientSet(0))
	w.Capture(1)
	snap(p, 1, wide)
	w.Despawn(hidden)
	w.Despawn(seen)
	w.Capture(2)
	if len(p.entries) > 0 && p.entries[0].detail != nil {
		t.Error("the client's peer keeps a detail of an object that it never saw")
	}
	if p.entries[1].phase != ended {
		t.Error("the client is not told the end of the object that it saw")
	}
}

// The mask counts when a record is compared with the room in a packet.
func TestARecordWithAMaskIsLargeAsSoonAsTheMaskFindsNoRoom(t *testing.T) {
	q := newSquad(t, 1)
	o := q.spawn(whole(), 0)
	q.deliver()
	q.tick++
	q.w.Capture(q.tick)
	c, e := &q.p[1].cut, q.p[1].detailed(0)
	e.base = 0
	for _, withheld := range []state.Rules{0, teamRule} {
		q.p[1].Set(0, withheld)
		full := int(q.w.residual(o, basis{withheld: withheld}).n)
		if withheld != 0 {
			full += o.Plan().Leaves()
		}
		for _, room := range []int{full - 1, full} {
			c.room = room + 8*(packet.MaxHeader+packet.MaxHead)
			n := candidate{version: o.Changed()}
			if c.findLarge(&n, o, e); n.large != (room < full) {
				t.Errorf("withheld %b: %d bits in a room of %d: large is %v", withheld, full, room, n.large)
			}
			if n.large && n.size != uint32(8*packet.MaxLargeHead+full) {
				t.Errorf("withheld %b: the record is to take %d bits, want %d", withheld, n.size, full)
			}
		}
	}
}
