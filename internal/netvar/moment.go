package netvar

import (
	"bytes"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// A client draws the state of a slightly earlier moment, between two snapshots that it has
// completely. The state of an object at a snapshot is its newest version that is not later. An
// unmoved object has the same version at both, and an object that begins to move leaves its place
// at the snapshot before its first move. The times of sending do not matter. A server has the same
// versions, so from the same two ticks it computes the state that the client has drawn.
//
// For that a replica keeps the versions back to the moment that is drawn, and ended objects until
// their end is drawn. Both count as stored memory (memory.go).

// Moment is a point in time between two snapshots: their ticks, and the fraction of the way from
// one to the other. An Alpha above 1 is beyond the newer snapshot.
type Moment struct {
	From, To uint64
	Alpha    float64
}

// before reports whether the moment is earlier than a tick.
func (m *Moment) before(tick uint64) bool {
	if tick <= m.From {
		return false
	}
	return tick > m.To || m.Alpha*float64(m.To-m.From) < float64(tick-m.From)
}

// seen is the pair of versions between which an object is drawn.
type seen struct {
	from, to int
	alpha    float64
	lost     bool // the version of that time is dropped, and from is a later one
}

// shown returns the version of all values that are not interpolated.
func (s *seen) shown() int {
	if s.alpha < 1 {
		return s.from
	}
	return s.to
}

// at finds the versions of o at a moment. It reports false if o did not exist then.
func (o *Object) at(m *Moment, s *seen) bool {
	if o.hist.n == 0 || m.before(o.born) || o.gone != 0 && !m.before(o.gone) {
		return false
	}
	// The oldest version that is left replaces dropped ones.
	from := o.hist.floor(m.From, o.changed)
	*s = seen{from: max(from, 0), alpha: m.Alpha, lost: from < 0 && o.born <= m.From}
	for s.to = s.from; s.to+1 < int(o.hist.n) && o.hist.tick(s.to+1) <= m.To; { // mostly once
		s.to++
	}
	switch {
	case o.born > m.From: // the object appears with its first value
		s.from = s.to
	case o.cut > m.From && o.cut <= m.To && s.alpha < 1:
		s.to = s.from
	case o.cut > m.From && o.cut <= m.To:
		s.from = s.to
	}
	return true
}

// between interpolates the numbers into a struct that holds those of version held.
func (o *Object) between(s *seen, held int, v unsafe.Pointer) {
	plan, t := o.class.plan, s.alpha
	if plan.HasTeleports() {
		from, to := o.hist.values(s.from), o.hist.values(s.to)
		if plan.Teleports(&from, &to) {
			t = codec.Stepped(t)
		}
	}
	plan.BetweenWords(v, o.hist.words(held), o.hist.words(s.from), o.hist.words(s.to), t)
}

// Drawing is an object at a moment, ready to be written into a struct. It is valid until the next
// packet is applied.
type Drawing struct {
	// Base is a struct with the right values except for the numbers; the caller copies it.
	Base unsafe.Pointer

	o    *Object
	held int  // version of the numbers in Base
	bare bool // the numbers of Base are undefined; Write restores them
	seen seen
}

// Write writes the numbers into a copy of Base.
func (d *Drawing) Write(v unsafe.Pointer) {
	if d.bare {
		held := d.o.hist.values(d.held)
		d.o.class.plan.RestoreNumbers(v, &held, nil)
	}
	d.o.between(&d.seen, d.held, v)
}

// Draw prepares o at a moment for drawing. It reports false if o did not exist then. It allocates
// only if strings, slices and the like differ from the current ones, and then once per version.
func (r *Replica) Draw(d *Drawing, o *Object, m *Moment) bool {
	if !o.at(m, &d.seen) {
		return false
	}
	d.Base, d.o, d.held, d.bare = o.live, o, int(o.hist.n)-1, false
	if k := d.seen.shown(); !o.sameBlobs(k) {
		if past := r.pastOf(o, k); past != nil {
			d.Base, d.held = past, k
		}
	}
	return true
}

// sameBlobs reports whether version i has the blobs of the newest one.
func (o *Object) sameBlobs(i int) bool {
	return slices.EqualFunc(o.hist.blobsOf(i), o.hist.newest().Blobs, bytes.Equal)
}

// past is an earlier value of an object, decoded.
type past struct {
	value   unsafe.Pointer
	version uint64   // on a client
	bytes   int      // on a client
	blobs   [][]byte // on a server
}

// pastOf returns version i of o as a struct, or nil if the memory limit is reached.
func (r *Replica) pastOf(o *Object, i int) unsafe.Pointer {
	if o.past != nil && o.past.version == o.hist.tick(i) {
		return o.past.value
	}
	v := o.hist.values(i)
	size := codec.Allocated(int(o.class.plan.Type().Size())) + codec.Allocated(int(unsafe.Sizeof(past{})))
	for j, b := range v.Blobs {
		size += o.class.plan.Heap(j, b)
	}
	r.forgetPast(o)
	if r.size()+size > maxStored {
		return nil
	}
	r.stored += size
	o.past = &past{value: reflect.New(o.class.plan.Type()).UnsafePointer(), version: o.hist.tick(i), bytes: size}
	o.class.plan.Restore(o.past.value, &v, nil)
	return o.past.value
}

func (r *Replica) forgetPast(o *Object) {
	if o.past != nil {
		r.stored -= o.past.bytes
		o.past = nil
	}
}

// drawing is the replica's state for drawing.
type drawing struct {
	asked []bool // by class of this side: its objects are drawn between snapshots
	keeps []bool // the same by class of the server
	from  uint64 // no moment before this tick is drawn any more
	gone  []*Object
}

// KeepForDrawing makes the replica keep the data that Draw needs for the objects of a class, from
// now on.
func (r *Replica) KeepForDrawing(c *Class) {
	if r.ours.has(c) {
		r.drawing.asked[c.index] = true
	}
	if c = r.served(c); c != nil {
		r.drawing.keeps[c.index] = true
	}
}

// LookFrom declares that no moment before a tick will be drawn any more, and drops its data.
func (r *Replica) LookFrom(tick uint64) {
	r.drawing.from = tick
	r.drawing.gone = slices.DeleteFunc(r.drawing.gone, func(o *Object) bool {
		if o.gone > tick {
			return false
		}
		r.release(o, false)
		return true
	})
}

// Gone iterates over the ended objects of a class that are still kept for drawing.
func (r *Replica) Gone(c *Class) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, o := range r.drawing.gone {
			if o.class == r.served(c) && !yield(o) {
				return
			}
		}
	}
}

// linger keeps an ended object for drawing. It reports false if its class is not drawn, or no
// moment before the tick is.
func (r *Replica) linger(o *Object, tick uint64) bool {
	if !r.drawing.keeps[o.class.index] || tick <= r.drawing.from {
		return false
	}
	o.gone = tick
	r.drawing.gone = append(r.drawing.gone, o)
	return true
}

// dropVersions drops the versions of o that no later delta can lead from and that are not drawn any
// more.
func (r *Replica) dropVersions(o *Object) {
	from := r.context.origin().kept() // the server never names an older version again
	if r.drawing.keeps[o.class.index] {
		from = min(from, r.drawing.from)
	}
	r.stored -= o.hist.dropBefore(from)
}
