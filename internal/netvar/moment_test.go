package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// drawnPair is a pair with a replica that keeps data for drawing.
func drawnPair(t *testing.T) *pair {
	q := newPair(t, 0)
	q.r.KeepForDrawing(q.ship)
	q.r.KeepForDrawing(q.schema.rock)
	return q
}

// shipAt draws an object at a moment.
func (q *pair) shipAt(o *state.Object, from, to uint64, alpha float64) (ship, bool) {
	q.t.Helper()
	m := state.Moment{From: from, To: to, Alpha: alpha}
	var d state.Drawing
	drawn := q.r.Draw(&d, o, &m)
	var twin ship
	if there := valueAt(o, m, unsafe.Pointer(&twin)); there != drawn {
		q.t.Fatalf("at %+v Draw and At differ: %v", m, there)
	}
	if !drawn {
		return ship{}, false
	}
	s := *(*ship)(d.Base)
	d.Write(unsafe.Pointer(&s))
	if s.X != twin.X || s.Name != twin.Name || len(s.Bag) != len(twin.Bag) || s.Armed != twin.Armed {
		q.t.Fatalf("at %+v Draw has %+v, At %+v", m, s, twin)
	}
	mustCount(q.t, q.r)
	return s, true
}

// valueAt writes the whole value of o at a moment into the zero struct at v, or reports that o did
// not exist.
func valueAt(o *state.Object, m state.Moment, v unsafe.Pointer) bool {
	var d state.Drawing
	if !d.Begin(o, &m) {
		return false
	}
	k, _ := d.Past()
	held := o.Hist.Values(k)
	o.Plan().Restore(v, &held, nil)
	d.Rebase(v, k)
	d.Write(v)
	return true
}

func (q *pair) wantX(o *state.Object, from, to uint64, alpha float64, want float32, there bool) {
	q.t.Helper()
	if s, ok := q.shipAt(o, from, to, alpha); ok != there || s.X != want {
		q.t.Errorf("from %d to %d at %v X is %v, there %v, want %v, %v", from, to, alpha, s.X, ok, want, there)
	}
}

// An unmoved object is drawn at its place until the snapshot before its first move, and stops at
// the snapshot of its last, after any pause and for any number of snapshots.
func TestFirstMoveBeginsAtTheSnapshotBefore(t *testing.T) {
	q := drawnPair(t)
	o := q.spawnShip(q.w, ship{X: 1, Name: "ann"}, 0, 1)
	for range 60 {
		q.deliver()
	}
	for range 4 {
		q.w.Edit(o)
		live[ship](o).X++
		q.deliver() // 61 … 64
	}
	for range 60 {
		q.deliver()
	}
	c, _ := q.r.Get(o.ID())
	for _, m := range []struct {
		from, to uint64
		alpha    float64
		want     float32
	}{
		{2, 59, 0.5, 1}, {59, 60, 1, 1}, {60, 61, 0.25, 1.25}, {61, 62, 0, 2}, {60, 63, 0.5, 2.5}, {62, 64, 0.75, 4.5}, {63, 64, 1.5, 5.5}, {64, 65, 0.5, 5},
		{64, 124, 0.9, 5}, {124, 124, 0, 5},
	} {
		q.wantX(c, m.from, m.to, m.alpha, m.want, true)
	}
}

