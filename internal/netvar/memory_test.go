package netvar

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The bytes that a client counts are those that it has allocated, for all shapes of a server's
// state: otherwise the bound would have no effect, or would reject small states.
func TestStoredBytesMatchAllocations(t *testing.T) {
	for _, c := range crops(t) {
		t.Run(c.name, func(t *testing.T) {
			packets, large := c.grow(t)
			before := heap()
			r := replica.New(state.NewTable(c.class))
			r.TellChanges(c.class, c.watched)
			for i, of := range packets {
				for _, b := range of {
					if _, err := r.Apply(b); err != nil {
						t.Fatal(err)
					}
					r.Events()
				}
				for _, b := range large[i] {
					if _, err := r.ApplyLarge(b); err != nil {
						t.Fatal(err)
					}
					r.Events()
				}
			}
			r.Events()
			took := heap() - before
			mustCount(t, r)
			if counted := r.Size(); 2*took > 3*counted || 2*counted > 3*took {
				t.Errorf("%d objects take %d bytes, %d are counted: %.2f times", r.Len(c.class), took, counted, float64(took)/float64(counted))
			}
			r.Clear()
			for slot := range c.objects {
				if r.Mask(slot) != nil {
					t.Error("a mask is kept after its object")
				}
			}
			r.Events()
			r.Events()
			if fixed := r.Size(); fixed > 1<<20 {
				t.Errorf("%d bytes are counted of nothing", fixed)
			}
			runtime.KeepAlive(packets)
			runtime.KeepAlive(large)
		})
	}
}

// mustCount fails if the replica's count is wrong.
func mustCount(tb testing.TB, r *replica.Replica) {
	tb.Helper()
	if err := r.Audit(); err != nil {
		tb.Fatal(err)
	}
}

// bulky is large on this side and small on the wire.
type bulky struct {
	X     int32
	Local [4096]byte `net:"-"`
}

// Old values are copies, and are counted: before they are made, as long as the game may read them,
// and not afterwards.
func TestOldValuesCount(t *testing.T) {
	for name, c := range map[string]crop{
		"what they have allocated": {class: classOf[bagged](t, "b"), objects: 40, watched: true,
			value: func(int) unsafe.Pointer { return unsafe.Pointer(&bagged{Bag: make([]byte, 10_000)}) },
			edit:  func(p unsafe.Pointer, tick int) { (*bagged)(p).X++ }},
		"themselves": {class: classOf[bulky](t, "b"), objects: 100, watched: true,
			value: func(int) unsafe.Pointer { return unsafe.Pointer(new(bulky)) },
			edit:  func(p unsafe.Pointer, tick int) { (*bulky)(p).X++ }},
	} {
		t.Run(name, func(t *testing.T) {
			c.ticks = 1
			event := eventSize(c.class)
			packets, large := c.grow(t)
			last := packets[len(packets)-1]
			r := replica.New(state.NewTable(c.class))
			for i, of := range packets[:len(packets)-1] {
				mustApply(t, r, nil, of...)
				for _, b := range large[i] {
					if _, err := r.ApplyLarge(b); err != nil {
						t.Fatal(err)
					}
				}
				r.Events()
			}
			r.Events()
			before := r.Size()
			r.SetBound(r.Size() + 100<<10)
			var err error
			if took := allocated(func() { _, err = r.Apply(last[0]) }); !errors.Is(err, replica.ErrMemory) || took > 200<<10 {
				t.Errorf("%d bytes allocated with room for 100 KiB: %v", took, err)
			}
			r.SetBound(replica.MaxStored)
			mustApply(t, r, nil, last...)
			if grown := r.Size() - before; grown < 380_000 || grown > 600_000 {
				t.Errorf("old values of 400 kB count as %d", grown)
			}
			r.Events()
			r.Events()
			mustCount(t, r)
			if kept := r.Size() - before; kept > c.objects*event+4096 {
				t.Errorf("%d bytes are counted after the events", kept)
			}
			r.Clear()
			held := r.Size()
			r.Events()
			r.Events()
			if gone := held - r.Size(); c.class.Plan().Blobs() > 0 && gone < 380_000 {
				t.Errorf("the despawns let go of %d bytes", gone)
			}
			if left := r.Size(); left > before/2+c.objects*event {
				t.Errorf("%d bytes are left of %d", left, before)
			}
		})
	}
}

