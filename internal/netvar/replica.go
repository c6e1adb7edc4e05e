package netvar

import (
	"bytes"
	"reflect"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// Replica is the client's side: the objects that the server has shown. It belongs to one
// goroutine.
type Replica struct {
	set
	table *Table
	ours  *Table // of this side
	// By the index of a class of this side: the server's; nil while they are the same.
	bound  []*Class
	silent []bool // by the same: changes of its objects are told to nobody

	tick uint64 // newest applied, 0 = none
	near uint64 // what the first packet's tick is near to
	// What the packets of that tick's snapshot say alike, Count 0 = none has arrived.
	agreed   header
	arrived  uint64 // which of them are applied
	large    uint64 // id of the last record that came over the stream
	verdict  DigestState
	stored   int     // bytes of all objects: see memory.go
	awaited  int     // bytes that the packet being checked will allocate at most
	masks    masks   // of what may be read of the objects
	context  context // of the packet being checked
	staged   []stagedRecord
	words    []uint64 // values of the packet being checked
	blobs    [][]byte
	texts    []byte // bytes of blobs
	in       wire.BitReader
	now      codec.Values // the newest version of the object being updated
	bytes    []byte       // hash scratch
	quiet    []bool       // by class of the server: nobody wants to hear of changes
	locals   []*Object    // see AddLocal
	events   eventList
	handed   eventList // what the last call of Events returned
	eventGen uint64
	drawing  drawing
	stats    ReplicaStats

	blind     bool
	touched   *bitset        // what records were applied of: see Mirror; nil: nobody asks
	inspector func(*Carried) // of tests
}

// ReplicaStats are plain counters of one Replica.
type ReplicaStats struct {
	Packets        uint64 // applied
	Discarded      uint64 // of an earlier tick than one already applied
	Repeated       uint64 // applied before
	Refused        uint64 // Apply returned an error
	Records        uint64
	Large          uint64 // of those: came over the stream
	Snapshots      uint64 // of which all packets were applied
	DigestsEqual   uint64
	DigestsUnequal uint64
	Teleports      uint64 // changes of a field with the tag teleport, of objects kept for drawing
}

// NewReplica makes an empty replica. The table must list the server's classes in its order;
// of a server with others see [Replica.Adapt].
func NewReplica(t *Table) *Replica {
	quiet := make([]bool, len(t.classes))
	return &Replica{set: newSet(t), table: t, ours: t, silent: quiet, quiet: quiet,
		events: newEventList(t), handed: newEventList(t),
		drawing: drawing{asked: make([]bool, len(t.classes)), keeps: make([]bool, len(t.classes))}}
}

// StartAt says what tick the server is at, about: within 2^31. A packet carries 32 bits of its
// tick, and the first one has no other to be near to. Without it ticks are taken to be below 2^32.
func (r *Replica) StartAt(tick uint64) { r.near = tick }

// Blind lets the replica take what comes without reading its records: it acknowledges all of it and
// has no objects. That is for load, which needs no second copy of the world.
func (r *Replica) Blind() { r.blind = true }

// Tick is the newest tick applied, or 0.
func (r *Replica) Tick() uint64 { return r.tick }

// Stats returns the counters; they go on counting.
func (r *Replica) Stats() *ReplicaStats { return &r.stats }

// Applied tells what a packet was.
type Applied struct {
	Packet, Tick uint64
	Index, Count int
	// Acknowledge it. False for one of an earlier tick than was applied: it was discarded.
	Ack              bool
	SnapshotComplete bool // with this packet all of its snapshot are applied
	// Reached, of a complete snapshot, is the tick of the state that the client now has of
	// everything, but for what was lost and is still under way. It may be earlier than that of
	// a snapshot before.
	Reached uint64
	// AsOf is the tick of the acknowledged state that the packet leads from, 0 if it names none:
	// what the client has not acknowledged by then the server counts as lost, and owes again.
	AsOf uint64
	// Left, of a complete snapshot, is how many of the Total objects of the first state have
	// not arrived. Total is 0 once the server knows that all have.
	Left, Total int
}

// Apply checks a packet wholly and then applies it wholly; after an error nothing has changed.
// It keeps no reference to the packet.
func (r *Replica) Apply(packet []byte) (Applied, error) {
	in := wire.NewReader(packet)
	var h header
	readHeader(&in, max(r.tick, r.near), &h)
	a := Applied{Packet: h.Packet, Tick: h.Tick, Index: int(h.Index), Count: int(h.Count)}
	if in.Err() != nil {
		r.stats.Refused++
		return Applied{}, in.Err()
	}
	switch {
	case h.Tick < r.tick:
		r.stats.Discarded++
		return a, nil
	case h.Tick == r.tick && r.agreed.Count != 0 && h.agreed() != r.agreed:
		r.stats.Refused++
		return Applied{}, ErrHeader
	case h.Tick == r.tick && r.arrived>>h.Index&1 != 0:
		r.stats.Repeated++
		a.Ack = true
		return a, nil
	}
	defer r.endCheck()
	if err := r.check(wire.NewBitReader(packet[in.Offset():], h.Padding), h.Tick, MaxSlots); err != nil {
		r.stats.Refused++
		return Applied{}, err
	}
	if h.Tick > r.tick {
		r.tick, r.arrived, r.verdict = h.Tick, 0, DigestNone
	}
	r.agreed = h.agreed()
	for i := range r.staged {
		r.apply(&r.staged[i])
	}
	r.arrived |= 1 << h.Index
	r.stats.Packets++
	r.stats.Records += uint64(len(r.staged))
	a.Ack, a.AsOf = true, r.context.asOf
	if a.SnapshotComplete = r.arrived == ^uint64(0)>>(MaxPackets-h.Count); a.SnapshotComplete {
		r.stats.Snapshots++
		r.compare(&h)
		a.Left, a.Total = int(h.Left), int(h.Total)
		a.Reached = h.Tick - min(uint64(h.Behind), h.Tick)
	}
	return a, nil
}

// stagedRecord is a record that has been checked. Its words are the draft of the object's history,
// if it has an object; its blobs alias the scratch and the baseline.
type stagedRecord struct {
	recordHead
	class  *Class
	object *Object // the one that it changes or ends; nil: a new one, or nothing to end
	values codec.Values
	base   int    // of a delta: which of the object's versions it leads from
	mask   []byte // of a full record: what may be read, nothing if that is all; aliases the packet
}

// check reads all records into r.staged, or at most one more than there may be. Slots grow within a
// packet, so no record depends on another one of it.
func (r *Replica) check(bits wire.BitReader, tick uint64, most int) error {
	in := &r.in
	*in = bits
	r.staged, r.words, r.blobs, r.texts = r.staged[:0], r.words[:0], r.blobs[:0], r.texts[:0]
	r.context.take(in, tick)
	for !r.blind && in.Left() > 0 && len(r.staged) <= most {
		s := r.next()
		if r.context.takeHead(in, &s.recordHead); in.Err() != nil {
			break
		}
		if s.Slot < len(r.slots) {
			s.object = r.slots[s.Slot]
		}
		switch s.Kind {
		case recordDelta:
			r.checkDelta(in, s)
		case recordFull:
			r.checkFull(in, s)
		case recordDespawn:
		}
	}
	return in.Err()
}

// next returns the place of the next record in r.staged, without values. Records are read in
// place: copying them costs more than reading them.
func (r *Replica) next() *stagedRecord {
	if len(r.staged) == cap(r.staged) {
		r.staged = append(r.staged, stagedRecord{})
	} else {
		r.staged = r.staged[:len(r.staged)+1]
	}
	s := &r.staged[len(r.staged)-1]
	s.class, s.object, s.mask = nil, nil, nil
	return s
}

func (r *Replica) checkDelta(in *wire.BitReader, s *stagedRecord) {
	o := s.object
	if o == nil {
		in.Fail(ErrBaseline)
		return
	}
	var i int
	if s.Base != 0 {
		i = o.hist.find(s.Base, o.changed)
	} else {
		i = o.hist.floor(r.context.asOf, o.changed)
	}
	if i < 0 {
		in.Fail(ErrBaseline)
		return
	}
	if s.Version < o.changed {
		in.Fail(ErrOrder)
		return
	}
	s.class, s.base = o.class, i
	r.reserve(in, r.changeSize(s.class))
	if s.values.Words = r.draft(in, o); in.Err() != nil {
		return
	}
	copy(s.values.Words, o.hist.words(i))
	s.values.Blobs = r.stageBlobs(s.class)
	copy(s.values.Blobs, o.hist.blobsOf(i))
	var t codec.Trend
	if x := &r.context; s.Base == 0 && x.trendFrom < x.asOf {
		if i = o.hist.floor(x.trendFrom, o.changed); i >= 0 { // or it was not there yet
			t = codec.Trend{Older: codec.Values{Words: o.hist.words(i)}, Took: x.asOf - x.trendFrom, Ahead: s.Version - x.asOf}
			if i = o.hist.floor(x.origin().oldest(), o.changed); x.bent && i >= 0 {
				t.Bent, t.Oldest.Words = true, o.hist.words(i)
			}
		}
	}
	r.texts = s.class.plan.TakeDelta(in, &s.values, t, r.texts)
	r.reserveBlobs(in, s.class, &s.values, o)
	s.class.mustWithhold(in, &s.values, r.masks.mask(s.Slot))
}

func (r *Replica) checkFull(in *wire.BitReader, s *stagedRecord) {
	if s.class = r.table.class(s.Class); s.class == nil {
		in.Fail(ErrClass)
		return
	}
	switch o := s.object; {
	case o == nil:
	case s.Life < o.life:
		in.Fail(ErrOrder)
		return
	case s.Life > o.life: // the despawn was missed
		s.object = nil
	case s.class != o.class || makeID(s.Slot, s.Gen) != o.id:
		in.Fail(ErrRecord)
		return
	case s.Version < o.changed:
		in.Fail(ErrOrder)
		return
	}
	r.reserve(in, r.changeSize(s.class))
	if s.object != nil {
		s.values.Words = r.draft(in, s.object)
	} else {
		s.values.Words = r.stage(in, s.class)
	}
	s.values.Blobs = r.stageBlobs(s.class)
	if s.Masked {
		s.mask = r.takeMask(in, s.class)
	}
	copy(s.values.Words, s.class.zero.Words)
	copy(s.values.Blobs, s.class.zero.Blobs)
	r.texts = s.class.plan.TakeDelta(in, &s.values, codec.Trend{}, r.texts)
	r.reserveBlobs(in, s.class, &s.values, s.object)
	s.class.mustWithhold(in, &s.values, s.mask)
}

// stage reserves a new object of the class and takes room for its words, to be written whole, out
// of the scratch.
func (r *Replica) stage(in *wire.BitReader, c *Class) []uint64 {
	r.reserve(in, c.newSize())
	r.words = lengthen(r.words, c.words())
	return last(r.words, c.words())
}

func (r *Replica) stageBlobs(c *Class) [][]byte {
	r.blobs = lengthen(r.blobs, c.plan.Blobs())
	return last(r.blobs, c.plan.Blobs())
}

func (r *Replica) apply(s *stagedRecord) {
	if r.inspector != nil {
		r.inspect(s)
	}
	if r.touched != nil {
		r.touched.set(s.Slot)
	}
	switch {
	case s.Kind == recordDespawn:
		if s.object != nil {
			r.despawn(s.object, r.context.tick)
		}
	case s.object == nil:
		r.spawn(s)
	default:
		r.update(s)
	}
}

// despawn ends an object as of a tick.
func (r *Replica) despawn(o *Object, tick uint64) {
	r.kill(o)
	r.slots[o.id.slot()] = nil
	r.masks.set(o.id.slot(), nil)
	if !r.linger(o, tick) {
		r.release(o, !o.class.unknown)
	}
	if !o.class.unknown {
		r.events.add(Event{Kind: Despawn, Object: o, Old: o.live})
	}
}

func (r *Replica) spawn(s *stagedRecord) {
	if s.Slot < len(r.slots) && r.slots[s.Slot] != nil {
		r.despawn(r.slots[s.Slot], s.Life) // It was there until then at most.
	}
	c := s.class
	o := &Object{
		id: makeID(s.Slot, s.Gen), class: c, live: reflect.New(c.plan.Type()).UnsafePointer(),
		life: s.Life, born: s.Life, event: r.eventGen, hist: newHistory(c),
	}
	r.stored += c.newSize()
	r.restore(o, &s.values, nil)
	r.masks.set(s.Slot, s.mask)
	r.stored += o.hist.push(s.Version, &s.values)
	o.changed, o.owner = s.Version, o.class.owner(&s.values)
	r.add(o)
	if !o.class.unknown {
		r.events.add(Event{Kind: Spawn, Object: o})
	}
}

// update gives o the version that s carries. The live value is touched only if it differs.
func (r *Replica) update(s *stagedRecord) {
	o, now := s.object, &r.now // filled in place, as staged records are
	if s.Kind == recordFull {
		if !bytes.Equal(r.masks.mask(s.Slot), s.mask) {
			o.cut = s.Version
		}
		r.masks.set(s.Slot, s.mask)
	}
	now.Words, now.Blobs = o.hist.words(int(o.hist.n)-1), o.hist.blobsOf(int(o.hist.n)-1)
	if quiet := r.quiet[o.class.index]; quiet || !o.class.equal(&s.values, now) {
		if o.event != r.eventGen && !quiet && (o.class.own == o.class || o.class.shows(&s.values, now)) {
			o.event = r.eventGen
			r.events.add(Event{Kind: Change, Object: o, Old: r.events.old(o)})
		}
		r.restore(o, &s.values, now)
	}
	if r.drawing.keeps[o.class.index] && o.class.plan.Teleports(now, &s.values) {
		r.stats.Teleports++
	}
	if s.Version == o.changed {
		// Differs only after RequestFull, which heals a fault.
		r.stored += o.hist.replaceNewest(&s.values)
		o.hashed = 0
	} else {
		r.stored += o.hist.commit(s.Version, s.values.Blobs)
	}
	o.changed = s.Version
	if owner := o.class.owner(&s.values); owner != o.owner {
		r.own(o, owner)
	}
	if s.Kind == recordDelta && s.Base == 0 {
		r.dropVersions(o)
	}
}