// An object is drawn from the tick of its lifetime on, with its first value, until the tick of its
// despawn, and not between lifetimes: a new lifetime is another object.
func TestAnObjectIsDrawnWithinItsLifetime(t *testing.T) {
	q := drawnPair(t)
	o := q.spawnShip(q.w, ship{X: 1}, 0, 1)
	q.w.SetAudience(o, nobodyMay)
	for range 9 {
		q.deliver()
	}
	show := func(to bool) {
		if q.w.SetAudience(o, nobodyMay); to {
			q.w.SetAudience(o, nil)
		}
		q.w.Edit(o)
		live[ship](o).X++
		q.deliver()
	}
	show(true) // 10, X is 2
	first, _ := q.r.Get(o.ID())
	show(true)  // 11
	show(false) // 12
	for range 7 {
		q.deliver()
	}
	show(true) // 20, X is 5
	show(true) // 21
	second, _ := q.r.Get(o.ID())
	if first == second || first == nil || second == nil || first.Alive() {
		t.Fatal("hidden and shown again it is the same object")
	}
	for _, m := range []struct {
		o        *state.Object
		from, to uint64
		alpha    float64
		want     float32
		there    bool
	}{
		{first, 8, 9, 0.5, 0, false}, {first, 9, 10, 0.9, 0, false}, {first, 9, 10, 1, 2, true}, {first, 8, 12, 0.49, 0, false}, {first, 8, 12, 0.5, 3, true},
		{first, 10, 11, 0.5, 2.5, true}, {first, 11, 12, 0.99, 3, true}, {first, 11, 12, 1, 0, false}, {first, 11, 20, 0.1, 3, true}, {first, 11, 20, 0.2, 0, false},
		{first, 12, 12, 0, 0, false}, {first, 15, 16, 0, 0, false}, {first, 20, 21, 0.5, 0, false},
		{second, 10, 11, 0.5, 0, false}, {second, 11, 20, 0.9, 0, false}, {second, 19, 20, 1, 5, true}, {second, 19, 21, 0.6, 6, true}, {second, 20, 21, 0.5, 5.5, true},
	} {
		s, ok := q.shipAt(m.o, m.from, m.to, m.alpha)
		if ok != m.there || s.X != m.want {
			t.Errorf("lifetime of %d: from %d to %d at %v X is %v, there %v, want %v, %v", m.o.Born, m.from, m.to, m.alpha, s.X, ok, m.want, m.there)
		}
	}
	if gone := slices.Collect(q.r.Gone(q.ship)); !slices.Equal(gone, []*state.Object{first}) || len(slices.Collect(q.r.Gone(q.schema.rock))) != 0 {
		t.Errorf("gone are %v", gone)
	}
	q.r.LookFrom(11)
	if q.wantX(first, 11, 20, 0, 3, true); gone(q) != 1 {
		t.Error("let go of too early")
	}
	q.r.LookFrom(12)
	if q.wantX(first, 11, 20, 0, 0, false); gone(q) != 0 {
		t.Error("kept when nobody looks")
	}
	q.r.Clear()
	if mustCount(t, q.r); gone(q) != 0 {
		t.Error("of a world that is gone objects are kept")
	}
}

// An iteration over ended objects may stop at any object.
func TestAWalkOverEndedObjectsMayStop(t *testing.T) {
	q := drawnPair(t)
	var all []*state.Object
	for range 3 {
		all = append(all, q.spawnShip(q.w, ship{}, 0, 1))
	}
	q.deliver()
	for _, o := range all {
		q.w.Despawn(o)
	}
	q.deliver()
	for stop := range all {
		n := 0
		for o := range q.r.Gone(q.ship) {
			if o.ID() != all[n].ID() {
				t.Errorf("object %d is %v, want %v", n, o.ID(), all[n].ID())
			}
			if n == stop {
				break
			}
			n++
		}
		if n != stop {
			t.Errorf("%d objects came before the end, want %d", n, stop)
		}
	}
}

// Versions that may be drawn are kept, although no delta leads from them any more; those of undrawn
// classes are not. In place of dropped versions the oldest one left is drawn.
func TestVersionsThatMayBeDrawnAreKept(t *testing.T) {
	for _, drawn := range []bool{true, false} {
		q := newPair(t, 0)
		if drawn {
			q.r.KeepForDrawing(q.ship)
		}
		o := q.spawnShip(q.w, ship{}, 0, 1)
		for range 50 {
			q.w.Edit(o)
			live[ship](o).X++
			q.deliver()
		}
		c, _ := q.r.Get(o.ID())
		if n := c.Hist.Len(); drawn != (n == 50) {
			t.Errorf("drawn %v: %d versions of 50 are kept", drawn, n)
		}
		if !drawn {
			continue
		}
		q.r.LookFrom(30)
		q.w.Edit(o)
		q.deliver() // without a change no version is dropped
		q.wantX(c, 10, 11, 0.5, 10.5, true)
		q.w.Edit(o)
		live[ship](o).X++
		q.deliver()
		if first := c.Hist.Tick(0); first != 30 {
			t.Errorf("the oldest version is of %d", first)
		}
		q.wantX(c, 10, 11, 0.5, 30, true)
		q.r.Forget()
		q.wantX(c, 40, 41, 0.5, 51, true)
	}
}

