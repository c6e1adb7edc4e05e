package netvar

import (
	"iter"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// MaxSlots bounds the objects of one world, and with it what a client reserves for any packet.
const MaxSlots = 1 << 16

// ID names an object: its slot in the upper 32 bits, so that ids sort as the objects are
// iterated, and the generation of that slot in the lower. 0 names none.
type ID uint64

func makeID(slot int, gen uint32) ID { return ID(slot)<<32 | ID(gen) }

func (id ID) slot() int   { return int(id >> 32) }
func (id ID) gen() uint32 { return uint32(id) }

// Object is one replicated value. It belongs to the goroutine of its World or Replica. Its
// memory is never used for another object.
type Object struct {
	// What every packet of a client touches comes first, and together: see history.
	id      ID
	class   *Class
	live    unsafe.Pointer // *S
	changed uint64         // tick of the newest version
	owner   uint64
	life    uint64 // on a client: the tick that names the lifetime
	event   uint64 // on a client: the generation of events in which a spawn or change is noted
	hist    history
	serial  uint64 // order of spawning, so that an iteration leaves out what is spawned during it
	heap    int    // on a client: bytes that the live value has allocated
	alive   bool
	Shown   bool // on a client, and for package client: it was drawn as somebody else's

	began []uint64 // on a server, by rule: since when the oldest version looks so; nil: since born

	born uint64 // tick of its first version; on a client that of its lifetime

	// On a client, for drawing: see moment.go.
	cut  uint64 // the version with which it began to be read by other rules
	gone uint64 // the tick as of which it is gone, once it is
	past *past

	Handle any // the typed handle that the root package hangs on it

	// On a server.
	weight uint32     // see weigh
	dirty  bool       // is on the world's list
	asking bool       // its audience is being asked
	judge  bool       // the next capture asks its audience
	fields []uint64   // tick of the last change: owner, then each leaf
	looked uint64     // the last capture that looked at it
	cache  *residuals // made when the first client needs it

	// For digests, on both sides.
	hash   uint64       // of what may be read of a version: on a server of all of it
	hashed uint64       // the version that hash is of
	masked []maskedHash // on a server
}

// ID returns the id, which no other object of this world ever has.
func (o *Object) ID() ID { return o.id }

// Class returns the class that this side has declared.
func (o *Object) Class() *Class { return o.class.own }

// Live points to the S of the object: on a server the one that Edit hands out, on a client the
// newest that was applied. After a despawn it keeps the last value.
func (o *Object) Live() unsafe.Pointer { return o.live }

// Owner returns the owning client, or 0.
func (o *Object) Owner() uint64 { return o.owner }

// Alive tells whether the object has not been despawned.
func (o *Object) Alive() bool { return o.alive }

// Changed returns the server tick of the value: the newest capture that found a change, or the
// tick of the spawn before the first capture.
func (o *Object) Changed() uint64 { return o.changed }

// published tells whether a capture has made the object known to the peers.
func (o *Object) published() bool { return o.hist.n > 0 }

// Store is what both sides can be asked for.
type Store interface {
	// Get returns the living object of this id.
	Get(ID) (*Object, bool)
	// All iterates over the living objects of a class in id order. What is despawned meanwhile
	// is left out, and so is what is spawned meanwhile.
	All(*Class) iter.Seq[*Object]
	// Len returns how many objects All would come to.
	Len(*Class) int
	// Owned iterates likewise over the living objects of all classes that an owner, which is
	// not 0, has. What changes hands meanwhile comes or not, by whose it is when its turn comes.
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

// kill takes the object out of iterations; its slot still holds it.
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

// basis is what a record is a difference from: the state that the client had as of two ticks, or
// one exact version, or nothing. Both ends of the first kind find the version that was the newest
// then.
type basis struct {
	origin         // asOf 0: the zero value
	exact    bool  // asOf is a version, and there is no trend
	withheld Rules // what the client may not read
}

// residual is what a record carries after its head: the bits of a delta, in the world's arena.
type residual struct {
	basis
	versions        // of the basis: who reads all of the object must have them
	off      uint32 // in bytes
	n        uint32 // in bits
}

// maxResiduals is the number of bases per object for which the bits are kept during a
// tick. Clients with similar round trips share one to three; beyond that it is computed anew.
const maxResiduals = 32

// residuals are the encodings of an object's newest version that this capture has needed.
type residuals struct {
	epoch uint64 // capture they belong to
	n     int
	list  []residual // at most maxResiduals; one behind is not kept

	gone int // how often one has gone for another
}

// residual encodes o's newest version. It returns nil when a version of the basis is gone. The bits
// are valid until the next capture, or, if there are too many for the object, until anything else
// is encoded.
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
		w.arena = w.arena[:r.off] // or many clients could make it grow without bound
	}
	return r
}

// bitsOf returns the bits of a residual. Those of one that is not kept lie behind the arena.
func (w *World) bitsOf(r *residual) (b []byte, n int) { return w.arena[r.off:cap(w.arena)], int(r.n) }

// delta is a difference before it is encoded.
type delta struct {
	versions
	now, then codec.Values
	trend     codec.Trend
}

// versions are those that a difference leads from: that of the baseline, and those of its trend, of
// which the later one stands for one that is not there.
type versions struct{ base, older, oldest uint64 }

// find finds the versions of a difference, or reports that one is gone.
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
		return !o.hist.evicted // or a client may have a version of then
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
