package netvar

import (
	"reflect"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// slab makes a client's objects of one class in chunks, so that what a packet touches in turn
// lies in turn: a client that runs beside a hundred others finds nothing in the cache, and
// scattered objects cost it twice the time. A chunk is freed when all of it is; small chunks
// bound what one survivor holds back, and what a record of a few bytes allocates.
type slab struct {
	class    *Class
	chunk    *chunk // nil before the first
	objects  []Object
	data     []uint64 // of the histories, as blobs
	blobs    [][]byte
	live     reflect.Value // slice
	used     int
	versions int // that a history has room for
	size     int // objects of a chunk
	bytes    int // of a chunk
	awaited  int // objects of the packet being checked
}

// chunk is what a slab allocates at once.
type chunk struct{ alive int }

const (
	slabObjects  = 16
	slabVersions = 8 // a history that needs more gets an array of its own

	// What one chunk takes, and the first versions of one object, where they are large.
	slabBytes    = 32 << 10
	versionBytes = 4 << 10

	// seatBytes is what the replica keeps of an object elsewhere: its slot, its place among those of its
	// owner, the handle that a game hangs on it.
	seatBytes = 64
)

func newSlab(c *Class) slab {
	s := slab{class: c}
	s.versions = min(max(versionBytes/c.versionSize(), 1), slabVersions)
	one := int(unsafe.Sizeof(Object{})) + s.versions*c.versionSize() + int(c.plan.Type().Size())
	s.size = min(max(slabBytes/one, 1), slabObjects)
	s.bytes = codec.Allocated(s.size*one) + s.size*seatBytes
	return s
}

// versionSize is the bytes of one version in a history, without those of its blobs.
func (c *Class) versionSize() int {
	return 8*(c.words()+1) + int(unsafe.Sizeof([]byte(nil)))*c.plan.Blobs()
}

// await tells how many bytes one more object of the packet will allocate.
func (s *slab) await() (bytes int) {
	if (s.used+s.awaited)%s.size == 0 {
		bytes = s.bytes
	}
	s.awaited++
	return bytes
}

// next returns a new object with an empty history, and how many bytes more are allocated.
func (s *slab) next() (_ *Object, grown int) {
	stride, nb := s.class.words()+1, s.class.plan.Blobs()
	if s.used == len(s.objects) {
		if grown = s.bytes; s.chunk != nil && s.chunk.alive == 0 { // nothing but the slab has held it
			grown = 0
		}
		s.used, s.chunk = 0, new(chunk)
		s.objects = make([]Object, s.size)
		s.data = make([]uint64, s.size*s.versions*stride)
		s.blobs = make([][]byte, s.size*s.versions*nb)
		s.live = reflect.MakeSlice(reflect.SliceOf(s.class.plan.Type()), s.size, s.size)
	}
	o := &s.objects[s.used]
	o.class, o.hist, o.chunk = s.class, newHistory(s.class), s.chunk
	o.live = unsafe.Pointer(s.live.Index(s.used).UnsafeAddr())
	from, to := s.used*s.versions, (s.used+1)*s.versions
	o.hist.room = int32(s.versions)
	o.hist.data = s.data[from*stride : to*stride : to*stride]
	o.hist.blobs = s.blobs[from*nb : to*nb : to*nb]
	s.used++
	s.chunk.alive++
	return o, grown
}

// letGo takes an object that is gone out of its chunk, and returns how many bytes that frees.
func (s *slab) letGo(o *Object) (freed int) {
	if o.chunk.alive--; o.chunk.alive > 0 || o.chunk == s.chunk {
		return 0
	}
	return s.bytes
}
