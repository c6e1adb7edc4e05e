package replica

import (
	"bytes"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// A client bounds the memory that it allocates for the state of a server, even of a hostile one:
// for objects, their histories, blobs (a shared blob counts once), allocations of live values, and
// old values of events. Bytes are counted when they are allocated and when they are released.
// Before a packet is applied, the largest amount that it may allocate is checked against the bound.
// The exception is a protobuf message: it is decoded once for the check, and then dropped.

// MaxStored bounds the bytes that a client keeps for objects: 65 536 objects with 8 versions of 128
// bytes are 100 MiB. Only a hostile server exceeds that by far.
const MaxStored = 256 << 20

// maxScratch bounds each scratch array in which a packet is checked. The arrays are reused for the
// next packet.
const maxScratch = 1 << 20

const (
	headerSize = int(unsafe.Sizeof([]byte(nil)))

	// seatBytes is the memory of an object outside of Object: its slot, its entry in the list of
	// its owner, and the game's handle.
	seatBytes = 64
)

// objectSize returns the bytes of one object of a class without its versions. Objects are
// allocated individually. Chunks of 16 objects with room for eight versions each were tried: a new
// object took half as much memory again, the updates of 100 replicas in one process were only 2 %
// faster, and those of one replica no faster (BenchmarkJoin, BenchmarkApplyMoving250).
func objectSize(c *state.Class) int {
	return codec.Allocated(int(unsafe.Sizeof(state.Object{}))) + codec.Allocated(int(c.Plan().Type().Size())) + seatBytes
}

// versionSize returns the bytes of one version of a class in a history, without its blobs.
func versionSize(c *state.Class) int {
	return 8*(c.Words()+1) + headerSize*c.Plan().Blobs()
}

// newSize returns the bytes of a new object of a class, with the first array of its history.
func newSize(c *state.Class) int { return objectSize(c) + state.FirstCapacity*versionSize(c) }

// SetBound bounds the bytes that are counted; the default is MaxStored.
func (r *Replica) SetBound(bytes int) { r.most = bytes }

// Size returns the number of bytes counted.
func (r *Replica) Size() int { return r.stored + r.events.bytes + r.handed.bytes }

// reserve adds bytes that the packet being checked will allocate, and rejects the packet if the
// total exceeds the bound.
func (r *Replica) reserve(in *wire.BitReader, bytes int) {
	if r.awaited += bytes; r.Size()+r.awaited > r.most {
		in.Fail(ErrMemory)
	}
}

// draft returns the draft of the next version of o, or nil if there is no room for it. A larger
// history array is counted immediately, because it is kept even if the packet is rejected.
func (r *Replica) draft(in *wire.BitReader, o *state.Object) []uint64 {
	grown := o.Hist.Growth() * versionSize(o.WireClass())
	if r.Size()+r.awaited+grown > r.most {
		in.Fail(ErrMemory)
		return nil
	}
	r.stored += grown
	return o.Hist.Draft()
}

// historySize returns the bytes of an object's history, without its blobs.
func historySize(o *state.Object) int { return o.Hist.Capacity() * versionSize(o.WireClass()) }

// ChangeSize returns the most bytes that a record of a class allocates besides blobs: a version,
// the staged record and, if changes of the class are reported, an old value.
func (r *Replica) ChangeSize(c *state.Class) (bytes int) {
	bytes = versionSize(c) + int(unsafe.Sizeof(stagedRecord{}))
	if !r.quiet[c.Index()] {
		bytes += eventSize(c)
	}
	return bytes
}

// reserveBlobs reserves the bytes of the blobs that differ from the newest version of the object,
// or of all blobs if o is nil.
func (r *Replica) reserveBlobs(in *wire.BitReader, c *state.Class, v *codec.Values, o *state.Object) {
	var was [][]byte
	size := 0
	if o != nil {
		was = o.Hist.Newest().Blobs
		if !r.quiet[c.Index()] {
			size = o.Heap // bytes of the old value
		}
	}
	for i, b := range v.Blobs {
		if was == nil || !state.Shared(b, was[i]) {
			size += codec.Allocated(len(b)) + c.Plan().Heap(i, b)
		}
	}
	r.reserve(in, size)
}

// restore sets the live value of o to v. old is the current value, or nil if there is none.
func (r *Replica) restore(o *state.Object, v, old *codec.Values) {
	plan := o.Plan()
	plan.Restore(o.Live(), v, old)
	before := o.Heap
	for i, b := range v.Blobs {
		if old == nil {
			o.Heap += plan.Heap(i, b)
		} else if was := old.Blobs[i]; !bytes.Equal(b, was) {
			o.Heap += plan.Heap(i, b) - plan.Heap(i, was)
		}
	}
	r.stored += o.Heap - before
}

// release subtracts the memory of an ended object. If told is set, an event refers to the object,
// and the memory is counted for the event.
func (r *Replica) release(o *state.Object, told bool) {
	versions := historySize(o) // clear empties the history
	r.stored -= versions + o.Hist.Clear()
	r.forgetPast(o)
	held := o.Heap + objectSize(o.WireClass())
	r.stored -= held
	if o.Heap = 0; told {
		r.events.bytes += held
	}
}

// endCheck drops the references that the check of a packet has left. The arrays are reused.
func (r *Replica) endCheck() {
	r.awaited = 0
	for i := range r.staged {
		s := &r.staged[i]
		s.object, s.values = nil, codec.Values{}
	}
	clear(r.blobs)
}

// lengthen extends scratch by n elements. A full array is not copied, because slices of it are in
// use: a new one is allocated, twice as large, up to maxScratch.
func lengthen[T any](scratch []T, n int) []T {
	if len(scratch)+n > cap(scratch) {
		most := maxScratch / int(unsafe.Sizeof(*new(T)))
		scratch = make([]T, 0, max(min(2*cap(scratch), most), n))
	}
	return scratch[:len(scratch)+n]
}

func last[T any](s []T, n int) []T { return s[len(s)-n : len(s) : len(s)] }

// Forget drops all versions except the newest of each object, for a client that has reached its
// memory limit and requests the full state. Deltas from dropped versions are rejected until the
// full state arrives.
func (r *Replica) Forget() {
	r.LookFrom(r.tick)
	for _, o := range r.objects.Slots {
		if o == nil {
			continue
		}
		r.stored -= o.Hist.DropBefore(o.Changed()) + historySize(o)
		o.Hist.Resize(state.FirstCapacity)
		r.forgetPast(o)
		r.stored += historySize(o)
	}
}