// A record needs exactly the memory that it takes: its version, its staged record, its new blobs
// and its event.
func TestARecordNeedsTheRoomThatItTakes(t *testing.T) {
	type pouch struct {
		X    int32
		A, B []byte `net:"max=200"`
	}
	const version = 8*3 + 2*24 // tick, X, owner, and the headers of two slices
	class := classOf[pouch](t, "p")
	record := recordSize(class)
	value := codec.Allocated(int(unsafe.Sizeof(pouch{})))
	object := codec.Allocated(int(unsafe.Sizeof(state.Object{}))) + value + 64 + 3*version
	event := value + int(unsafe.Sizeof(replica.Event{})) + 8
	blob := func(n int) int {
		return codec.Allocated(len(wire.AppendUvarint(nil, uint64(n)))+n) + codec.Allocated(n)
	}
	for _, watched := range []bool{false, true} {
		w := NewWorld(state.NewTable(class))
		p, r := w.NewPeer(1), replica.New(w.table)
		r.TellChanges(class, watched)
		o := w.Spawn(class, unsafe.Pointer(&pouch{A: make([]byte, 200), B: make([]byte, 50)}), 0, 1)
		tick := uint64(0)
		must := func(what string, need, whenWatched int) {
			t.Helper()
			if tick++; watched {
				need += whenWatched
			}
			w.Capture(tick)
			packets, _ := snap(p, tick, wide)
			r.SetBound(r.Size() + need - 1)
			if _, err := r.Apply(packets[0]); !errors.Is(err, replica.ErrMemory) {
				t.Errorf("watched %v: %s is taken with room for %d bytes: %v", watched, what, need-1, err)
			}
			r.SetBound(r.Size() + need)
			a, err := r.Apply(packets[0])
			if err != nil {
				t.Errorf("watched %v: %s is refused with room for %d bytes: %v", watched, what, need, err)
			}
			p.Ack([]Range{{a.Packet, a.Packet}})
			r.SetBound(replica.MaxStored)
			mustCount(t, r)
			r.Events()
		}
		must("a new object", object+record+blob(200)+blob(50), event)
		w.Edit(o)
		live[pouch](o).X++
		must("a number", record, event+codec.Allocated(200)+codec.Allocated(50))
		w.Edit(o)
		live[pouch](o).B = make([]byte, 100)
		must("a list", record+blob(100), event+codec.Allocated(200)+codec.Allocated(50))
	}
}

// Forget also drops memory for drawing: ended objects, and earlier values.
func TestForgetReleasesMemoryForDrawing(t *testing.T) {
	q := drawnPair(t)
	o, doomed := q.spawnShip(q.w, ship{Name: "ann"}, 0, 1), q.spawnShip(q.w, ship{}, 0, 1)
	q.deliver()
	q.w.Edit(o)
	live[ship](o).Name = "bob"
	q.w.Despawn(doomed)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	if s := q.drawOnce(c, &state.Moment{From: 1, To: 2, Alpha: 0}); s.Name != "ann" || c.Past == nil || gone(q) != 1 {
		t.Fatalf("drawn %+v, %d are gone", s, gone(q))
	}
	q.r.Forget()
	if c.Past != nil || gone(q) != 0 {
		t.Errorf("an older value is kept: %v, and %d objects that are gone", c.Past != nil, gone(q))
	}
	mustCount(t, q.r)
}

// gone returns the number of ended ships and rocks that are kept for drawing.
func gone(q *pair) int {
	return len(slices.Collect(q.r.Gone(q.ship))) + len(slices.Collect(q.r.Gone(q.schema.rock)))
}

// A full record of the newest version replaces it, and memory that it shared with the version
// before is still counted once. The record repairs faults: in values, their memory and the digest.
func TestAReplacedVersionCountsOnce(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{Bag: []item{{"x", 1}}}, 0, 1)
	q.deliver()
	q.w.Edit(o)
	live[ship](o).X++
	packets, _ := q.next()
	mustApply(t, q.r, nil, packets...) // unacknowledged, so that both versions are kept
	c, _ := q.r.Get(o.ID())
	if c.Hist.Len() != 2 {
		t.Fatalf("%d versions", c.Hist.Len())
	}
	for _, fault := range []*ship{nil, {Name: "somebody"}, {Bag: []item{{"longer", 1}, {"still", 2}}}} {
		if fault != nil {
			q.w.Edit(o)
			right := *live[ship](o)
			*live[ship](o) = *fault
			wrong := captured(o)
			*live[ship](o) = right
			q.r.Corrupt(c, &wrong)
			if mustCount(t, q.r); c.ValueHash(nil, new([]byte)) != c.HashNewest(nil, new([]byte)) {
				t.Errorf("the hash of %+v is that of the right value", fault)
			}
		}
		q.r.Events()
		q.p.RequestFull()
		q.p.RequestDigest(1)
		packets, _ = q.next()
		mustApply(t, q.r, nil, packets...)
		mustCount(t, q.r)
		if d, _ := q.r.Digest(); d != replica.DigestEqual {
			t.Errorf("with %+v the digest state is %d afterwards", fault, d)
		}
		if got := kinds(q.r.Events()); (got == "C") != (fault != nil) || len(got) > 1 {
			t.Errorf("with %+v the events are %q", fault, got)
		}
		if got := live[ship](c); c.Hist.Len() != 2 || got.X != 1 || got.Name != "" || len(got.Bag) != 1 {
			t.Fatalf("%d versions after the full record, and %+v", c.Hist.Len(), got)
		}
	}
}

