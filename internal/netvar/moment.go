package netvar

import (
	"bytes"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// A client draws what was a little earlier, between two snapshots that it has whole. What an object
// was at a snapshot is its newest version that is not later: an object that rests has one and the
// same at both, and one that begins to move leaves its place at the snapshot before its first move.
// Nobody needs to know when either was sent. A server, which has the versions too, makes of the
// same two ticks what the client has drawn.
//
// For that a replica keeps the versions back to the moment that is drawn, and the objects that are
// gone until the moment at which they went. Both count as what is stored (memory.go).

// Moment is between which two snapshots somebody looks, by their ticks, and how far from one to the
// other. An Alpha above 1 lies beyond the newer one.
type Moment struct {
	From, To uint64
	Alpha    float64
}

// before tells whether the moment is earlier than a tick.
func (m *Moment) before(tick uint64) bool {
	if tick <= m.From {
		return false
	}
	return tick > m.To || m.Alpha*float64(m.To-m.From) < float64(tick-m.From)
}

// seen is between which of its versions an object is at a moment.
type seen struct {
	from, to int
	alpha    float64
	lost     bool // from is not what it was then, but a later version
}

// shown is the version of which all is that steps.
func (s *seen) shown() int {
	if s.alpha < 1 {
		return s.from
	}
	return s.to
}

// at finds what o is at a moment, or reports that it was not there yet, or is not any more.
func (o *Object) at(m *Moment, s *seen) bool {
	if o.hist.n == 0 || m.before(o.born) || o.gone != 0 && !m.before(o.gone) {
		return false
	}
	// What is let go of is as the oldest that is left.
	from := o.hist.floor(m.From, o.changed)
	*s = seen{from: max(from, 0), alpha: m.Alpha, lost: from < 0 && o.born <= m.From}
	for s.to = s.from; s.to+1 < int(o.hist.n) && o.hist.tick(s.to+1) <= m.To; { // mostly once
		s.to++
	}
	switch {
	case o.born > m.From: // It appears as it is.
		s.from = s.to
	case o.cut > m.From && o.cut <= m.To && s.alpha < 1:
		s.to = s.from
	case o.cut > m.From && o.cut <= m.To:
		s.from = s.to
	}
	return true
}

// between writes the numbers into a struct that holds those of a version.
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

// Drawing is an object at a moment, to be written into a struct. It is valid until the next packet
// is applied.
type Drawing struct {
	// Base is a struct of which all is right but the numbers; the caller copies it.
	Base unsafe.Pointer

	o    *Object
	held int  // the version that Base holds
	bare bool // or none: its numbers are others
	seen seen
}

// Write writes the numbers into a copy of the base.
func (d *Drawing) Write(v unsafe.Pointer) {
	if d.bare {
		held := d.o.hist.values(d.held)
		d.o.class.plan.RestoreNumbers(v, &held, nil)
	}
	d.o.between(&d.seen, d.held, v)
}

// Draw finds what o is at a moment, or reports that it was not there. It allocates only when
// strings, slices and the like are not what they are now, and then once for each such version.
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

// sameBlobs tells whether version i has the blobs of the newest one.
func (o *Object) sameBlobs(i int) bool {
	return slices.EqualFunc(o.hist.blobsOf(i), o.hist.newest().Blobs, bytes.Equal)
}

// past is a value that an object had, decoded for those who look back.
type past struct {
	value   unsafe.Pointer
	version uint64   // on a client
	bytes   int      // on a client
	blobs   [][]byte // on a server
}

// pastOf returns version i of o as a struct, or nil if there is no room for it.
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

// drawing is what a replica keeps for those who draw.
type drawing struct {
	asked []bool // by class of this side: its objects are drawn between snapshots
	keeps []bool // the same by class of the server
	from  uint64 // nobody looks back further
	gone  []*Object
}

// KeepForDrawing lets the replica keep what it takes to draw the objects of a class between
// snapshots, from now on.
func (r *Replica) KeepForDrawing(c *Class) {
	if r.ours.has(c) {
		r.drawing.asked[c.index] = true
	}
	if c = r.served(c); c != nil {
		r.drawing.keeps[c.index] = true
	}
}

// LookFrom says that nobody will look at moments before a tick any more.
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

// Gone iterates over the objects of a class that are gone, but not yet for those who look at an
// earlier moment.
func (r *Replica) Gone(c *Class) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, o := range r.drawing.gone {
			if o.class == r.served(c) && !yield(o) {
				return
			}
		}
	}
}

// linger keeps an object that is gone as of a tick until nobody looks back so far, or reports that
// nobody draws it.
func (r *Replica) linger(o *Object, tick uint64) bool {
	if !r.drawing.keeps[o.class.index] || tick <= r.drawing.from {
		return false
	}
	o.gone = tick
	r.drawing.gone = append(r.drawing.gone, o)
	return true
}

// dropVersions drops the versions of o that nothing leads from any more and nobody looks at.
func (r *Replica) dropVersions(o *Object) {
	from := r.context.origin().kept() // The server will never name an older one again.
	if r.drawing.keeps[o.class.index] {
		from = min(from, r.drawing.from)
	}
	r.stored -= o.hist.dropBefore(from)
}
