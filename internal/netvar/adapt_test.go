package netvar

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The classes of another build of the client: in another order, with one that the server lacks,
// without two of the server's, and with other fields in ship.
type otherShip struct {
	Bag []struct {
		Name string `net:"max=8"`
	} `net:"max=4"`
	Shield int32
	Title  string  `net:"max=12,name=Name"`
	Y      float32 `net:"quant=1/256"`
}

type otherBuild struct {
	table       *state.Table
	ship, stone *state.Class
}

func newOtherBuild(tb testing.TB) otherBuild {
	o := otherBuild{stone: classOf[rock](tb, "stone"), ship: classOf[otherShip](tb, "ship")}
	o.table = state.NewTable(o.stone, o.ship)
	return o
}

// bindTable makes the client's binding of a server's table.
func bindTable(tb testing.TB, own, server *state.Table) *state.Table {
	tb.Helper()
	var classes []*state.Class
	for _, c := range server.Classes() {
		i := slices.IndexFunc(own.Classes(), func(o *state.Class) bool { return o.Name() == c.Name() })
		var mine *state.Class
		if i >= 0 {
			mine = own.Classes()[i]
		}
		bound, err := state.BindClass(c.Name(), mine, c.Layout(), new(codec.Budget))
		if err != nil {
			tb.Fatal(err)
		}
		classes = append(classes, bound)
	}
	return state.NewTable(classes...)
}

// newForeignPair is newPair with a client of the other build.
func newForeignPair(t *testing.T, tick uint64) (*pair, otherBuild) {
	q, o := newPair(t, tick), newOtherBuild(t)
	q.r = replica.New(o.table)
	q.r.Adapt(bindTable(t, o.table, q.table))
	q.r.StartAt(tick)
	return q, o
}

func TestReplicaOfAnotherBuildFollows(t *testing.T) {
	q, o := newForeignPair(t, 100)
	a := q.spawnShip(q.w, ship{X: 1, Y: 2, Name: "ann", Bag: []item{{"axe", 3}}}, 7, 101)
	b := q.spawnRock(q.w, rock{X: 5}, 101)
	q.deliver()
	var seen []*state.Object
	for obj := range q.r.All(o.ship) {
		seen = append(seen, obj)
	}
	if len(seen) != 1 || seen[0].Class() != o.ship || seen[0].Owner() != 7 {
		t.Fatalf("of the ships it sees %v", seen)
	}
	for range q.r.All(o.stone) {
		t.Error("a class that the server has not has objects")
	}
	if got := kinds(q.r.Events()); got != "S" {
		t.Errorf("events %s: the rock is not known here", got)
	}
	got := live[otherShip](seen[0])
	if got.Y != 2 || got.Title != "ann" || got.Shield != 0 || len(got.Bag) != 1 || got.Bag[0].Name != "axe" {
		t.Errorf("it shows %+v", got)
	}

	q.w.Edit(a)
	live[ship](a).X, live[ship](a).Foe = 9, codec.Ref{ID: 3}
	q.edit(b).Y = 4
	q.p.RequestDigest(1)
	q.deliver()
	if got := kinds(q.r.Events()); got != "" {
		t.Errorf("events %s for what cannot be seen here", got)
	}
	if d, _ := q.r.Digest(); d != replica.DigestEqual {
		t.Errorf("digest state %d", d)
	}
	q.w.Edit(a)
	live[ship](a).Y, live[ship](a).Bag = 3, nil
	q.w.Despawn(b)
	q.p.RequestDigest(1)
	q.deliver()
	if events := q.r.Events(); kinds(events) != "C" || (*otherShip)(events[0].Old).Y != 2 || len((*otherShip)(events[0].Old).Bag) != 1 {
		t.Errorf("events %s", kinds(events))
	}
	if d, _ := q.r.Digest(); d != replica.DigestEqual || got.Y != 3 || got.Bag != nil || got.Title != "ann" {
		t.Errorf("digest state %d, it shows %+v", d, got)
	}
}

