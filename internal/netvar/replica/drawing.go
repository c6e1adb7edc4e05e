package replica

import (
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Draw prepares o at a moment for drawing. It reports false if o did not exist then. It allocates
// only if strings, slices and the like differ from the current ones, and then once per version.
func (r *Replica) Draw(d *state.Drawing, o *state.Object, m *state.Moment) bool {
	if !d.Begin(o, m) {
		return false
	}
	if k, ok := d.Past(); ok {
		if past := r.pastOf(o, k); past != nil {
			d.Rebase(past, k)
		}
	}
	return true
}

// pastOf returns version i of o as a struct, or nil if the memory limit is reached.
func (r *Replica) pastOf(o *state.Object, i int) unsafe.Pointer {
	if o.Past != nil && o.Past.Version == o.Hist.Tick(i) {
		return o.Past.Value
	}
	v := o.Hist.Values(i)
	size := codec.Allocated(int(o.Plan().Type().Size())) + codec.Allocated(int(unsafe.Sizeof(state.Past{})))
	for j, b := range v.Blobs {
		size += o.Plan().Heap(j, b)
	}
	r.forgetPast(o)
	if r.Size()+size > r.most {
		return nil
	}
	r.stored += size
	o.Past = &state.Past{Value: reflect.New(o.Plan().Type()).UnsafePointer(), Version: o.Hist.Tick(i), Bytes: size}
	o.Plan().Restore(o.Past.Value, &v, nil)
	return o.Past.Value
}

func (r *Replica) forgetPast(o *state.Object) {
	if o.Past != nil {
		r.stored -= o.Past.Bytes
		o.Past = nil
	}
}

// drawing is the replica's state for drawing.
type drawing struct {
	asked []bool // by class of this side: its objects are drawn between snapshots
	keeps []bool // the same by class of the server
	from  uint64 // moments before this tick are no longer drawn
	gone  []*state.Object
}

// KeepForDrawing makes the replica keep the data that Draw needs for the objects of a class, from
// now on.
func (r *Replica) KeepForDrawing(c *state.Class) {
	if r.ours.Has(c) {
		r.drawing.asked[c.Index()] = true
	}
	if c = r.served(c); c != nil {
		r.drawing.keeps[c.Index()] = true
	}
}

// LookFrom declares that moments before a tick will no longer be drawn, and drops the objects that
// ended before it.
func (r *Replica) LookFrom(tick uint64) {
	r.drawing.from = tick
	r.drawing.gone = slices.DeleteFunc(r.drawing.gone, func(o *state.Object) bool {
		if o.Ended > tick {
			return false
		}
		r.release(o, false)
		return true
	})
}

// Gone iterates over the ended objects of a class that are still kept for drawing.
func (r *Replica) Gone(c *state.Class) iter.Seq[*state.Object] {
	return func(yield func(*state.Object) bool) {
		for _, o := range r.drawing.gone {
			if o.WireClass() == r.served(c) && !yield(o) {
				return
			}
		}
	}
}

// linger keeps an object that ended at a tick for drawing. It reports false if objects of its class
// are not drawn, or if moments before the tick are no longer drawn.
func (r *Replica) linger(o *state.Object, tick uint64) bool {
	if !r.drawing.keeps[o.WireClass().Index()] || tick <= r.drawing.from {
		return false
	}
	o.Ended = tick
	r.drawing.gone = append(r.drawing.gone, o)
	return true
}

// dropVersions drops the versions of o that are no longer needed as the base of a later delta, nor
// for drawing.
func (r *Replica) dropVersions(o *state.Object) {
	from := r.context.Origin().Kept() // the server never names an older version again
	if r.drawing.keeps[o.WireClass().Index()] {
		from = min(from, r.drawing.from)
	}
	r.stored -= o.Hist.DropBefore(from)
}