// If there is room for a record but not for the growth of its history, the record is rejected
// before the history grows.
func TestAHistoryGrowsWithinTheBound(t *testing.T) {
	class := classOf[numbered](t, "n")
	w := NewWorld(state.NewTable(class))
	p, r := w.NewPeer(1), replica.New(w.table)
	r.TellChanges(class, false)
	o := w.Spawn(class, unsafe.Pointer(new(numbered)), 0, 1)
	for tick := uint64(1); tick < 40; tick++ {
		w.Edit(o)
		live[numbered](o).A[0]++
		w.Capture(tick)
		packets, _ := snap(p, tick, wide)
		if tick <= 2 { // so that later records have trends
			mustApply(t, r, p, packets...)
			continue
		}
		c, _ := r.Get(o.ID())
		room, need := c.Hist.Capacity(), recordSize(class)
		if grown := c.Hist.Growth() * 8 * (class.Words() + 1); grown > 0 {
			need += grown
			r.SetBound(r.Size() + need - 1)
			if _, err := r.Apply(packets[0]); !errors.Is(err, replica.ErrMemory) || c.Hist.Capacity() != room {
				t.Errorf("with room for %d bytes a history of %d versions grew to %d: %v", need-1, room, c.Hist.Capacity(), err)
			}
			r.SetBound(replica.MaxStored)
		}
		r.SetBound(r.Size() + need)
		mustApply(t, r, nil, packets...)
		r.SetBound(replica.MaxStored)
		mustCount(t, r)
	}
	if c, _ := r.Get(o.ID()); c.Hist.Capacity() <= state.FirstCapacity {
		t.Error("the history never grew")
	}
}

// An object is counted from its spawn to its despawn.
func TestObjectsCountWhileTheyAreThere(t *testing.T) {
	class := classOf[manyTexts](t, "t")
	w := NewWorld(state.NewTable(class))
	p, r := w.NewPeer(1), replica.New(w.table)
	var all []*state.Object
	size, tick := 16, uint64(0)
	for _, n := range []int{size, 0, 1, 2*size - 1, 0, 1} {
		for len(all) > n {
			w.Despawn(all[0])
			all = all[1:]
		}
		for len(all) < n {
			all = append(all, w.Spawn(class, unsafe.Pointer(new(manyTexts)), 0, tick+1))
		}
		for range 3 {
			tick++
			w.Capture(tick)
			packets, _ := snap(p, tick, wide)
			mustApply(t, r, p, packets...)
			mustCount(t, r)
			r.Events()
		}
		if len(ids(r)) != n {
			t.Fatalf("%d objects, want %d", len(ids(r)), n)
		}
	}
}

// recordSize returns the bytes that a change of an object of a class takes, without its event, and
// eventSize those of its event.
func recordSize(c *state.Class) int {
	r := replica.New(state.NewTable(c))
	r.TellChanges(c, false)
	return r.ChangeSize(c)
}

func eventSize(c *state.Class) int {
	return replica.New(state.NewTable(c)).ChangeSize(c) - recordSize(c)
}