// Strings, slices and the like have the values of the moment. They are decoded once for each
// version, however often it is drawn, and shared with the newest value while they are equal.
func TestBlobsAreDrawnAsTheyWere(t *testing.T) {
	q := drawnPair(t)
	o := q.spawnShip(q.w, ship{X: 1, Name: "ann", Bag: []item{{"axe", 1}}}, 0, 1)
	q.deliver()
	for i, name := range []string{"ann", "bob", "bob", "cat"} {
		q.w.Edit(o)
		s := live[ship](o)
		s.X, s.Name = float32(i+2), name
		q.deliver() // 2 … 5
	}
	c, _ := q.r.Get(o.ID())
	for i, name := range []string{"ann", "ann", "bob", "bob", "cat"} {
		tick := uint64(i + 1)
		s, ok := q.shipAt(c, tick, tick+1, 0.5)
		if !ok || s.Name != name || tick < 5 && s.X != float32(i)+1.5 || len(s.Bag) != 1 {
			t.Errorf("at %d %+v", tick, s)
		}
	}
	for _, m := range []struct {
		state.Moment
		want string
	}{{state.Moment{From: 2, To: 3, Alpha: 0.99}, "ann"}, {state.Moment{From: 2, To: 3, Alpha: 1}, "bob"}, {state.Moment{From: 4, To: 5, Alpha: 1}, "cat"}, {state.Moment{From: 2, To: 3, Alpha: 1.5}, "bob"}} {
		if s, ok := q.shipAt(c, m.From, m.To, m.Alpha); !ok || s.Name != m.want {
			t.Errorf("at %+v the name is %q, want %q", m.Moment, s.Name, m.want)
		}
	}
	m := state.Moment{From: 2, To: 3, Alpha: 0.5}
	if n := testing.AllocsPerRun(50, func() { q.drawOnce(c, &m) }); n != 0 {
		t.Errorf("drawing an older name allocates %v times", n)
	}
	need := codec.Allocated(int(unsafe.Sizeof(ship{}))) + codec.Allocated(int(unsafe.Sizeof(state.Past{}))) +
		codec.Allocated(len("bob")) + codec.Allocated(int(unsafe.Sizeof(item{}))) + codec.Allocated(len("axe"))
	for room, want := range map[int]string{need - 1: "cat", need: "bob"} {
		q.r.SetBound(replica.MaxStored)
		q.drawOnce(c, &m) // keeps an older value, which the next one replaces
		q.r.SetBound(q.r.Size() - c.Past.Bytes + room)
		if s := q.drawOnce(c, &state.Moment{From: 3, To: 4, Alpha: 0.5}); s.Name != want || s.X != 3.5 {
			t.Errorf("with room for %d bytes it is %+v, want the name %s", room, s, want)
		}
	}
	q.r.SetBound(replica.MaxStored)
	q.drawOnce(c, &m)
	q.w.Despawn(o)
	q.deliver()
	q.r.Events()
	q.r.Events()
	q.r.LookFrom(q.tick)
	mustCount(t, q.r)
}

func (q *pair) drawOnce(o *state.Object, m *state.Moment) (s ship) {
	var d state.Drawing
	if q.r.Draw(&d, o, m) {
		s = *(*ship)(d.Base)
		d.Write(unsafe.Pointer(&s))
	}
	return s
}

