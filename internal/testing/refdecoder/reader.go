package refdecoder

import (
	"maps"
	"slices"
)

// Rules for the reader of state.

const horizon = 128 // ticks for which versions are stored

// Version is the state of an object as of one tick.
type Version struct {
	Tick, Owner uint64
	Fields      []Value
}

// Object is a visible object.
type Object struct {
	ID       uint64
	Class    int
	Lifetime uint64
	Mask     []bool // the readable leaves; nil is all
	Versions []*Version
}

// Newest returns the current version.
func (o *Object) Newest() *Version { return o.Versions[len(o.Versions)-1] }

// next returns a copy of o for a later version.
func (o *Object) next(version uint64) *Object {
	if o == nil {
		refuse("a delta of what is not shown")
	}
	if version < o.Newest().Tick {
		refuse("version %d after %d", version, o.Newest().Tick)
	}
	next := *o
	next.Versions = slices.Clone(o.Versions)
	return &next
}

// version returns the object's newest version up to a tick, or nil.
func (o *Object) version(tick uint64) (newest *Version) {
	for _, v := range o.Versions {
		if v.Tick <= tick {
			newest = v
		}
	}
	return newest
}

// add stores a version.
func (o *Object) add(v *Version, tick uint64) {
	o.Versions = slices.DeleteFunc(o.Versions, func(v *Version) bool { return v.Tick == tick })
	o.Versions = append(o.Versions, v)
	if tick > horizon {
		o.dropBefore(tick - horizon)
	}
}

// dropBefore drops the versions that were no longer the newest at a tick.
func (o *Object) dropBefore(tick uint64) {
	if newest := o.version(tick); newest != nil {
		o.Versions = o.Versions[slices.Index(o.Versions, newest):]
	}
}

// checkMask refuses values of unreadable leaves.
func (o *Object) checkMask(c *Class) {
	for i := range o.Mask {
		if !o.Mask[i] && !same(o.Newest().Fields[i], c.Leaves[i].zero()) {
			refuse("%s: a value that may not be read", c.Leaves[i].Name)
		}
	}
}

// Event is the start or the end of a lifetime.
type Event struct {
	Spawn  bool
	Object *Object
}

// Result is the outcome of a packet.
type Result struct {
	ID, Tick  uint64
	Ack       bool // it is to be acknowledged
	Repeated  bool // it was applied before
	Whole     bool // all packets of its snapshot are applied
	Behind    uint64
	Left      uint64
	Total     uint64
	Events    []Event
	Digest    Digest // of the whole snapshot
	HasDigest bool
	Complete  bool
	Want, Got uint64 // of a whole snapshot with a digest: the server's and the reader's
	Trends    int    // leaves that were moving
}

// Reader is the state of a client as docs/WIRE.md describes it.
type Reader struct {
	Classes []Class
	Tick    uint64 // the newest applied one; before the first packet that of the welcome

	applied bool
	shown   map[int64]*Object
	arrived map[int]bool // packets of the snapshot of Tick, by index
	now     snapshot     // their common part
	large   uint64       // the last large record
}

// NewReader makes a reader without objects, at the tick of the welcome.
func NewReader(classes []Class, tick uint64) *Reader {
	return &Reader{Classes: classes, Tick: tick, shown: map[int64]*Object{}, arrived: map[int]bool{}}
}

// Objects lists all objects in ascending order of slots.
func (r *Reader) Objects() (all []*Object) {
	for _, slot := range slices.Sorted(maps.Keys(r.shown)) {
		all = append(all, r.shown[slot])
	}
	return all
}

// Apply checks the whole packet, and then applies it.
func (r *Reader) Apply(packet []byte) (res Result, err error) {
	defer caught(&err)
	in := &byteReader{packet}
	h, padding := in.header(r.Tick)
	res = Result{ID: h.id, Tick: h.tick, Behind: h.behind, Left: h.left, Total: h.total}
	if r.applied && h.tick < r.Tick {
		return res, nil
	}
	res.Ack = true
	if len(r.arrived) > 0 && h.tick == r.Tick && h.snapshot != r.now {
		refuse("packets of one snapshot that do not fit together")
	}
	if r.applied && h.tick == r.Tick && r.arrived[h.index] {
		res.Repeated = true
		return res, nil
	}
	bits := newBitReader(in.b, padding)
	x := bits.context(h.tick)
	changes := map[int64]*Object{}
	for bits.left() > 0 {
		o := bits.record(&x, r.Classes, r.shown)
		changes[x.slot] = o
	}
	res.Trends = bits.trends
	r.reach(h.tick)
	r.now = h.snapshot
	r.arrived[h.index] = true
	res.Events = r.commit(changes)
	res.Whole = len(r.arrived) == h.count
	if res.HasDigest, res.Complete = h.hasDigest, h.isComplete; res.Whole && h.hasDigest {
		res.Want, res.Got = h.digest, r.digest()
		switch {
		case res.Want == res.Got:
			res.Digest = Equal
		case h.isComplete:
			res.Digest = Unequal
		}
	}
	return res, nil
}

// reach records that data of a tick was applied: a newer tick becomes Tick, without arrived
// packets.
func (r *Reader) reach(tick uint64) {
	if !r.applied || tick > r.Tick {
		r.applied, r.Tick = true, tick
		clear(r.arrived)
	}
}

// commit stores objects in their slots; nil removes one.
func (r *Reader) commit(changes map[int64]*Object) (events []Event) {
	for _, slot := range slices.Sorted(maps.Keys(changes)) {
		old, o := r.shown[slot], changes[slot]
		if old != nil && (o == nil || o.Lifetime != old.Lifetime) {
			events = append(events, Event{false, old})
		}
		if o != nil && (old == nil || o.Lifetime != old.Lifetime) {
			events = append(events, Event{true, o})
		}
		if delete(r.shown, slot); o != nil {
			r.shown[slot] = o
		}
	}
	return events
}

// ApplyLarge applies a record from the stream.
func (r *Reader) ApplyLarge(record []byte) (id uint64, events []Event, err error) {
	defer caught(&err)
	in := &byteReader{record}
	if c := in.u8(); c != coder {
		refuse("coder %d", c)
	}
	padding := in.u8()
	if padding > 7 {
		refuse("%d bits of padding", padding)
	}
	tick := widen(in.u32(), r.Tick)
	if id = in.uvarint(); id != r.large+1 {
		refuse("record %d after %d", id, r.large)
	}
	bits := newBitReader(in.b, int(padding))
	x := bits.context(tick)
	o := bits.record(&x, r.Classes, r.shown)
	if x.at != 0 || !x.full || bits.left() > 0 {
		refuse("not one full record")
	}
	r.large = id
	r.reach(tick)
	return id, r.commit(map[int64]*Object{x.slot: o}), nil
}
