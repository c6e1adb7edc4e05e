package netvar

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// field is a world of rocks that all move, with clients behind a link of the given delay.
type field struct {
	schema
	w       *World
	rocks   []*state.Object
	peers   []*Peer
	packets [][][]byte // by peer, reused
	acks    []uint64   // by tick: last packet id of peer 0, which is the same for all peers
	tick    uint64
	delay   int
}

func newField(tb testing.TB, rocks, peers, delay int) *field {
	f := &field{schema: newSchema(tb), delay: delay, packets: make([][][]byte, peers), tick: 1 << 33}
	f.w = NewWorld(f.table)
	for i := range rocks {
		f.rocks = append(f.rocks, f.spawnRock(f.w, rock{X: int32(i * 500), Y: int32(i * -300)}, 1))
	}
	for range peers {
		f.peers = append(f.peers, f.w.NewPeer(f.tick))
	}
	return f
}

func (f *field) move() {
	for i, o := range f.rocks {
		f.w.Edit(o)
		r := live[rock](o)
		r.X += int32(i%7) - 3
		r.Y += 2
		r.Spin = int16(f.tick)
	}
}

// step is one tick; every peer acknowledges the packets of delay ticks ago.
func (f *field) step(move bool) {
	f.tick++
	if n := len(f.acks); n > f.delay {
		last := f.acks[n-1-f.delay]
		for _, p := range f.peers {
			p.Ack([]Range{{max(last, 20) - 19, last}})
		}
	}
	if move {
		f.move()
	}
	f.w.Capture(f.tick)
	var last uint64
	for i, p := range f.peers {
		var first uint64
		f.packets[i], first = p.AppendSnapshot(f.packets[i][:0], f.tick, wide)
		last = first + uint64(len(f.packets[i])) - 1
	}
	f.acks = append(f.acks, last)
	if len(f.acks) > 256 {
		f.acks = f.acks[:copy(f.acks, f.acks[128:])]
	}
}

func (f *field) warm(move bool) *field {
	for range 400 {
		f.step(move)
	}
	return f
}

func TestCaptureOfUnchangedObjectsDoesNotAllocate(t *testing.T) {
	f := newField(t, 1000, 1, 4).warm(true)
	if n := testing.AllocsPerRun(100, func() {
		f.tick++
		f.w.Capture(f.tick)
	}); n != 0 {
		t.Errorf("unedited: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		f.tick++
		for _, o := range f.rocks {
			f.w.Edit(o)
		}
		f.w.Capture(f.tick)
	}); n != 0 {
		t.Errorf("edited to the same: %v allocations, want 0", n)
	}
}

func TestSnapshotOfMovingWorldDoesNotAllocate(t *testing.T) {
	f := newField(t, 250, 3, 6).warm(true)
	if n := testing.AllocsPerRun(200, func() { f.step(true) }); n != 0 {
		t.Errorf("capture, acknowledge and encode: %v allocations, want 0", n)
	}
}

