package netvar

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

func TestOwnerTravels(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{}, 3, 1)
	q.deliver()
	q.r.Events()
	q.w.SetOwner(o, math.MaxUint64)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	if got := kinds(q.r.Events()); got != "C" || c.Owner() != math.MaxUint64 || c.Changed() != 2 {
		t.Errorf("events %s, owner %d, version %d", got, c.Owner(), c.Changed())
	}
}

func TestOldIsADeepCopyUntilTheNextCall(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{Name: "a", Bag: []item{{"x", 1}}}, 0, 1)
	q.deliver()
	q.r.Events()
	q.w.Edit(o)
	live[ship](o).Name, live[ship](o).Bag[0].Count = "b", 2
	q.deliver()
	q.w.Edit(o)
	live[ship](o).Bag[0].Count = 3
	q.deliver()
	events := q.r.Events()
	if kinds(events) != "C" {
		t.Fatalf("events %s: both changes are one", kinds(events))
	}
	old := (*ship)(events[0].Old)
	now := live[ship](events[0].Object)
	now.Bag[0].Count = 77 // a client must not do this, but old must not change
	q.w.Edit(o)
	live[ship](o).Name = "c"
	q.deliver()
	if old.Name != "a" || !reflect.DeepEqual(old.Bag, []item{{"x", 1}}) || now.Name != "c" {
		t.Errorf("old %+v, now %+v", old, now)
	}
}

func TestCaptureIsADeepCopy(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{Bag: []item{{"x", 1}}}, 0, 1)
	q.tick++
	q.w.Capture(1)
	live[ship](o).Bag[0].Count = 9 // without Edit, after the capture
	packets, _ := snap(q.p, 1, wide)
	mustApply(t, q.r, q.p, packets...)
	if c, _ := q.r.Get(o.ID()); live[ship](c).Bag[0].Count != 1 {
		t.Error("a later write reached the captured version")
	}
	q.w.Edit(o)
	q.deliver()
	if c, _ := q.r.Get(o.ID()); live[ship](c).Bag[0].Count != 9 {
		t.Error("the edit did not")
	}
}

func TestARefToALackingObjectIsNotFound(t *testing.T) {
	q := newPair(t, 0)
	foe := q.spawnRock(q.w, rock{}, 1)
	o := q.spawnShip(q.w, ship{Foe: codec.Ref{ID: uint64(foe.ID())}}, 0, 1)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	ref := state.ID(live[ship](c).Foe.ID)
	if _, ok := q.r.Get(ref); !ok {
		t.Error("the reference is not resolved")
	}
	q.w.Despawn(foe)
	q.deliver()
	q.spawnRock(q.w, rock{}, q.tick) // in the same slot
	q.deliver()
	for _, id := range []state.ID{ref, 0, math.MaxUint64, state.MakeID(packet.MaxSlots, 1)} {
		if _, ok := q.r.Get(id); ok {
			t.Errorf("%x resolves on the client", uint64(id))
		}
		if _, ok := q.w.Get(id); ok {
			t.Errorf("%x resolves on the server", uint64(id))
		}
	}
}

// Rule 15: a digest reveals a fault, and the full state repairs it, without a spawn.
func TestUnequalDigestIsHealedByTheFullState(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver()
	if d, tick := q.r.Digest(); d != replica.DigestNone || tick != 1 {
		t.Errorf("digest %v of %d without a request", d, tick)
	}
	q.p.RequestDigest(1)
	q.deliver()
	if d, tick := q.r.Digest(); d != replica.DigestEqual || tick != 2 {
		t.Errorf("digest %v of %d", d, tick)
	}
	c, _ := q.r.Get(o.ID())
	v := c.Hist.Newest()
	v.Words[0], c.Hashed = 99, 0 // a fault
	q.p.RequestDigest(2)
	q.deliver()
	if d, _ := q.r.Digest(); d != replica.DigestUnequal {
		t.Errorf("digest %v of a wrong state", d)
	}
	q.r.Events()
	q.edit(o).Y = 5
	stale, first := q.next()
	q.p.RequestFull()
	mustApply(t, q.r, nil, stale...)
	q.p.Ack([]Range{{first, first}}) // sent before the request, so it is no proof
	q.p.RequestDigest(1)
	q.deliver()
	if d, _ := q.r.Digest(); d != replica.DigestEqual || q.rock(o.ID()) != (rock{X: 1, Y: 5}) {
		t.Errorf("digest %v, client shows %+v", d, q.rock(o.ID()))
	}
	if got := kinds(q.r.Events()); got != "C" || q.w.stats.FullRequested != 1 {
		t.Errorf("events %s, %d full records requested", got, q.w.stats.FullRequested)
	}
}

// A snapshot that leaves records out is marked as incomplete, and not compared.
func TestIncompleteSnapshotIsNoFault(t *testing.T) {
	q := newPair(t, 0)
	for range 30 {
		q.spawnShip(q.w, ship{Name: "name"}, 0, 1)
	}
	q.p.RequestDigest(1)
	q.w.Capture(1)
	packets, _ := snap(q.p, 1, Limit{Packets: 1, PacketSize: 200})
	mustApply(t, q.r, q.p, packets...)
	if d, _ := q.r.Digest(); d != replica.DigestNone || q.w.stats.Waited == 0 {
		t.Errorf("digest %v", d)
	}
}