// A packet of a kilobyte cannot make a client allocate more than the bound: it is rejected first.
func TestHostilePacketsAllocateNoMoreThanThereIsRoomFor(t *testing.T) {
	const room = 1 << 20
	class := classOf[manyTexts](t, "t")
	w := NewWorld(state.NewTable(class))
	p := w.NewPeer(1)
	var all []*state.Object
	for range 2000 {
		all = append(all, w.Spawn(class, unsafe.Pointer(new(manyTexts)), 0, 1))
	}
	w.Capture(1)
	spawns, _ := snap(p, 1, Limit{Packets: 10, PacketSize: packet.MaxSize})
	t.Run("spawns", func(t *testing.T) {
		r := replica.New(w.table)
		r.SetBound(r.Size() + room)
		refused := 0
		took := allocated(func() {
			for _, b := range spawns {
				if _, err := r.Apply(b); err != nil {
					refused++
				}
			}
		})
		if refused == 0 || took > 2*room {
			t.Errorf("%d packets were refused, and %d bytes allocated with room for %d", refused, took, room)
		}
	})
	t.Run("a record of many objects", func(t *testing.T) {
		body := wire.NewReader(spawns[0])
		var h packet.Header
		packet.ReadHeader(&body, 0, &h)
		record := wire.AppendUint32([]byte{packet.Coder, byte(h.Padding)}, 1)
		record = append(wire.AppendUvarint(record, 1), spawns[0][body.Offset():]...)
		r := replica.New(w.table)
		var err error
		if took := allocated(func() { _, err = r.ApplyLarge(record) }); !errors.Is(err, packet.ErrRecord) || took > 100<<10 {
			t.Errorf("%d bytes allocated for a record that holds many: %v", took, err)
		}
	})
	t.Run("versions", func(t *testing.T) { // a byte for each object, and its history would grow
		const room = 4 << 20
		r := replica.New(w.table)
		mustApply(t, r, p, spawns...)
		before := r.Size()
		for tick := uint64(2); tick < 60; tick++ {
			for _, o := range all[:200] {
				w.Edit(o)
				live[manyTexts](o).Step++
			}
			w.Capture(tick)
			packets, _ := snap(p, tick, Limit{Packets: 10, PacketSize: packet.MaxSize})
			if tick == 3 {
				before = r.Size()
				r.SetBound(r.Size() + room)
			}
			refused := false
			for _, b := range packets {
				took := allocated(func() {
					_, err := r.Apply(b)
					refused = refused || err != nil
				})
				if tick > 2 && took > 2*room {
					t.Fatalf("tick %d: a packet allocates %d bytes with room for %d", tick, took, room)
				}
			}
			if refused {
				if tick < 4 {
					t.Errorf("refused at tick %d", tick)
				}
				return
			}
		}
		t.Errorf("nothing is refused; %d bytes at first, %d now", before, r.Size())
	})
}

func allocated(fn func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// After any spawns and despawns the count is exact. After Forget it is little more than the newest
// versions, from which, with a full state, replication continues.
func TestForgetLetsGoOfBaselines(t *testing.T) {
	q := newPair(t, 0)
	q.spawnShip(q.w, ship{}, 0, 1)
	o := q.spawnShip(q.w, ship{Bag: []item{{"x", 1}}}, 0, 1)
	doomed := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	for i := range 40 { // no acknowledgements, so all versions are kept
		q.w.Edit(o)
		live[ship](o).Bag = append(live[ship](o).Bag[:0:0], item{"x", uint8(i)})
		q.edit(doomed).X++
		packets, _ := q.next()
		mustApply(t, q.r, nil, packets...)
		mustCount(t, q.r)
	}
	q.w.Despawn(doomed)
	before := q.r.Size()
	q.r.Forget()
	q.r.Events()
	q.r.Events()
	mustCount(t, q.r)
	if now := q.r.Size(); before-now < 8000 {
		t.Errorf("%d bytes before, %d after", before, now)
	}
	for _, o := range q.r.Objects().Slots {
		if o != nil && (o.Hist.Len() != 1 || o.Hist.Capacity() != state.FirstCapacity) {
			t.Errorf("%v keeps %d versions and room for %d", o.ID(), o.Hist.Len(), o.Hist.Capacity())
		}
	}
	q.w.Edit(o)
	live[ship](o).Name = "z"
	packets, _ := q.next()
	if _, err := q.r.Apply(packets[0]); !errors.Is(err, replica.ErrBaseline) {
		t.Errorf("a delta from what is forgotten: %v", err)
	}
	q.p.RequestFull()
	q.p.RequestDigest(2)
	q.deliver()
	q.deliver()
	mustCount(t, q.r)
	if c, ok := q.r.Get(o.ID()); !ok || live[ship](c).Name != "z" || q.r.Stats().DigestsEqual == 0 {
		t.Errorf("after the full state: %v, %+v", ok, *q.r.Stats())
	}
}
