package netvar

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// pastAt returns an object at a moment, from the server's history.
func pastAt(o *state.Object, m state.Moment) (s ship, ok bool) {
	d, ok := o.At(m)
	if !ok {
		return ship{}, false
	}
	if d.Base != nil {
		s = *(*ship)(d.Base)
	}
	d.Write(unsafe.Pointer(&s))
	return s, true
}

// Over a link without losses, the client's drawing between two consecutive snapshots agrees with
// the server's history: for every object and field, after any later changes, spawns and despawns.
func TestTheServersHistoryMatchesTheDrawing(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		q := drawnPair(t)
		var all []*state.Object
		compared := 0
		for range 120 {
			for range rng.IntN(5) {
				q.disturb(rng, &all)
			}
			q.deliver()
			q.r.Events()
			from := max(q.from, q.tick-min(q.tick-1, 20))
			from += rng.Uint64N(q.tick - from + 1)
			q.r.LookFrom(from)
			q.from = from
			m := state.Moment{From: from, To: min(from+1, q.tick), Alpha: float64(rng.IntN(64)) / 64}
			for _, o := range all {
				compared += q.comparePast(o, m)
			}
		}
		if compared < 300 {
			t.Errorf("seed %d: %d objects were compared", seed, compared)
		}
	}
}

// disturb changes, spawns or despawns a ship.
func (q *pair) disturb(rng *rand.Rand, all *[]*state.Object) {
	switch k := rng.IntN(12); {
	case k < 2 || len(*all) == 0:
		*all = append(*all, q.spawnShip(q.w, ship{X: rng.Float32(), Name: "new", Local: 1}, 0, q.tick+1))
	case k < 3:
		i := rng.IntN(len(*all))
		q.w.Despawn((*all)[i])
		*all = slices.Delete(*all, i, i+1)
	default:
		o := (*all)[rng.IntN(len(*all))]
		q.w.Edit(o)
		s := live[ship](o)
		s.X += rng.Float32() * 10
		s.Angle = rng.Float32() * 6
		s.Armed = rng.IntN(2) == 0
		if k < 5 {
			s.Name = fmt.Sprint(rng.IntN(5))
			s.Bag = append(slices.Clone(s.Bag[:min(len(s.Bag), 3)]), item{"x", uint8(rng.IntN(3))})
		}
	}
}

// comparePast compares the results of both sides for an object, if the client has it, and returns 1
// then.
func (q *pair) comparePast(o *state.Object, m state.Moment) int {
	q.t.Helper()
	got, there := pastAt(o, m)
	c, ok := q.r.Get(o.ID())
	if !ok {
		return 0
	}
	want, drawn := q.shipAt(c, m.From, m.To, m.Alpha)
	got.Bag, want.Bag = slices.Clip(got.Bag), slices.Clip(want.Bag)
	if there != drawn || len(got.Bag)+len(want.Bag) > 0 && !slices.Equal(got.Bag, want.Bag) {
		q.t.Fatalf("at %+v the server has %+v, %v, and the client draws %+v, %v", m, got, there, want, drawn)
	}
	got.Bag, want.Bag = nil, nil
	if !reflect.DeepEqual(got, want) {
		q.t.Fatalf("at %+v the server has %+v, and the client draws %+v", m, got, want)
	}
	return 1
}

// The lookup fails before the history, for objects that did not exist, and does not see edits in
// progress.
func TestThePastHasBounds(t *testing.T) {
	q := newPair(t, 0)
	for range 10 {
		q.next()
	}
	o := q.spawnShip(q.w, ship{X: 1}, 0, q.tick+1)
	if _, ok := pastAt(o, state.Moment{From: 10, To: 10, Alpha: 0}); ok {
		t.Error("it was there before its first capture")
	}
	q.next() // 11
	for n := range 200 {
		q.w.Edit(o)
		live[ship](o).X = float32(n + 2)
		q.next() // 12 …
	}
	q.w.Edit(o)
	live[ship](o).X = -1
	for _, c := range []struct {
		from uint64
		x    float32
		ok   bool
	}{{q.tick, 201, true}, {q.tick - 10, 191, true}, {q.tick - state.Horizon + 1, 201 - state.Horizon + 1, true}, {q.tick - state.Horizon - 1, 0, false}, {11, 0, false}} {
		if s, ok := pastAt(o, state.Moment{From: c.from, To: c.from, Alpha: 0}); ok != c.ok || s.X != c.x {
			t.Errorf("at %d X is %v, %v, want %v, %v", c.from, s.X, ok, c.x, c.ok)
		}
	}
	rest := q.spawnShip(q.w, ship{X: 5}, 0, q.tick+1)
	q.next()
	begin := q.tick
	for range 300 {
		q.next()
	}
	if s, ok := pastAt(rest, state.Moment{From: begin, To: begin + 1, Alpha: 0.5}); !ok || s.X != 5 {
		t.Errorf("what rests is %v, %v", s.X, ok)
	}
	if _, ok := pastAt(rest, state.Moment{From: begin - 1, To: begin, Alpha: 0.5}); ok {
		t.Error("it was there before it was spawned")
	}
}