func TestUnansweredPacketsAreGivenUp(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	for range MaxInFlight + 500 {
		q.edit(o).X++
		q.next()
	}
	if n := q.p.flight.next - q.p.flight.oldest; n != uint64(MaxInFlight-wide.Packets+1) || q.w.stats.Overrun != MaxInFlight+500-n {
		t.Errorf("%d in flight, %d given up", n, q.w.stats.Overrun)
	}
	q.deliver()
	if q.p.pending.Count() != 0 {
		t.Error("still owed")
	}
}

func TestAllIsInIDOrderAndSafeUnderSpawnAndDespawn(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	var objects []*state.Object
	for range 100 {
		objects = append(objects, s.spawnRock(w, rock{}, 1))
	}
	s.spawnShip(w, ship{}, 0, 1)
	w.Despawn(objects[3])
	w.Capture(1)
	var seen []state.ID
	for o := range w.All(s.rock) {
		seen = append(seen, o.ID())
		s.spawnRock(w, rock{}, 1) // one in the freed slot, the others behind
		if i := o.ID().Slot(); i == 50 {
			w.Despawn(o)
			w.Despawn(objects[51])
		}
		if len(seen) > 200 {
			t.Fatal("what is spawned is visited")
		}
	}
	if len(seen) != 98 {
		t.Errorf("%d objects, want 98", len(seen))
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] <= seen[i-1] {
			t.Errorf("%x after %x", uint64(seen[i]), uint64(seen[i-1]))
		}
	}
	if w.stats.Objects != 1+100-1-2+98 {
		t.Errorf("%d objects", w.stats.Objects)
	}
}

func TestNaNIsCountedAndBecomesZero(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{X: float32(math.NaN()), Angle: float32(math.NaN()), Y: 1}, 0, 1)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	if s := live[ship](c); s.X != 0 || s.Angle != 0 || s.Y != 1 || q.w.stats.Clamped != 2 {
		t.Errorf("%+v, %d clamped", s, q.w.stats.Clamped)
	}
}

func TestClassThatMayExceedARecordIsRefused(t *testing.T) {
	type big struct {
		A int32
		B string `net:"max=15300"`
		C []byte
	}
	if _, err := state.NewClass("big", reflect.TypeFor[big]()); err == nil || !strings.Contains(err.Error(), "largest field is B") {
		t.Errorf("error %v", err)
	}
	type most struct {
		B string `net:"max=1000"`
	}
	c := classOf[most](t, "most")
	w := NewWorld(state.NewTable(c))
	v := most{strings.Repeat("x", 1000)}
	w.Spawn(c, unsafe.Pointer(&v), math.MaxUint64, 1)
	w.Capture(1 << 60)
	p := w.NewPeer(1 << 60)
	packets, _ := snap(p, 1<<62, Limit{Packets: 1, PacketSize: packet.MaxSize})
	if w.stats.Waited != 0 || len(packets[0]) > packet.MaxSize {
		t.Errorf("the largest class does not fit: %d bytes", len(packets[0]))
	}
}

func TestMisuseIsRefusedWithARemedy(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	w.Capture(5)
	p := w.NewPeer(6)
	snap(p, 6, wide)
	other := classOf[rock](t, "other")
	for name, fn := range map[string]func(){
		"capture twice":        func() { w.Capture(5) },
		"snapshot twice":       func() { snap(p, 6, wide) },
		"foreign class":        func() { w.Spawn(other, unsafe.Pointer(&rock{}), 0, 6) },
		"no value":             func() { w.Spawn(s.rock, nil, 0, 6) },
		"duplicate class name": func() { state.NewTable(other, classOf[ship](t, "other")) },
		"class in two tables":  func() { state.NewTable(s.rock) },
		"its first class too":  func() { state.NewTable(classOf[rock](t, "first"), s.ship) },
		"nil class":            func() { state.NewTable(nil) },
		"too many objects": func() {
			for range packet.MaxSlots + 1 {
				w.Spawn(s.rock, unsafe.Pointer(&rock{}), 0, 6)
			}
		},
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "netvar: ") {
					t.Errorf("%s: %v", name, v)
				}
			}()
			fn()
		}()
	}
	o := s.spawnlessDead(w)
	w.Edit(o)
	w.SetOwner(o, 4)
	w.Despawn(o)
	if o.Owner() != 0 || o.Alive() {
		t.Error("a despawned object still takes changes")
	}
}

func (s schema) spawnlessDead(w *World) *state.Object {
	for o := range w.All(s.rock) {
		w.Despawn(o)
		return o
	}
	return nil
}

func TestClosedPeerCostsNothing(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	q.next()
	q.w.ClosePeer(q.p)
	q.w.ClosePeer(q.p)
	q.w.Capture(9)
	if len(q.w.peers) != 0 {
		t.Error("the peer is still there")
	}
}
