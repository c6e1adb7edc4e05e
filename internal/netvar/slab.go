package netvar

import (
	"reflect"
	"unsafe"
)

// slab makes a client's objects of one class in chunks, so that what a packet touches in turn
// lies in turn: a client that runs beside a hundred others finds nothing in the cache, and
// scattered objects cost it twice the time. A chunk is freed when all of it is; small chunks
// bound what one survivor holds back.
type slab struct {
	class   *Class
	objects []Object
	data    []uint64 // of the histories, as blobs
	blobs   [][]byte
	live    reflect.Value // slice
	used    int
}

const (
	slabObjects  = 16
	slabVersions = 8 // a history that needs more gets an array of its own
)

// next returns a new object with an empty history.
func (s *slab) next() *Object {
	stride, nb := s.class.words()+1, s.class.plan.Blobs()
	if s.used == len(s.objects) {
		s.used = 0
		s.objects = make([]Object, slabObjects)
		s.data = make([]uint64, slabObjects*slabVersions*stride)
		s.blobs = make([][]byte, slabObjects*slabVersions*nb)
		s.live = reflect.MakeSlice(reflect.SliceOf(s.class.plan.Type()), slabObjects, slabObjects)
	}
	o := &s.objects[s.used]
	o.class, o.hist = s.class, newHistory(s.class)
	o.live = unsafe.Pointer(s.live.Index(s.used).UnsafeAddr())
	from, to := s.used*slabVersions, (s.used+1)*slabVersions
	o.hist.room = slabVersions
	o.hist.data = s.data[from*stride : to*stride : to*stride]
	o.hist.blobs = s.blobs[from*nb : to*nb : to*nb]
	s.used++
	return o
}
