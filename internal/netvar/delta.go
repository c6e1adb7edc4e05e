package netvar

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// basis is the state from which a record is the difference: the client's state as of the ticks of
// an origin, or one exact version, or the zero value. For an origin, server and client both look up
// the version that was the newest at the tick.
type basis struct {
	packet.Origin             // asOf 0: the zero value
	exact         bool        // asOf is a version, and there is no trend
	withheld      state.Rules // rules of the fields that the client may not read
}

// residual is the body of a record: the bits of a delta, in the world's arena.
type residual struct {
	basis
	versions        // versions that a client with full read rights must have
	off      uint32 // in bytes
	n        uint32 // in bits
}

// maxResiduals bounds the cached encodings of an object, one per basis, during a tick. Clients with
// similar round trips share one to three. When the cache is full, a new encoding replaces a random
// one, up to maxReplaced times, and after that is not cached.
const maxResiduals = 32

// residuals is the cache of encodings of an object's newest version.
type residuals struct {
	epoch uint64 // tick of the last capture when the cache was emptied
	n     int
	list  []residual // at most maxResiduals, and one that is not cached

	replaced int // number of replaced entries
}

// residual returns o's newest version encoded as the difference from a basis, from the cache if
// possible, or nil if the world has dropped a version of the basis. The bits are valid until the
// next capture, or, if the cache is full, until the next call.
func (w *World) residual(o *state.Object, from basis) *residual {
	c := &w.encoded[o.Slot()]
	if c.epoch != w.tick {
		c.epoch, c.n, c.replaced = w.tick, 0, 0
	}
	for i := range c.n {
		if r := &c.list[i]; r.basis == from {
			return r
		}
	}
	var d delta
	if !d.find(w, o, from) {
		return nil
	}
	i := c.add(w)
	kept := i >= 0
	if !kept {
		i = c.n
	}
	if i == len(c.list) {
		c.list = append(c.list, residual{})
	}
	r := &c.list[i]
	*r = residual{basis: from, versions: d.versions, off: uint32(len(w.arena))}
	w.bits.Reset(w.arena)
	o.Plan().PutDelta(&w.bits, &d.now, &d.then, &d.trend)
	r.n = uint32(w.bits.Len()) - 8*r.off
	w.bits.Flush()
	w.arena = w.bits.Bytes()
	w.stats.Encoded++
	if !kept {
		w.arena = w.arena[:r.off] // otherwise many clients could let it grow without bound
	}
	return r
}

// bitsOf returns the bits of a residual. Bits that are not cached are behind the end of the arena.
func (w *World) bitsOf(r *residual) (b []byte, n int) { return w.arena[r.off:cap(w.arena)], int(r.n) }

// delta is a difference before encoding.
type delta struct {
	versions
	now, then codec.Values
	trend     codec.Trend
}

// versions are the ticks of the versions from which a difference is computed: the baseline and the
// two earlier versions of its trend. If one of them does not exist, it has the tick of the next
// later version.
type versions struct{ base, older, oldest uint64 }

// find looks up the versions of a difference. It reports false if one of them was dropped.
func (d *delta) find(w *World, o *state.Object, from basis) bool {
	d.versions, d.trend.Took, d.trend.Bent = versions{}, 0, false
	w.permit(&d.now, o, o.Hist.Len()-1, from.withheld, 0)
	if from.AsOf == 0 {
		d.then = o.WireClass().Zero
		return true
	}
	i := o.Floor(from.AsOf, from.withheld)
	if i < 0 {
		return false
	}
	w.permit(&d.then, o, i, from.withheld, 1)
	if d.base = from.AsOf; from.exact {
		return true
	}
	d.base = o.Hist.Tick(i)
	d.older, d.oldest = d.base, d.base
	if from.TrendFrom == from.AsOf {
		return true
	}
	if i = o.Hist.Floor(from.TrendFrom, o.Changed()); i < 0 {
		return !o.Hist.Evicted // true if the object did not exist at that tick
	}
	d.older = o.Hist.Tick(i)
	d.oldest = d.older
	w.permit(&d.trend.Older, o, i, from.withheld, 2)
	d.trend.Took, d.trend.Ahead = from.AsOf-from.TrendFrom, state.View{Withheld: from.withheld}.Version(o)-from.AsOf
	if !from.Bent {
		return true
	}
	if i = o.Hist.Floor(from.Origin.Oldest(), o.Changed()); i < 0 {
		return !o.Hist.Evicted
	}
	d.oldest = o.Hist.Tick(i)
	w.permit(&d.trend.Oldest, o, i, from.withheld, 3)
	d.trend.Bent = true
	return true
}

// maxReplaced bounds how many cached encodings of an object are replaced in a tick, because the
// replaced bits remain in the arena.
const maxReplaced = 3 * maxResiduals

// add returns the index at which a new encoding of an object is cached, or -1 if it must not be
// cached, because maxReplaced is reached.
func (c *residuals) add(w *World) int {
	if n := c.n; n < maxResiduals {
		c.n++
		return n
	}
	if c.replaced == maxReplaced {
		return -1
	}
	c.replaced++
	return w.rng.below(maxResiduals)
}

// basisOf returns the basis of a record that leads from an origin, without the fields of the
// withheld rules.
func basisOf(from packet.Origin, withheld state.Rules) basis {
	return basis{Origin: from, withheld: withheld}
}

// permit sets v to version i of o, with zeros in the withheld fields. The copy is in the scratch
// buffer number which: a delta needs up to four at the same time.
func (w *World) permit(v *codec.Values, o *state.Object, i int, withheld state.Rules, which int) {
	v.Words, v.Blobs = o.Hist.Words(i), o.Hist.BlobsOf(i)
	if withheld == 0 {
		return
	}
	to := &w.permitted[which]
	to.Words, to.Blobs = append(to.Words[:0], v.Words...), append(to.Blobs[:0], v.Blobs...)
	o.WireClass().Withhold(to, withheld)
	*v = *to
}