// An unreadable field is zero, and changes of readability are not interpolated: no value between
// zero and the field's is ever drawn.
func TestChangesOfReadabilityAreNotInterpolated(t *testing.T) {
	type agent struct {
		X    float32
		Gold float32 `net:"read=owner"`
	}
	class := classOf[agent](t, "agent")
	table := state.NewTable(class)
	w, r := NewWorld(table), replica.New(table)
	r.KeepForDrawing(class)
	rules := &allOrNone{}
	w.SetReaders(class, rules)
	p := w.NewPeer(1)
	o := w.Spawn(class, unsafe.Pointer(&agent{X: 1, Gold: 100}), 0, 1)
	for tick := uint64(1); tick <= 4; tick++ {
		w.Edit(o)
		(*agent)(o.Live()).X = float32(tick)
		if tick == 3 {
			rules.may = true
			w.Recheck(o)
		}
		w.Capture(tick)
		packets, _ := snap(p, tick, wide)
		mustApply(t, r, p, packets...)
	}
	c, _ := r.Get(o.ID())
	for _, m := range []struct {
		state.Moment
		want agent
	}{
		{state.Moment{From: 1, To: 2, Alpha: 0.5}, agent{1.5, 0}}, {state.Moment{From: 2, To: 3, Alpha: 0.5}, agent{2, 0}}, {state.Moment{From: 2, To: 3, Alpha: 1}, agent{3, 100}}, {state.Moment{From: 3, To: 4, Alpha: 0.5}, agent{3.5, 100}},
		{state.Moment{From: 2, To: 3, Alpha: 1.5}, agent{3, 100}},
	} {
		var got agent
		if !valueAt(c, m.Moment, unsafe.Pointer(&got)) || got != m.want {
			t.Errorf("at %+v %+v, want %+v", m.Moment, got, m.want)
		}
	}
}

// allOrNone makes all fields readable by all clients, or the fields with a rule by none.
type allOrNone struct{ may bool }

func (*allOrNone) Ask(*state.Object) {}

func (a *allOrNone) Withheld(*state.Object, *interest.Viewer) state.Rules {
	if a.may {
		return 0
	}
	return ownerRule
}

func TestTeleportsAreCountedOnce(t *testing.T) {
	type hopper struct {
		X    float32
		Hops uint8 `net:"teleport"`
	}
	class := classOf[hopper](t, "hopper")
	table := state.NewTable(class)
	for _, drawn := range []bool{true, false} {
		w, r := NewWorld(table), replica.New(table)
		if drawn {
			r.KeepForDrawing(class)
		}
		p := w.NewPeer(1)
		o := w.Spawn(class, unsafe.Pointer(&hopper{}), 0, 1)
		for tick := uint64(1); tick <= 9; tick++ {
			w.Edit(o)
			h := (*hopper)(o.Live())
			if h.X++; tick%3 == 0 {
				h.Hops++
			}
			w.Capture(tick)
			packets, _ := snap(p, tick, wide)
			mustApply(t, r, p, packets...)
		}
		if n := r.Stats().Teleports; drawn && n != 3 || !drawn && n != 0 {
			t.Errorf("drawn %v: %d teleports", drawn, n)
		}
		c, _ := r.Get(o.ID())
		var got hopper
		if valueAt(c, state.Moment{From: 2, To: 3, Alpha: 0.9}, unsafe.Pointer(&got)); drawn && got != (hopper{2, 0}) {
			t.Errorf("before the teleport %+v", got)
		}
	}
}

// Over a link without losses, the state drawn at each snapshot is the server's of then, for every
// object, after any spawns and despawns; halfway between two it is interpolated.
func TestTheDrawnStateIsTheServers(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := drawnPair(t)
		had := map[uint64]map[state.ID]rock{} // by tick
		var all []*state.Object
		for range 100 {
			for range rng.IntN(4) {
				switch k := rng.IntN(10); {
				case k < 2 || len(all) == 0:
					all = append(all, q.spawnRock(q.w, rock{X: rng.Int32N(100)}, q.tick+1))
				case k < 3:
					i := rng.IntN(len(all))
					q.w.Despawn(all[i])
					all = slices.Delete(all, i, i+1)
				default:
					q.edit(all[rng.IntN(len(all))]).X = rng.Int32N(100)
				}
			}
			q.deliver()
			now := map[state.ID]rock{}
			for _, o := range all {
				now[o.ID()] = *live[rock](o)
			}
			had[q.tick] = now
			q.r.Events()
			q.checkDrawn(rng, had)
		}
	}
}

