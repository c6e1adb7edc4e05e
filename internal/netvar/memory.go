package netvar

import (
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// A client bounds what it allocates for a server's state, whatever that sends: the chunks of its objects (slab.go),
// histories that have outgrown them, blobs, each once however many versions share it, what live values
// have allocated, and the old values of events. It is counted where it is allocated and where it is let go; a packet is
// checked against the bound before anything is, by the most that it may come to. Only protobuf messages are decoded
// once to be checked, and let go.

// maxStored bounds the bytes that a client keeps for objects: 65 536 of them with 8 versions of
// 128 bytes are 100 MiB. Only a hostile server goes far beyond.
const maxStored = 256 << 20

// maxScratch bounds each of the pieces of memory in which a packet is checked, which are kept for the next one.
const maxScratch = 1 << 20

const (
	headerSize = int(unsafe.Sizeof([]byte(nil)))
)

// size is how many bytes are counted.
func (r *Replica) size() int { return r.stored + r.events.bytes + r.handed.bytes }

// reserve adds what the packet being checked will allocate, and refuses the packet if that is too much.
func (r *Replica) reserve(in *wire.BitReader, bytes int) bool {
	if r.awaited += bytes; r.size()+r.awaited <= maxStored {
		return true
	}
	in.Fail(ErrMemory)
	return false
}

// draft is the draft of the next version of o, or nothing if there is no room for it. A larger array counts at once: it
// stays, whatever becomes of the packet.
func (r *Replica) draft(in *wire.BitReader, o *Object) []uint64 {
	grown := o.hist.drafts() * o.class.versionSize()
	if grown > 0 {
		if int(o.hist.room) == r.slabs[o.class.index].versions { // those of the chunk are not given back
			grown += int(o.hist.room) * o.class.versionSize()
		}
		if r.size()+r.awaited+grown > maxStored {
			in.Fail(ErrMemory)
			return nil
		}
		r.stored += grown
	}
	return o.hist.draft()
}

// outgrown is what the history of o takes beside its chunk, without its blobs.
func (r *Replica) outgrown(o *Object) int {
	if int(o.hist.room) == r.slabs[o.class.index].versions {
		return 0
	}
	return int(o.hist.room) * o.class.versionSize()
}

// changeSize is the most that a record of a class allocates beside blobs: its place while it is checked, and an old value.
func (r *Replica) changeSize(c *Class) (bytes int) {
	bytes = c.versionSize() + int(unsafe.Sizeof(stagedRecord{}))
	if !r.quiet[c.index] {
		bytes += c.eventSize()
	}
	return bytes
}

// reserveBlobs reserves what a value allocates that differs from the newest one of its object, or from none.
func (r *Replica) reserveBlobs(in *wire.BitReader, c *Class, v *codec.Values, o *Object) {
	if len(v.Blobs) == 0 || in.Err() != nil {
		return
	}
	var was [][]byte
	bytes := 0
	if o != nil {
		was = o.hist.newest().Blobs
		if !r.quiet[c.index] {
			bytes = o.heap // of the old value
		}
	}
	for i, b := range v.Blobs {
		if was == nil || !same(b, was[i]) {
			bytes += codec.Allocated(len(b)) + c.plan.Heap(i, b)
		}
	}
	r.reserve(in, bytes)
}

// restore makes v the live value of o, which has been old until now, or nothing.
func (r *Replica) restore(o *Object, v, old *codec.Values) {
	plan := o.class.plan
	plan.Restore(o.live, v, old)
	before := o.heap
	for i, b := range v.Blobs {
		if old == nil {
			o.heap += plan.Heap(i, b)
		} else if was := old.Blobs[i]; !same(b, was) && string(b) != string(was) {
			o.heap += plan.Heap(i, b) - plan.Heap(i, was)
		}
	}
	r.stored += o.heap - before
}

// release lets go of what an object has that is gone. As long as an event tells of it the event counts it.
func (r *Replica) release(o *Object, told bool) {
	outgrown := r.outgrown(o) // before the history goes
	r.stored -= outgrown + o.hist.clear()
	held := o.heap + r.slabs[o.class.index].letGo(o)
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
		if s.class != nil {
			r.slabs[s.class.index].awaited = 0
		}
		s.object, s.values = nil, codec.Values{}
	}
	clear(r.blobs)
}

// lengthen returns the scratch with n more behind it. What is full is left to those who have parts of it, and not copied:
// the next one is twice as large, but of at most most.
func lengthen[T any](scratch []T, n, most int) []T {
	if len(scratch)+n > cap(scratch) {
		scratch = make([]T, 0, max(min(2*cap(scratch), most), n))
	}
	return scratch[:len(scratch)+n]
}

func last[T any](s []T, n int) []T { return s[len(s)-n : len(s) : len(s)] }

// Forget drops all versions but the newest of each object, for a client that has no room for more and asks for the
// full state. Deltas from what is gone are refused until that comes.
func (r *Replica) Forget() {
	for _, o := range r.slots {
		if o == nil {
			continue
		}
		r.stored -= o.hist.dropBefore(o.changed) + r.outgrown(o)
		if versions := r.slabs[o.class.index].versions; int(o.hist.room) > versions+1 {
			o.hist.renew(versions + 1) // one more, so that it still counts as outgrown
		}
		r.stored += r.outgrown(o)
	}
}
