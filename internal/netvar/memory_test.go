package netvar

import (
	"errors"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
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
func TestStoredIsWhatIsAllocated(t *testing.T) {
	for _, c := range crops(t) {
		t.Run(c.name, func(t *testing.T) {
			packets, large := c.grow(t)
			before := heap()
			r := NewReplica(NewTable(c.class))
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
			r.mustCount(t)
			if counted := r.size(); 2*took > 3*counted || 2*counted > 3*took {
				t.Errorf("%d objects take %d bytes, %d are counted: %.2f times", r.Len(c.class), took, counted, float64(took)/float64(counted))
			}
			for o := range r.All(c.class) {
				r.despawn(o, 1)
			}
			if slices.ContainsFunc(r.masks, func(mask []byte) bool { return mask != nil }) {
				t.Error("what may be read of objects is kept after them")
			}
			r.Events()
			r.Events()
			if fixed := r.size(); fixed > 1<<20 {
				t.Errorf("%d bytes are counted of nothing", fixed)
			}
			runtime.KeepAlive(packets)
			runtime.KeepAlive(large)
		})
	}
}

// mustCount recomputes the replica's count.
func (r *Replica) mustCount(tb testing.TB) {
	tb.Helper()
	r.events.mustCount(tb)
	r.handed.mustCount(tb)
	want := r.events.bytes + r.handed.bytes
	for _, o := range slices.Concat(r.slots, r.drawing.gone) {
		if o == nil {
			continue
		}
		if o.past != nil {
			want += o.past.bytes
		}
		want += codec.Allocated(int(unsafe.Sizeof(*o))) + seatBytes
		want += codec.Allocated(int(o.class.plan.Type().Size()))
		want += 8*len(o.hist.data) + headerSize*len(o.hist.blobs)
		for j := range int(o.hist.nb) {
			seen := map[*byte]bool{}
			for i := range int(o.hist.n) {
				if b := o.hist.blobsOf(i)[j]; len(b) > 0 && !seen[&b[0]] {
					seen[&b[0]] = true
					want += codec.Allocated(len(b))
				}
			}
		}
		for j, b := range o.hist.newest().Blobs {
			want += o.class.plan.Heap(j, b)
		}
	}
	if got := r.size(); got != want {
		tb.Fatalf("%d bytes are counted, there are %d", got, want)
	}
}

// mustCount recomputes the list's count of its old values, used or not.
func (l *eventList) mustCount(tb testing.TB) {
	tb.Helper()
	kept, used := 0, len(l.list)
	for i := range l.olds {
		o := &l.olds[i]
		kept += len(o.values) * (codec.Allocated(int(o.class.plan.Type().Size())) + int(unsafe.Sizeof(Event{})) + 8)
		used += o.used
	}
	if l.kept != kept || l.bytes < kept || used == 0 && l.bytes != kept {
		tb.Fatalf("%d and %d bytes are counted of old values, there are %d, %d used", l.kept, l.bytes, kept, used)
	}
}

// mustLetGo fails if references remain after the check of a packet, or of old events.
func (r *Replica) mustLetGo(tb testing.TB) {
	tb.Helper()
	if r.awaited != 0 || 24*cap(r.blobs) > 1<<20 || 8*cap(r.words) > 1<<20 {
		tb.Fatalf("%d bytes are reserved after the packet, the scratch has room for %d blobs and %d words", r.awaited, cap(r.blobs), cap(r.words))
	}
	for _, b := range r.blobs[:cap(r.blobs)] {
		if b != nil {
			tb.Fatal("the scratch holds a blob of a packet that is done")
		}
	}
	for _, s := range r.staged[:cap(r.staged)] {
		if s.object != nil || s.values.Blobs != nil {
			tb.Fatal("a staged record holds an object, or its value")
		}
	}
	for _, l := range []*eventList{&r.events, &r.handed} {
		for _, e := range l.list[len(l.list):cap(l.list)] {
			if e != (Event{}) {
				tb.Fatal("an event that is over holds its object")
			}
		}
		for _, o := range l.olds {
			for _, v := range o.values[o.used:] {
				if o.class.plan.Blobs() > 0 && !reflect.NewAt(o.class.plan.Type(), v).Elem().IsZero() {
					tb.Fatal("an old value that nobody uses holds what it had")
				}
			}
		}
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
			packets, large := c.grow(t)
			last := packets[len(packets)-1]
			r := NewReplica(NewTable(c.class))
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
			before, stored := r.size(), r.stored
			r.leave(100 << 10)
			var err error
			if took := allocated(func() { _, err = r.Apply(last[0]) }); !errors.Is(err, ErrMemory) || took > 200<<10 {
				t.Errorf("%d bytes allocated with room for 100 KiB: %v", took, err)
			}
			r.mustLetGo(t)
			r.stored = stored
			mustApply(t, r, nil, last...)
			if grown := r.size() - before; grown < 380_000 || grown > 600_000 {
				t.Errorf("old values of 400 kB count as %d", grown)
			}
			r.Events()
			r.Events()
			r.mustCount(t)
			r.mustLetGo(t)
			if kept := r.size() - before; kept > c.objects*c.class.eventSize()+4096 {
				t.Errorf("%d bytes are counted after the events", kept)
			}
			for o := range r.All(c.class) {
				r.despawn(o, 1)
			}
			held := r.size()
			r.Events()
			r.Events()
			if gone := held - r.size(); c.class.plan.Blobs() > 0 && gone < 380_000 {
				t.Errorf("the despawns let go of %d bytes", gone)
			}
			if left := r.size(); left > before/2+c.objects*c.class.eventSize() {
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
	record := version + int(unsafe.Sizeof(stagedRecord{}))
	value := codec.Allocated(int(unsafe.Sizeof(pouch{})))
	object := codec.Allocated(int(unsafe.Sizeof(Object{}))) + value + 64 + 3*version
	event := value + int(unsafe.Sizeof(Event{})) + 8
	blob := func(n int) int {
		return codec.Allocated(len(wire.AppendUvarint(nil, uint64(n)))+n) + codec.Allocated(n)
	}
	for _, watched := range []bool{false, true} {
		w := NewWorld(NewTable(class))
		p, r := w.NewPeer(1), NewReplica(w.table)
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
			stored := r.stored
			r.leave(need - 1)
			if _, err := r.Apply(packets[0]); !errors.Is(err, ErrMemory) {
				t.Errorf("watched %v: %s is taken with room for %d bytes: %v", watched, what, need-1, err)
			}
			r.leave(need)
			added := r.stored - stored
			a, err := r.Apply(packets[0])
			if err != nil {
				t.Errorf("watched %v: %s is refused with room for %d bytes: %v", watched, what, need, err)
			}
			p.Ack([]Range{{a.Packet, a.Packet}})
			r.stored -= added
			r.mustCount(t)
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

// The scratch for checking packets doubles up to a megabyte, and exceeds that only for a single
// value that needs more.
func TestTheScratchIsBounded(t *testing.T) {
	var words []uint64
	var headers [][]byte
	for n := 1; n <= 300; n++ {
		words, headers = lengthen(words, 1000), lengthen(headers, 1000)
		// A full array is not copied, so the second array begins with the second value, the third
		// with the fourth.
		want := min(8000<<(bits.Len(uint(n))-1), 1<<20)
		if room := 8 * cap(words); room != want {
			t.Fatalf("after %d values the words have room for %d bytes, want %d", n, room, want)
		}
	}
	if room := 24 * cap(headers); room > 1<<20 || room < 1<<20-24 {
		t.Errorf("the headers have room for %d bytes", room)
	}
	if words = lengthen(words, 1<<18); len(words) != 1<<18 || cap(words) != 1<<18 {
		t.Errorf("a value of %d words has room for %d", 1<<18, cap(words))
	}
}

// Forget also drops memory for drawing: ended objects, and earlier values.
func TestForgetLetsGoOfWhatIsDrawn(t *testing.T) {
	q := drawnPair(t)
	o, doomed := q.spawnShip(q.w, ship{Name: "ann"}, 0, 1), q.spawnShip(q.w, ship{}, 0, 1)
	q.deliver()
	q.w.Edit(o)
	live[ship](o).Name = "bob"
	q.w.Despawn(doomed)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	if s := q.drawOnce(c, &Moment{1, 2, 0}); s.Name != "ann" || c.past == nil || len(q.r.drawing.gone) != 1 {
		t.Fatalf("drawn %+v, %d are gone", s, len(q.r.drawing.gone))
	}
	q.r.Forget()
	if c.past != nil || len(q.r.drawing.gone) != 0 {
		t.Errorf("an older value is kept: %v, and %d objects that are gone", c.past != nil, len(q.r.drawing.gone))
	}
	q.r.mustCount(t)
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
	if c.hist.n != 2 {
		t.Fatalf("%d versions", c.hist.n)
	}
	for _, fault := range []*ship{nil, {Name: "somebody"}, {Bag: []item{{"longer", 1}, {"still", 2}}}} {
		if fault != nil {
			q.w.Edit(o)
			right := *live[ship](o)
			*live[ship](o) = *fault
			wrong, was := captured(o), c.hist.newest()
			*live[ship](o) = right
			q.r.restore(c, &wrong, &was)
			q.r.stored += c.hist.replaceNewest(&wrong)
			q.r.mustCount(t)
			c.hashed = 0
			q.r.compare(&header{HasDigest: true}) // stores the hash of the faulty value
		}
		q.r.Events()
		q.p.RequestFull()
		q.p.RequestDigest(1)
		packets, _ = q.next()
		mustApply(t, q.r, nil, packets...)
		q.r.mustCount(t)
		if d, _ := q.r.Digest(); d != DigestEqual {
			t.Errorf("with %+v the digest state is %d afterwards", fault, d)
		}
		if got := kinds(q.r.Events()); (got == "C") != (fault != nil) || len(got) > 1 {
			t.Errorf("with %+v the events are %q", fault, got)
		}
		if got := live[ship](c); c.hist.n != 2 || got.X != 1 || got.Name != "" || len(got.Bag) != 1 {
			t.Fatalf("%d versions after the full record, and %+v", c.hist.n, got)
		}
	}
}

// If there is room for a record but not for the growth of its history, the record is rejected
// before the history grows.
func TestAHistoryGrowsWithinTheBound(t *testing.T) {
	class := classOf[numbered](t, "n")
	w := NewWorld(NewTable(class))
	p, r := w.NewPeer(1), NewReplica(w.table)
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
		stored, room, need := r.stored, c.hist.room, class.versionSize()+int(unsafe.Sizeof(stagedRecord{}))
		if grown := c.hist.drafts() * class.versionSize(); grown > 0 {
			need += grown
			r.leave(need - 1)
			if _, err := r.Apply(packets[0]); !errors.Is(err, ErrMemory) || c.hist.room != room {
				t.Errorf("with room for %d bytes a history of %d versions grew to %d: %v", need-1, room, c.hist.room, err)
			}
			r.stored = stored
		}
		r.leave(need)
		added := r.stored - stored
		mustApply(t, r, nil, packets...)
		r.stored -= added
		r.mustCount(t)
	}
	if c, _ := r.Get(o.ID()); c.hist.room <= firstRoom {
		t.Error("the history never grew")
	}
}

// An object is counted from its spawn to its despawn.
func TestObjectsCountWhileTheyAreThere(t *testing.T) {
	class := classOf[manyTexts](t, "t")
	w := NewWorld(NewTable(class))
	p, r := w.NewPeer(1), NewReplica(w.table)
	var all []*Object
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
			r.mustCount(t)
			r.mustLetGo(t)
			r.Events()
		}
		if len(r.ids()) != n {
			t.Fatalf("%d objects, want %d", len(r.ids()), n)
		}
	}
}

// leave reduces the free memory to so many bytes.
func (r *Replica) leave(room int) { r.stored += maxStored - room - r.size() }

// A packet of a kilobyte cannot make a client allocate more than the bound: it is rejected first.
func TestHostilePacketsAllocateNoMoreThanThereIsRoomFor(t *testing.T) {
	const room = 1 << 20
	class := classOf[manyTexts](t, "t")
	w := NewWorld(NewTable(class))
	p := w.NewPeer(1)
	var all []*Object
	for range 2000 {
		all = append(all, w.Spawn(class, unsafe.Pointer(new(manyTexts)), 0, 1))
	}
	w.Capture(1)
	spawns, _ := snap(p, 1, Limit{Packets: 10, PacketSize: MaxPacket})
	t.Run("spawns", func(t *testing.T) {
		r := NewReplica(w.table)
		r.leave(room)
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
		var h header
		readHeader(&body, 0, &h)
		record := wire.AppendUint32([]byte{coderBits, byte(h.Padding)}, 1)
		record = append(wire.AppendUvarint(record, 1), spawns[0][body.Offset():]...)
		r := NewReplica(w.table)
		var err error
		if took := allocated(func() { _, err = r.ApplyLarge(record) }); !errors.Is(err, ErrRecord) || took > 100<<10 {
			t.Errorf("%d bytes allocated for a record that holds many: %v", took, err)
		}
	})
	t.Run("versions", func(t *testing.T) { // a byte for each object, and its history would grow
		const room = 4 << 20
		r := NewReplica(w.table)
		mustApply(t, r, p, spawns...)
		before := r.size()
		for tick := uint64(2); tick < 60; tick++ {
			for _, o := range all[:200] {
				w.Edit(o)
				live[manyTexts](o).Step++
			}
			w.Capture(tick)
			packets, _ := snap(p, tick, Limit{Packets: 10, PacketSize: MaxPacket})
			if tick == 3 {
				before = r.size()
				r.leave(room)
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
			r.mustLetGo(t)
			if refused {
				if tick < 4 {
					t.Errorf("refused at tick %d", tick)
				}
				return
			}
		}
		t.Errorf("nothing is refused; %d bytes at first, %d now", before, r.size())
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
		q.r.mustCount(t)
	}
	q.w.Despawn(doomed)
	before := q.r.size()
	q.r.Forget()
	q.r.Events()
	q.r.Events()
	q.r.mustCount(t)
	if now := q.r.size(); before-now < 8000 {
		t.Errorf("%d bytes before, %d after", before, now)
	}
	for _, o := range q.r.slots {
		if o != nil && (o.hist.n != 1 || o.hist.room != firstRoom) {
			t.Errorf("%v keeps %d versions and room for %d", o.ID(), o.hist.n, o.hist.room)
		}
	}
	q.w.Edit(o)
	live[ship](o).Name = "z"
	packets, _ := q.next()
	if _, err := q.r.Apply(packets[0]); !errors.Is(err, ErrBaseline) {
		t.Errorf("a delta from what is forgotten: %v", err)
	}
	q.p.RequestFull()
	q.p.RequestDigest(2)
	q.deliver()
	q.deliver()
	q.r.mustCount(t)
	if c, ok := q.r.Get(o.ID()); !ok || live[ship](c).Name != "z" || q.r.stats.DigestsEqual == 0 {
		t.Errorf("after the full state: %v, %+v", ok, q.r.stats)
	}
}
