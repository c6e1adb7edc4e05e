package netvar

import (
	"bytes"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// A client bounds what it allocates for a server's state, whatever that sends: its objects, their
// histories, blobs, each once however many versions share it, what live values have allocated, and
// the old values of events. It is counted where it is allocated and where it is let go; a packet is
// checked against the bound before anything is, by the most that it may come to. Only protobuf
// messages are decoded once to be checked, and let go.

// maxStored bounds the bytes that a client keeps for objects: 65 536 of them with 8 versions of
// 128 bytes are 100 MiB. Only a hostile server goes far beyond.
const maxStored = 256 << 20

// maxScratch bounds each of the pieces of memory in which a packet is checked, which are kept for
// the next one.
const maxScratch = 1 << 20

const (
	headerSize = int(unsafe.Sizeof([]byte(nil)))

	// seatBytes is what the replica keeps of an object elsewhere: its slot, its place among those
	// of its owner, the handle that a game hangs on it.
	seatBytes = 64
)

// objectSize is how many bytes one object of a class takes without its versions. Objects are
// allocated one by one: in chunks of 16 with room for eight versions each, a new object took half
// as much memory again, and the updates of 100 replicas in one process were 2 % faster, those of
// one replica not at all (BenchmarkJoin, BenchmarkApplyMoving250).
func (c *Class) objectSize() int {
	return codec.Allocated(int(unsafe.Sizeof(Object{}))) + codec.Allocated(int(c.plan.Type().Size())) + seatBytes
}

// versionSize is how many bytes one version of a class takes in a history, without its blobs.
func (c *Class) versionSize() int {
	return 8*(c.words()+1) + headerSize*c.plan.Blobs()
}

// newSize is how many bytes a new object of a class takes, with the first array of its history.
func (c *Class) newSize() int { return c.objectSize() + firstRoom*c.versionSize() }

// size is how many bytes are counted.
func (r *Replica) size() int { return r.stored + r.events.bytes + r.handed.bytes }

// reserve adds what the packet being checked will allocate, and refuses the packet if that is too
// much.
func (r *Replica) reserve(in *wire.BitReader, bytes int) {
	if r.awaited += bytes; r.size()+r.awaited > maxStored {
		in.Fail(ErrMemory)
	}
}

// draft is the draft of the next version of o, or nothing if there is no room for it. A larger
// array counts at once: it stays, whatever becomes of the packet.
func (r *Replica) draft(in *wire.BitReader, o *Object) []uint64 {
	grown := o.hist.drafts() * o.class.versionSize()
	if r.size()+r.awaited+grown > maxStored {
		in.Fail(ErrMemory)
		return nil
	}
	r.stored += grown
	return o.hist.draft()
}

// historySize is how many bytes the history of an object takes, without its blobs.
func (o *Object) historySize() int { return int(o.hist.room) * o.class.versionSize() }

// changeSize is the most that a record of a class allocates beside blobs: its place while it is
// checked, and an old value.
func (r *Replica) changeSize(c *Class) (bytes int) {
	bytes = c.versionSize() + int(unsafe.Sizeof(stagedRecord{}))
	if !r.quiet[c.index] {
		bytes += c.eventSize()
	}
	return bytes
}

// reserveBlobs reserves what a value allocates that differs from the newest one of its object, or
// from none.
func (r *Replica) reserveBlobs(in *wire.BitReader, c *Class, v *codec.Values, o *Object) {
	var was [][]byte
	size := 0
	if o != nil {
		was = o.hist.newest().Blobs
		if !r.quiet[c.index] {
			size = o.heap // of the old value
		}
	}
	for i, b := range v.Blobs {
		if was == nil || !same(b, was[i]) {
			size += codec.Allocated(len(b)) + c.plan.Heap(i, b)
		}
	}
	r.reserve(in, size)
}

// restore makes v the live value of o, which has been old until now, or nothing.
func (r *Replica) restore(o *Object, v, old *codec.Values) {
	plan := o.class.plan
	plan.Restore(o.live, v, old)
	before := o.heap
	for i, b := range v.Blobs {
		if old == nil {
			o.heap += plan.Heap(i, b)
		} else if was := old.Blobs[i]; !bytes.Equal(b, was) {
			o.heap += plan.Heap(i, b) - plan.Heap(i, was)
		}
	}
	r.stored += o.heap - before
}

// release lets go of what an object has that is gone. As long as an event tells of it the event
// counts it.
func (r *Replica) release(o *Object, told bool) {
	versions := o.historySize() // before the history goes
	r.stored -= versions + o.hist.clear()
	r.forgetPast(o)
	held := o.heap + o.class.objectSize()
	r.stored -= held
	if o.heap = 0; told {
		r.events.bytes += held
	}
}

// endCheck lets go of what the check of a packet has left, beyond what the next one will need.
func (r *Replica) endCheck() {
	r.awaited = 0
	for i := range r.staged {
		s := &r.staged[i]
		s.object, s.values = nil, codec.Values{}
	}
	clear(r.blobs)
}

// lengthen returns the scratch with n more behind it. What is full is left to those who have parts
// of it, and not copied: the next one is twice as large, but not beyond maxScratch.
func lengthen[T any](scratch []T, n int) []T {
	if len(scratch)+n > cap(scratch) {
		most := maxScratch / int(unsafe.Sizeof(*new(T)))
		scratch = make([]T, 0, max(min(2*cap(scratch), most), n))
	}
	return scratch[:len(scratch)+n]
}

func last[T any](s []T, n int) []T { return s[len(s)-n : len(s) : len(s)] }

// Forget drops all versions but the newest of each object, for a client that has no room for more
// and asks for the full state. Deltas from what is gone are refused until that comes.
func (r *Replica) Forget() {
	r.LookFrom(r.tick)
	for _, o := range r.slots {
		if o == nil {
			continue
		}
		r.stored -= o.hist.dropBefore(o.changed) + o.historySize()
		o.hist.renew(firstRoom)
		r.forgetPast(o)
		r.stored += o.historySize()
	}
}