func TestSnapshotOfMoreThanFitsDoesNotAllocate(t *testing.T) {
	f := newField(t, 2000, 2, 6).warm(true)
	if f.w.stats.Waited == 0 {
		t.Fatal("everything fits; spawn more")
	}
	if n := testing.AllocsPerRun(50, func() { f.step(true) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkCaptureMoving1000(b *testing.B) {
	f := newField(b, 1000, 0, 0).warm(true)
	b.ReportAllocs()
	for b.Loop() {
		f.tick++
		f.move()
		f.w.Capture(f.tick)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/object")
}

func BenchmarkCaptureUnchanged1000(b *testing.B) {
	f := newField(b, 1000, 0, 0).warm(true)
	b.ReportAllocs()
	for b.Loop() {
		f.tick++
		f.w.Capture(f.tick)
	}
}

func BenchmarkAppendSnapshotMoving250x100(b *testing.B) {
	for _, delay := range []int{1, 6} {
		b.Run(fmt.Sprintf("delay=%d", delay), func(b *testing.B) {
			f := newField(b, 250, 100, delay).warm(true)
			b.ReportAllocs()
			for b.Loop() {
				f.step(true)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/250/100, "ns/object-peer")
			b.ReportMetric(float64(f.w.stats.Bytes)/float64(f.w.stats.Records), "B/record")
		})
	}
}

func BenchmarkAppendSnapshotUnchanged1000x100(b *testing.B) {
	f := newField(b, 1000, 100, 2).warm(false)
	b.ReportAllocs()
	for b.Loop() {
		f.step(false)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/peer")
}

// BenchmarkApplyMoving250 applies the same packets to the replicas of some clients in turn. With a
// hundred clients, as in a load test, little of a replica is in the cache at its turn.
func BenchmarkApplyMoving250(b *testing.B) {
	for _, clients := range []int{1, 100} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) { benchmarkApply(b, clients) })
	}
}

func benchmarkApply(b *testing.B, clients int) {
	f := newField(b, 250, 1, 2)
	var replicas []*replica.Replica
	for range clients {
		r := replica.New(f.table)
		r.StartAt(f.tick)
		for _, class := range f.table.Classes() {
			r.TellChanges(class, false)
		}
		replicas = append(replicas, r)
	}
	apply := func() {
		for _, r := range replicas {
			for _, p := range f.packets[0] {
				if _, err := r.Apply(p); err != nil {
					b.Fatal(err)
				}
			}
			r.Events()
		}
	}
	for range 100 {
		f.step(true)
		apply()
	}
	b.ReportAllocs()
	var spent time.Duration // StopTimer would stop the world at each tick
	for b.Loop() {
		f.step(true)
		start := time.Now()
		apply()
		spent += time.Since(start)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/250/float64(clients), "ns/object")
}

// BenchmarkJoin applies the first state of 1 000 objects to a new replica, and reports the memory
// of a replica after that, and after 200 ticks in which all objects have moved.
func BenchmarkJoin(b *testing.B) {
	f := newField(b, 1000, 1, 0)
	f.step(true)
	first := make([][]byte, len(f.packets[0]))
	for i, p := range f.packets[0] {
		first[i] = slices.Clone(p)
	}
	join := func() *replica.Replica {
		r := replica.New(f.table)
		r.StartAt(f.tick)
		for _, p := range first {
			if _, err := r.Apply(p); err != nil {
				b.Fatal(err)
			}
		}
		r.Events()
		return r
	}
	var replicas [10]*replica.Replica
	before := heap()
	for i := range replicas {
		replicas[i] = join()
	}
	early := float64(heap()-before) / float64(len(replicas)) / 1000
	if n := replicas[0].Len(f.rocks[0].Class()); n != 1000 {
		b.Fatalf("the first snapshot has %d objects of 1 000", n)
	}
	for range 200 {
		f.step(true)
		for _, r := range replicas {
			for _, p := range f.packets[0] {
				if _, err := r.Apply(p); err != nil {
					b.Fatal(err)
				}
			}
			r.Events()
		}
	}
	later := float64(heap()-before) / float64(len(replicas)) / 1000
	runtime.KeepAlive(&replicas)
	b.ReportAllocs()
	for b.Loop() {
		join()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/object")
	b.ReportMetric(early, "kept-B/object")
	b.ReportMetric(later, "later-B/object")
}

// The list for a client's first snapshots, with an element per object, shrinks once later snapshots
// need little of it.
func TestTheListOfCandidatesBecomesSmallAgain(t *testing.T) {
	f := newField(t, 1000, 1, 4)
	f.step(true)
	first := cap(f.peers[0].cut.list)
	f.warm(true)
	c := &f.peers[0].cut
	if most := max(8*len(c.list), smallList); first < 1000 || cap(c.list) > most {
		t.Errorf("there is memory for %d candidates, at first for %d, and the last snapshot has %d: want at most %d", cap(c.list), first, len(c.list), most)
	}
	// Explain reads the last snapshot's list.
	c.list = append(make([]candidate, 0, 1024), candidate{slot: 7})
	for range shrinkAfter {
		c.trim()
	}
	if cap(c.list) >= 1024 || len(c.list) != 1 || c.list[0].slot != 7 {
		t.Errorf("%d candidates in memory for %d, want the one that was there", len(c.list), cap(c.list))
	}
}