// A client of another build allocates no more than others.
func TestApplyOfAnotherBuildDoesNotAllocate(t *testing.T) {
	q, _ := newForeignPair(t, 100)
	var ships []*state.Object
	for range 20 {
		ships = append(ships, q.spawnShip(q.w, ship{Name: "a"}, 0, 101), q.spawnRock(q.w, rock{}, 101))
	}
	var packets [][]byte
	ranges := make([]Range, 1)
	step := func() {
		q.tick++
		for _, o := range ships {
			q.w.Edit(o)
			if o.Class() == q.ship {
				live[ship](o).X++
				live[ship](o).Y--
			} else {
				live[rock](o).Y++
			}
		}
		q.w.Capture(q.tick)
		packets, _ = q.p.AppendSnapshot(packets[:0], q.tick, wide)
		for _, b := range packets {
			a, err := q.r.Apply(b)
			if err != nil {
				t.Fatal(err)
			}
			ranges[0] = Range{a.Packet, a.Packet}
			q.p.Ack(ranges)
		}
		q.r.Events()
	}
	for range 3 * state.Horizon {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// A class of another schema has no objects, even if another class has the same number.
func TestAClassOfAnotherTableHasNoObjects(t *testing.T) {
	q, o := newForeignPair(t, 100)
	q.spawnShip(q.w, ship{Name: "a"}, 0, 101)
	q.deliver()
	count := func(c *state.Class) (n int) {
		for range q.r.All(c) {
			n++
		}
		return n
	}
	if n := count(o.ship); n != 1 || q.r.Len(o.ship) != 1 {
		t.Fatalf("%d ships, Len %d", n, q.r.Len(o.ship))
	}
	if stranger := newOtherBuild(t).ship; count(stranger) != 0 || q.r.Len(stranger) != 0 || stranger.Index() != o.ship.Index() {
		t.Errorf("a stranger has %d objects, Len %d", count(stranger), q.r.Len(stranger))
	}
	for _, other := range []*state.Class{q.hoard, classOf[rock](t, "of no table")} {
		if count(other) != 0 || q.r.Len(other) != 0 {
			t.Errorf("class %s, number %d, has objects", other.Name(), other.Index())
		}
	}
	if q.w.Len(o.ship) != 0 || q.w.Len(q.ship) != 1 {
		t.Errorf("the world has %d and %d", q.w.Len(o.ship), q.w.Len(q.ship))
	}
}

// A local object has a class of this side. Its encoding is that of the server's class of the same
// name or, if the server has none, of the own declaration.
func TestALocalObjectIsCodedAsTheServers(t *testing.T) {
	q, o := newForeignPair(t, 100)
	known := q.r.AddLocal(o.ship, unsafe.Pointer(new(otherShip)), 7)
	alone := q.r.AddLocal(o.stone, unsafe.Pointer(new(rock)), 7)
	if known.Class() != o.ship || known.Plan() != q.r.Table().Classes()[q.ship.Index()].Plan() || known.Plan() == o.ship.Plan() {
		t.Error("a ship is not coded as the server's")
	}
	if alone.Class() != o.stone || alone.Plan() != o.stone.Plan() {
		t.Error("a class of this side alone is not coded as it is declared")
	}
	for _, c := range []*state.Class{o.ship, o.stone} {
		if n := len(slices.Collect(q.r.All(c))); n != 1 || q.r.Len(c) != 1 {
			t.Errorf("of %s there are %d objects, Len %d", c.Name(), n, q.r.Len(c))
		}
	}
}

// Clear reports the end of each object, in the order of ids. Then the replica accepts the state of
// another server, of another build or its own, like a new replica.
func TestAReplicaMovesToAnotherServer(t *testing.T) {
	q, o := newForeignPair(t, 100)
	left := q.spawnShip(q.w, ship{X: 9, Name: "eve"}, 0, 101)
	for range 3 {
		q.spawnShip(q.w, ship{X: 1, Name: "ann"}, 0, 101)
		q.spawnRock(q.w, rock{X: 5}, 101) // of an undeclared class
	}
	q.deliver()
	q.w.Despawn(left) // leaves an empty slot
	q.deliver()
	q.r.Events()
	var want []state.ID
	for obj := range q.r.All(o.ship) {
		want = append(want, obj.ID())
	}
	q.r.Clear()
	var got []state.ID
	for _, e := range q.r.Events() {
		if e.Kind != replica.Despawn || e.Object.Alive() || (*otherShip)(e.Old).Title != "ann" {
			t.Errorf("the end of %v is %+v", e.Object.ID(), e)
		}
		got = append(got, e.Object.ID())
	}
	if !slices.Equal(got, want) || len(got) != 3 || q.r.Len(o.ship) != 0 {
		t.Errorf("ended %v, want %v; %d are left", got, want, q.r.Len(o.ship))
	}
	table := q.r.Table()
	for _, server := range []*state.Table{nil, table} {
		q.r.Adapt(server)
		if q.r.Tick() != 0 || q.r.Size() != 0 || len(ids(q.r)) != 0 || len(q.r.Events()) != 0 {
			t.Errorf("it begins at tick %d with %d bytes, %d objects", q.r.Tick(), q.r.Size(), len(ids(q.r)))
		}
	}
	next := newPair(t, 10)
	next.r = q.r
	next.spawnShip(next.w, ship{X: 2, Name: "bob"}, 0, 11)
	next.deliver()
	if q.r.Len(o.ship) != 1 || q.r.Tick() != next.tick || kinds(q.r.Events()) != "S" {
		t.Errorf("of the other server it has %d ships at tick %d", q.r.Len(o.ship), q.r.Tick())
	}
}

func TestBindClassNamesTheField(t *testing.T) {
	s := newSchema(t)
	other := classOf[struct{ X string }](t, "ship")
	_, err := state.BindClass("ship", other, s.ship.Layout(), new(codec.Budget))
	var m *codec.Mismatch
	if !errors.As(err, &m) || m.Field != "X" || m.Here != "string max=128" || err.Error() != "field X is float32 quant=1/256 there, but string max=128 here" {
		t.Error(err)
	}
}

// With any bytes, for a replica with the server's layout and its own structs: no panic, an error
// changes no state, and live values agree with stored versions.
func FuzzAdaptedApply(f *testing.F) {
	_, _, next := scene(f)
	for _, b := range next {
		f.Add(b, uint16(0), byte(0))
		f.Add(b, uint16(11), byte(0x21))
	}
	o := newOtherBuild(f)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip byte) {
		s := newSchema(t)
		r := replica.New(o.table)
		r.Adapt(bindTable(t, o.table, s.table))
		s.play(t, r)
		b = bytes.Clone(b)
		if int(at) < len(b) {
			b[at] ^= flip
		}
		before := picture(r)
		r.Events()
		a, err := r.Apply(b)
		if (err != nil || !a.Ack) && (!bytes.Equal(before, picture(r)) || len(r.Events()) != 0) {
			t.Fatalf("refused or discarded, but something changed: %+v %v", a, err)
		}
		for _, obj := range r.Objects().Slots {
			if obj == nil || obj.WireClass().Unknown {
				continue
			}
			fresh, v := reflect.New(reflect.TypeFor[otherShip]()), obj.Hist.Newest()
			obj.Plan().Restore(fresh.UnsafePointer(), &v, nil)
			want, _ := obj.Plan().Append(nil, fresh.UnsafePointer())
			if got, _ := obj.Plan().Append(nil, obj.Live()); !bytes.Equal(got, want) {
				t.Fatalf("live %x, stored %x", got, want)
			}
		}
	})
}
