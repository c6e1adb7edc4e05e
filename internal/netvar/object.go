package netvar

import (
	"iter"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// MaxSlots bounds the objects of one world, and so the memory that a client allocates for any
// packet.
const MaxSlots = 1 << 16

// ID names an object. The slot is in the upper 32 bits, so that ids are sorted in the order of
// iteration, and the generation of that slot is in the lower 32 bits. 0 names no object.
type ID uint64

func makeID(slot int, gen uint32) ID { return ID(slot)<<32 | ID(gen) }

func (id ID) slot() int   { return int(id >> 32) }
func (id ID) gen() uint32 { return uint32(id) }

// Object is one replicated value. It belongs to the goroutine of its World or Replica. Its memory
// is never reused for another object.
type Object struct {
	// The fields that every packet of a client accesses are first and together: see history.
	id      ID
	class   *Class
	live    unsafe.Pointer // *S
	changed uint64         // tick of the newest version
	owner   uint64
	life    uint64 // on a client: the tick that identifies the lifetime
	event   uint64 // on a client: generation of the events that have its spawn or change
	hist    history
	serial  uint64 // order of spawning: an iteration skips objects spawned during it
	heap    int    // on a client: bytes allocated by the live value
	alive   bool
	Shown   bool // on a client, for package client: it was drawn as an object of another owner

	began []uint64 // on a server, by rule: tick since which the oldest version has its values

	born uint64 // tick of the first version; on a client that of the lifetime

	// On a client, for drawing: see moment.go.
	cut  uint64 // version of the record that changed the readable fields
	gone uint64 // the tick at which the object ended, or 0
	past *past

	Handle any // the typed handle of the root package

	// On a server.
	weight uint32     // see weigh
	dirty  bool       // in the world's list of edited objects
	asking bool       // its audience is being called
	judge  bool       // the next capture asks its audience
	fields []uint64   // tick of the last change: owner, then each leaf
	looked uint64     // the last capture that compared it
	cache  *residuals // allocated when the first client needs it

	// For digests, on both sides.
	hash   uint64       // of the readable fields of a version: on a server of all fields
	hashed uint64       // the version that was hashed
	masked []maskedHash // on a server
}

// ID returns the id, which is unique in this world.
func (o *Object) ID() ID { return o.id }

// Class returns the class as this side has declared it.
func (o *Object) Class() *Class { return o.class.own }

// Live returns a pointer to the S of the object: on a server the value that Edit returns, on a
// client the newest applied value. After a despawn it has the last value.
func (o *Object) Live() unsafe.Pointer { return o.live }

// Owner returns the owning client, or 0.
func (o *Object) Owner() uint64 { return o.owner }

// Alive reports whether the object has not been despawned.
func (o *Object) Alive() bool { return o.alive }

// Changed returns the server tick of the value: the newest capture that found a change, or the tick
// of the spawn before the first capture.
func (o *Object) Changed() uint64 { return o.changed }

// published reports whether the object has been captured, and so announced to the peers.
func (o *Object) published() bool { return o.hist.n > 0 }

// Store is the common interface of World and Replica.
type Store interface {
	// Get returns the living object of this id.
	Get(ID) (*Object, bool)
	// All iterates over the living objects of a class in id order. It skips objects that are
	// spawned or despawned meanwhile.
	All(*Class) iter.Seq[*Object]
	// Len returns the number of objects that All yields.
	Len(*Class) int
	// Owned iterates likewise over the living objects of an owner, which is not 0, of all classes.
	// If an object changes its owner meanwhile, its owner at its turn counts.
	Owned(owner uint64) iter.Seq[*Object]
}

// set holds objects by slot and the slots of the living ones by class and by owner.
type set struct {
	slots   []*Object
	classes []bitset
	owners  owners
	serial  uint64
}

func newSet(t *Table) set { return set{classes: make([]bitset, len(t.classes)), owners: make(owners)} }

func (s *set) add(o *Object) {
	slot := o.id.slot()
	for len(s.slots) <= slot {
		s.slots = append(s.slots, nil)
	}
	s.serial++
	o.serial, o.alive = s.serial, true
	s.slots[slot] = o
	s.classes[o.class.index].set(slot)
	s.owners.add(o.owner, slot)
}

// kill removes the object from iterations; its slot remains occupied.
func (s *set) kill(o *Object) {
	o.alive = false
	s.classes[o.class.index].unset(o.id.slot())
	s.owners.remove(o.owner, o.id.slot())
}

// Get implements Store.
func (s *set) Get(id ID) (*Object, bool) {
	slot := id >> 32
	if slot >= ID(len(s.slots)) {
		return nil, false
	}
	o := s.slots[slot]
	if o == nil || o.id != id || !o.alive {
		return nil, false
	}
	return o, true
}

// All implements Store.
func (s *set) All(c *Class) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		if c.index < 0 || c.index >= len(s.classes) {
			return
		}
		last := s.serial
		for i := s.classes[c.index].next(0); i >= 0; i = s.classes[c.index].next(i + 1) {
			if o := s.slots[i]; o.class == c && o.serial <= last && !yield(o) {
				return
			}
		}
	}
}