// checkDrawn draws a random moment of the last 20 ticks, and later never an earlier one.
func (q *pair) checkDrawn(rng *rand.Rand, had map[uint64]map[state.ID]rock) {
	q.t.Helper()
	from := max(q.from, q.tick-min(q.tick-1, 20))
	from += rng.Uint64N(min(q.tick-from+1, 3))
	q.r.LookFrom(from)
	q.from = from
	seen := map[state.ID]rock{}
	for _, o := range slices.Concat(slices.Collect(q.r.All(q.schema.rock)), slices.Collect(q.r.Gone(q.schema.rock))) {
		var is rock
		if valueAt(o, state.Moment{From: from, To: q.tick, Alpha: 0}, unsafe.Pointer(&is)) {
			seen[o.ID()] = is
		}
	}
	if want := had[from]; len(seen) != len(want) {
		q.t.Fatalf("tick %d, as of %d: %d objects are drawn, want %d", q.tick, from, len(seen), len(want))
	}
	for id, want := range had[from] {
		if seen[id] != want {
			q.t.Fatalf("tick %d: as of %d %x is %+v, want %+v", q.tick, from, id, seen[id], want)
		}
	}
	mustCount(q.t, q.r)
}

// A client of another build draws the common fields, by its own tags.
func TestAReplicaOfAnotherBuildDraws(t *testing.T) {
	q, other := newForeignPair(t, 0)
	q.r.KeepForDrawing(other.ship)
	q.r.KeepForDrawing(other.stone)                  // the server lacks the class
	q.r.KeepForDrawing(classOf[rock](t, "stranger")) // no effect: a class of no table
	table := q.r.Table()
	for _, server := range []*state.Table{table, nil, table} {
		q.r.Adapt(server)
	}
	o := q.spawnShip(q.w, ship{X: 1, Y: 1, Name: "ann"}, 0, 1)
	for range 5 {
		q.w.Edit(o)
		live[ship](o).Y++
		q.deliver()
	}
	c, _ := q.r.Get(o.ID())
	var d state.Drawing
	q.r.Draw(&d, c, &state.Moment{From: 2, To: 3, Alpha: 0.5})
	s := *(*otherShip)(d.Base)
	d.Write(unsafe.Pointer(&s))
	if s.Y != 3.5 || s.Title != "ann" {
		t.Errorf("drawn %+v", s)
	}
}

func BenchmarkDraw(b *testing.B) {
	s := newSchema(b)
	w, r := NewWorld(s.table), replica.New(s.table)
	r.KeepForDrawing(s.ship)
	p := w.NewPeer(1)
	o := s.spawnShip(w, ship{Name: "ann"}, 0, 1)
	for tick := uint64(1); tick <= 20; tick++ {
		w.Edit(o)
		live[ship](o).X++
		live[ship](o).Y--
		w.Capture(tick)
		packets, _ := snap(p, tick, wide)
		mustApply(b, r, p, packets...)
	}
	c, _ := r.Get(o.ID())
	m := state.Moment{From: 15, To: 16, Alpha: 0.3}
	var sum float32
	var d state.Drawing
	for b.Loop() {
		r.Draw(&d, c, &m)
		v := *(*ship)(d.Base)
		d.Write(unsafe.Pointer(&v))
		sum += v.X
	}
}

// After the loss of its first packets an object is drawn from the beginning of its lifetime all the
// same, with its first received version: a message of that tick may refer to it.
func TestAnObjectThatComesLateIsDrawnFromItsBeginning(t *testing.T) {
	q := drawnPair(t)
	for range 3 {
		q.deliver()
	}
	o := q.spawnShip(q.w, ship{X: 1}, 0, 3)
	for range 3 {
		q.next() // 4 … 6 are lost
		q.w.Edit(o)
		live[ship](o).X++
	}
	for range 2 {
		q.deliver() // 7 and 8
		q.w.Edit(o)
		live[ship](o).X++
	}
	c, _ := q.r.Get(o.ID())
	q.wantX(c, 3, 3, 0, 0, false)
	q.wantX(c, 3, 7, 0.2, 0, false)
	q.wantX(c, 3, 7, 0.3, 4, true)
	q.wantX(c, 4, 5, 0.5, 4, true)
	q.wantX(c, 6, 7, 0.5, 4, true)
	q.wantX(c, 7, 8, 0.5, 4.5, true)
}