// Looking back does not allocate, except once for each change of a string.
func TestLookingBackAllocatesNothing(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{Name: "ann", Bag: []item{{"x", 1}}}, 0, 1)
	for n := range 20 {
		q.w.Edit(o)
		live[ship](o).X = float32(n)
		if n == 10 {
			live[ship](o).Name = "bob"
		}
		q.next()
	}
	for from, name := range map[uint64]string{5: "ann", 15: "bob"} {
		var s ship
		look := func() { s, _ = pastAt(o, state.Moment{From: from, To: from + 1, Alpha: 0.25}) }
		look()
		if n := testing.AllocsPerRun(20, look); n > 0 || s.Name != name || s.X != float32(from)-0.75 {
			t.Errorf("at %d: %v allocations, %+v", from, n, s)
		}
	}
}

// A client has a snapshot when it has acknowledged one of its packets, and has it whole when it has
// acknowledged all.
func TestReceipts(t *testing.T) {
	q := newPair(t, 0)
	for range 300 {
		q.spawnRock(q.w, rock{X: 1}, 1)
	}
	small := Limit{Packets: 3, PacketSize: 200}
	ids := map[uint64]uint64{} // of the first packet, by tick
	for range 10 {
		q.tick++
		for o := range q.w.All(q.schema.rock) {
			q.edit(o).X += 12345
		}
		q.w.Capture(q.tick)
		packets, first := snap(q.p, q.tick, small)
		if ids[q.tick] = first; len(packets) != 3 {
			t.Fatalf("%d packets", len(packets))
		}
	}
	ack := func(tick uint64, n uint64) { q.p.Ack([]Range{{ids[tick], ids[tick] + n - 1}}) }
	ack(2, 3)
	ack(3, 1)
	ack(5, 3)
	ack(3, 3) // already lost, because a later packet has arrived
	ack(7, 2)
	ack(7, 3)
	for tick, want := range map[uint64][2]bool{1: {}, 2: {true, true}, 3: {true, false}, 4: {}, 5: {true, true}, 6: {}, 7: {true, true}, 8: {}, 11: {}, 2 + state.Horizon: {}, 0: {}} {
		if got := [2]bool{q.p.Has(tick), q.p.HasWhole(tick)}; got != want {
			t.Errorf("tick %d: has it, and whole: %v, want %v", tick, got, want)
		}
	}
	for tick, want := range map[uint64][2]uint64{0: {0, 2}, 1: {0, 2}, 2: {2, 5}, 4: {2, 5}, 5: {5, 7}, 6: {5, 7}, 7: {7, 0}, 1 << 60: {7, 0}} {
		if from, to := q.p.Around(tick); [2]uint64{from, to} != want {
			t.Errorf("around tick %d: %d and %d, want %v", tick, from, to, want)
		}
	}
	for _, c := range []struct {
		from, to uint64
		want     bool
	}{{2, 5, false}, {1, 3, true}, {4, 6, true}, {5, 6, false}, {5, 5, false}, {3, 4, false}} {
		if got := q.p.HasBetween(c.from, c.to); got != c.want {
			t.Errorf("between %d and %d: %v", c.from, c.to, got)
		}
	}
	for q.tick < 2+state.Horizon {
		q.next()
	}
	if q.p.Has(2) || q.p.Has(2+state.Horizon) || !q.p.HasWhole(5) {
		t.Error("a receipt is of another tick")
	}
	if from, to := q.p.Around(6); from != 5 || to != 7 {
		t.Errorf("long after, around tick 6: %d and %d", from, to)
	}
	late := newPair(t, 1<<40)
	_, first := late.next()
	late.p.Ack([]Range{{first, first}})
	if from, to := late.p.Around(0); from != 0 || to != late.tick { // with little cost
		t.Errorf("around tick 0 of a room that is old: %d and %d", from, to)
	}
}

// BenchmarkAt looks back at an object with a version of every tick.
func BenchmarkAt(b *testing.B) {
	f := newField(b, 1, 1, 4)
	for range 2 * state.Horizon {
		f.step(true)
	}
	o := f.rocks[0]
	if o.Hist.Len() < state.Horizon {
		b.Fatalf("%d versions", o.Hist.Len())
	}
	for _, back := range []uint64{2, 15, 120} {
		b.Run(fmt.Sprint(back), func(b *testing.B) {
			b.ReportAllocs()
			m := state.Moment{From: f.tick - back, To: f.tick - back + 1, Alpha: 0.5}
			for b.Loop() {
				var r rock
				d, ok := o.At(m)
				if d.Write(unsafe.Pointer(&r)); !ok {
					b.Fatal("it was not there")
				}
			}
		})
	}
}