// basis is the state that a record is a difference from: the client's state as of the ticks of an
// origin, or one exact version, or the zero value. For an origin both ends look up the version that
// was the newest at the tick.
type basis struct {
	origin         // asOf 0: the zero value
	exact    bool  // asOf is a version, and there is no trend
	withheld Rules // rules of the fields that the client may not read
}

// residual is the body of a record: the bits of a delta, in the world's arena.
type residual struct {
	basis
	versions        // a client that reads all of the object must have them
	off      uint32 // in bytes
	n        uint32 // in bits
}

// maxResiduals bounds the cached encodings of an object, one per basis, during a tick. Clients with
// similar round trips share one to three; beyond the bound a delta is encoded again.
const maxResiduals = 32

// residuals is the cache of encodings of an object's newest version.
type residuals struct {
	epoch uint64 // the capture of the version
	n     int
	list  []residual // at most maxResiduals, and one that is not cached

	gone int // number of replaced entries
}

// residual encodes o's newest version, or returns nil if a version of the basis is dropped. The
// bits are valid until the next capture, or, if the cache is full, until the next call.
func (w *World) residual(o *Object, from basis) *residual {
	if o.cache == nil {
		o.cache = new(residuals)
	}
	c := o.cache
	if c.epoch != w.tick {
		c.epoch, c.n, c.gone = w.tick, 0, 0
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
	i := c.admit(w)
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
	o.class.plan.PutDelta(&w.bits, &d.now, &d.then, &d.trend)
	r.n = uint32(w.bits.Len()) - 8*r.off
	w.bits.Flush()
	w.arena = w.bits.Bytes()
	w.stats.Encoded++
	if !kept {
		w.arena = w.arena[:r.off] // otherwise many clients could make it grow without bound
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

// versions are the ticks of the versions that a difference leads from: the baseline and those of
// its trend. A missing version has the tick of the next later one.
type versions struct{ base, older, oldest uint64 }

// find looks up the versions of a difference. It reports false if one is dropped.
func (d *delta) find(w *World, o *Object, from basis) bool {
	d.versions, d.trend.Took, d.trend.Bent = versions{}, 0, false
	w.permit(&d.now, o, int(o.hist.n)-1, from.withheld, 0)
	if from.asOf == 0 {
		d.then = o.class.zero
		return true
	}
	i := o.floor(from.asOf, from.withheld)
	if i < 0 {
		return false
	}
	w.permit(&d.then, o, i, from.withheld, 1)
	if d.base = from.asOf; from.exact {
		return true
	}
	d.base = o.hist.tick(i)
	d.older, d.oldest = d.base, d.base
	if from.trendFrom == from.asOf {
		return true
	}
	if i = o.hist.floor(from.trendFrom, o.changed); i < 0 {
		return !o.hist.evicted // true if the object did not exist then
	}
	d.older = o.hist.tick(i)
	d.oldest = d.older
	w.permit(&d.trend.Older, o, i, from.withheld, 2)
	d.trend.Took, d.trend.Ahead = from.asOf-from.trendFrom, view{withheld: from.withheld}.version(o)-from.asOf
	if !from.bent {
		return true
	}
	if i = o.hist.floor(from.origin.oldest(), o.changed); i < 0 {
		return !o.hist.evicted
	}
	d.oldest = o.hist.tick(i)
	w.permit(&d.trend.Oldest, o, i, from.withheld, 3)
	d.trend.Bent = true
	return true
}
