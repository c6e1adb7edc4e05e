package refdecoder

// State packets: the header.

const (
	coder      = 3
	maxPackets = 64
	maxSlots   = 65536
)

type header struct {
	index int
	id    uint64
	snapshot
}

// snapshot is the part that all packets of a snapshot have in common.
type snapshot struct {
	tick                  uint64
	count                 int
	hasBehind, hasLeft    bool
	behind                uint64
	left, total           uint64
	hasDigest, isComplete bool
	digest                uint64
}

// header reads a packet up to its bits. near is a tick near to the packet's own.
func (r *byteReader) header(near uint64) (h header, padding int) {
	if c := r.u8(); c != coder {
		refuse("coder %d", c)
	}
	flags := r.u8()
	if flags&0x10 != 0 {
		refuse("an unknown flag")
	}
	h.hasDigest, h.isComplete = flags&1 != 0, flags&2 != 0
	if h.isComplete && !h.hasDigest {
		refuse("complete without a digest")
	}
	h.index, h.count = int(r.u8()), int(r.u8())
	if h.count < 1 || h.count > maxPackets || h.index >= h.count {
		refuse("packet %d of %d", h.index, h.count)
	}
	h.tick = widen(r.u32(), near)
	if h.hasBehind = flags&4 != 0; h.hasBehind {
		h.behind = uint64(r.u8())
	}
	if h.hasLeft = flags&8 != 0; h.hasLeft {
		h.left, h.total = uint64(r.u32()), uint64(r.u32())
		if h.left > h.total || h.total > maxSlots {
			refuse("%d of %d objects are left", h.left, h.total)
		}
	}
	if h.id = r.uvarint(); h.id == 0 || h.id >= 1<<53 {
		refuse("packet %d", h.id)
	}
	if h.hasDigest {
		h.digest = r.u64()
	}
	return h, int(flags >> 5)
}

// widen returns the 64-bit tick with these low bits that is nearest to another one, and is not
// negative.
func widen(low uint32, near uint64) uint64 {
	by := int64(int32(low - uint32(near)))
	tick := near + uint64(by)
	if by < 0 && tick > near {
		tick = uint64(low)
	}
	if tick == 0 {
		refuse("tick 0")
	}
	return tick
}

// before returns tick − n, which must be at least 1.
func before(tick, n uint64) uint64 {
	if n >= tick {
		refuse("a tick before 1")
	}
	return tick - n
}

// Records.

// context is the state to which the records of one packet are relative.
type context struct {
	tick     uint64
	at, span uint64
	bent     bool
	slot     int64 // of the last record
	full     bool  // the last record was full
}

func (r *bitReader) context(tick uint64) (x context) {
	x = context{tick: tick, slot: -1}
	if x.at = r.len(); x.at == 0 {
		return x
	}
	x.span = r.len()
	if x.span > 63 || x.span > 0 && x.at > 63 {
		refuse("trends of %d ticks from %d ticks ago", x.span, x.at)
	}
	from := before(before(tick, x.at), x.span)
	if x.span > 0 && r.bit() {
		x.bent = true
		before(from, x.span)
	}
	return x
}

// gap reads the number of slots between two records.
func (r *bitReader) gap() uint64 {
	if !r.bit() {
		return 0
	}
	n := r.rice(3)
	if n >= maxSlots {
		refuse("a gap of %d slots", n)
	}
	return n + 1
}

// record reads one record and returns the new object for its slot, nil for none.
func (r *bitReader) record(x *context, classes []Class, shown map[int64]*Object) *Object {
	gap := r.gap()
	if gap >= uint64(maxSlots-1-x.slot) {
		refuse("a slot beyond %d", maxSlots)
	}
	x.slot += int64(gap) + 1
	o := r.rest(x, classes, shown[x.slot])
	if o != nil {
		o.checkMask(&classes[o.Class])
	}
	return o
}

// rest reads a record after its gap.
func (r *bitReader) rest(x *context, classes []Class, old *Object) *Object {
	x.full = false
	switch {
	case !r.bit():
		return r.delta(x, classes, old, x.tick)
	case r.bit():
		if r.bit() {
			return nil // despawn
		}
		return r.full(x, classes, old)
	case !r.bit():
		return r.delta(x, classes, old, before(x.tick, r.len()))
	}
	version := before(x.tick, r.len())
	from := before(before(version, r.len()), 1)
	o := old.next(version)
	base := o.version(from)
	if base == nil || base.Tick != from {
		refuse("a baseline that is not stored")
	}
	o.add(r.difference(&classes[o.Class], &difference{base: base, version: version}), version)
	return o
}

// delta reads the rest of a delta from the packet's base tick, which is x.at ticks before its own,
// to the tick version.
func (r *bitReader) delta(x *context, classes []Class, old *Object, version uint64) *Object {
	if x.at == 0 {
		refuse("a delta before anything is acknowledged")
	}
	o := old.next(version)
	d := difference{base: o.version(x.tick - x.at), version: version}
	if d.base == nil {
		refuse("a baseline that is not stored")
	}
	if version <= x.tick-x.at {
		refuse("a version not later than the base tick")
	}
	d.ahead = version - (x.tick - x.at)
	if x.span > 0 {
		d.older, d.span = o.version(x.tick-x.at-x.span), x.span
	}
	if x.bent && d.older != nil {
		d.oldest = o.version(x.tick - x.at - 2*x.span)
	}
	o.add(r.difference(&classes[o.Class], &d), version)
	o.dropBefore(x.tick - x.at - min(2*x.span, x.tick-x.at))
	return o
}

// full reads the rest of a full record.
func (r *bitReader) full(x *context, classes []Class, old *Object) *Object {
	x.full = true
	life := before(x.tick, r.len())
	version := before(x.tick, r.len())
	class := r.rice(2)
	if class >= uint64(len(classes)) {
		refuse("class %d", class)
	}
	generation := r.len() + 1
	if generation == 0 || generation > 1<<32-1 {
		refuse("generation %d", generation)
	}
	c := &classes[class]
	o := &Object{ID: uint64(x.slot)<<32 | generation, Class: int(class), Lifetime: life}
	switch {
	case old == nil || life > old.Lifetime:
	case life < old.Lifetime:
		refuse("lifetime %d after %d", life, old.Lifetime)
	case o.ID != old.ID || o.Class != old.Class:
		refuse("another object of the same lifetime")
	default:
		o = old.next(version)
	}
	o.Mask = nil
	if r.bit() {
		for range c.Leaves {
			o.Mask = append(o.Mask, r.bit())
		}
	}
	zero := &Version{Fields: zeros(c.Leaves)}
	o.add(r.difference(c, &difference{base: zero, version: version}), version)
	return o
}
