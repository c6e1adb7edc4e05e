package replica

import (
	"bytes"
	"errors"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// Errors of packets that do not fit the replica's state.
var (
	ErrClass    = errors.New("netvar: unknown class")
	ErrBaseline = errors.New("netvar: record names a baseline that is not stored")
	ErrOrder    = errors.New("netvar: record is older than the stored object")
	ErrMemory   = errors.New("netvar: too much state to keep")
)

// Replica is the client's side: the objects that the server has sent. It belongs to one goroutine.
type Replica struct {
	objects state.Set
	table   *state.Table
	ours    *state.Table // the classes of this side
	// By the index of a class of this side: the server's class; nil while both tables are the same.
	bound  []*state.Class
	silent []bool // by the same index: changes of the class are not reported

	tick uint64 // newest applied tick; 0: none
	near uint64 // approximate tick of the first packet
	// The header fields that the packets of that tick's snapshot share. Count 0: no packet has
	// arrived.
	Common   packet.Header
	arrived  uint64 // bit i: packet i of the snapshot is applied
	large    uint64 // id of the last record applied from the stream
	verdict  DigestState
	stored   int            // bytes of all objects: see memory.go
	most     int            // bound of Size
	awaited  int            // the largest number of bytes that the checked packet may allocate
	masks    masks          // masks of the readable fields
	context  packet.Context // context of the checked packet
	staged   []stagedRecord
	words    []uint64 // values of the checked packet
	blobs    [][]byte
	texts    []byte // bytes of blobs
	in       wire.BitReader
	now      codec.Values    // newest version of the object being updated
	bytes    []byte          // hash scratch
	quiet    []bool          // by class of the server: changes are not reported
	locals   []*state.Object // see AddLocal
	events   eventList
	handed   eventList // returned by the last call of Events
	eventGen uint64
	drawing  drawing
	stats    Stats

	blind     bool
	touched   *bitset.Set    // slots with applied records: see Track; may be nil
	inspector func(*Carried) // for tests
}

// Stats are plain counters of one Replica.
type Stats struct {
	Packets        uint64 // packets that were applied
	Discarded      uint64 // packets of an earlier tick than an applied packet
	Repeated       uint64 // packets that were already applied
	Refused        uint64 // packets for which Apply returned an error
	Records        uint64
	Large          uint64 // records from the stream
	Snapshots      uint64 // snapshots that were applied completely
	DigestsEqual   uint64
	DigestsUnequal uint64
	Teleports      uint64 // changes of a field with the tag teleport, of objects kept for drawing
}

// New makes an empty replica. The table must list the server's classes in the server's order; if
// the server has other classes see [Replica.Adapt].
func New(t *state.Table) *Replica {
	quiet := make([]bool, len(t.Classes()))
	return &Replica{objects: state.NewSet(t), table: t, ours: t, most: MaxStored, silent: quiet, quiet: quiet,
		events: newEventList(t), handed: newEventList(t),
		drawing: drawing{asked: make([]bool, len(t.Classes())), keeps: make([]bool, len(t.Classes()))}}
}

// StartAt sets the approximate tick of the server, within 2^31. Packets contain only 32 bits of
// their tick, and for the first packet there is no earlier tick to complete them. The default is a
// tick below 2^32.
func (r *Replica) StartAt(tick uint64) { r.near = tick }

// Blind makes the replica acknowledge packets without reading their records, so it has no objects.
// It is for load tests, which need no second copy of the world.
func (r *Replica) Blind() { r.blind = true }

// Tick returns the newest tick applied, or 0.
func (r *Replica) Tick() uint64 { return r.tick }

// Stats returns the live counters.
func (r *Replica) Stats() *Stats { return &r.stats }

// Applied describes a packet that Apply has processed.
type Applied struct {
	Packet, Tick uint64
	Index, Count int
	// The packet must be acknowledged. False for a packet before the newest tick, which was
	// discarded.
	Ack              bool
	SnapshotComplete bool // all packets of the snapshot are applied
	// Reached, for a complete snapshot, is the tick up to which the client now has the state of all
	// objects, except for lost records that are sent again. It may be lower than in an earlier
	// snapshot.
	Reached uint64
	// AsOf is the tick of the acknowledged state on which the packet is based, or 0 if it has none.
	// The server treats unacknowledged packets up to this tick as lost, and sends their contents
	// again.
	AsOf uint64
	// Total is the number of objects that a joining client has to load, and Left the number of them
	// that have not arrived with this complete snapshot. Total is 0 once the server has the
	// acknowledgements of all objects.
	Left, Total int
}

// Apply checks a whole packet and then applies it; after an error the replica is unchanged. It does
// not retain the bytes.
func (r *Replica) Apply(data []byte) (Applied, error) {
	in := wire.NewReader(data)
	var h packet.Header
	packet.ReadHeader(&in, max(r.tick, r.near), &h)
	a := Applied{Packet: h.Packet, Tick: h.Tick, Index: int(h.Index), Count: int(h.Count)}
	if in.Err() != nil {
		r.stats.Refused++
		return Applied{}, in.Err()
	}
	switch {
	case h.Tick < r.tick:
		r.stats.Discarded++
		return a, nil
	case h.Tick == r.tick && r.Common.Count != 0 && h.Common() != r.Common:
		r.stats.Refused++
		return Applied{}, packet.ErrHeader
	case h.Tick == r.tick && r.arrived>>h.Index&1 != 0:
		r.stats.Repeated++
		a.Ack = true
		return a, nil
	}
	defer r.endCheck()
	if err := r.check(wire.NewBitReader(data[in.Offset():], h.Padding), h.Tick, packet.MaxSlots); err != nil {
		r.stats.Refused++
		return Applied{}, err
	}
	if h.Tick > r.tick {
		r.tick, r.arrived, r.verdict = h.Tick, 0, DigestNone
	}
	r.Common = h.Common()
	for i := range r.staged {
		r.apply(&r.staged[i])
	}
	r.arrived |= 1 << h.Index
	r.stats.Packets++
	r.stats.Records += uint64(len(r.staged))
	a.Ack, a.AsOf = true, r.context.AsOf
	if a.SnapshotComplete = r.arrived == ^uint64(0)>>(packet.MaxPackets-h.Count); a.SnapshotComplete {
		r.stats.Snapshots++
		r.compare(&h)
		a.Left, a.Total = int(h.Left), int(h.Total)
		a.Reached = h.Tick - min(uint64(h.Behind), h.Tick)
	}
	return a, nil
}

// stagedRecord is a checked record. Its words are the draft of the object's history, if the object
// exists; its blobs alias the scratch and the baseline.
type stagedRecord struct {
	packet.Head
	class  *state.Class
	object *state.Object // the object to update or end; nil: a new object, or no object to end
	values codec.Values
	base   int    // of a delta: index of the object's version on which it is based
	mask   []byte // of a full record: readable leaves, empty if all; aliases the scratch
}

// check decodes records into r.staged, until there are more than most. Slots increase within a
// packet, so no record depends on another record of the packet.
func (r *Replica) check(bits wire.BitReader, tick uint64, most int) error {
	in := &r.in
	*in = bits
	r.staged, r.words, r.blobs, r.texts = r.staged[:0], r.words[:0], r.blobs[:0], r.texts[:0]
	r.context.Take(in, tick)
	for !r.blind && in.Left() > 0 && len(r.staged) <= most {
		s := r.next()
		if r.context.TakeHead(in, &s.Head); in.Err() != nil {
			break
		}
		s.object = r.objects.At(s.Slot)
		switch s.Kind {
		case packet.Delta:
			r.checkDelta(in, s)
		case packet.Full:
			r.checkFull(in, s)
		case packet.Despawn:
		}
	}
	return in.Err()
}

// next returns the next element of r.staged, without values. Records are decoded in place, because
// a copy costs more than the decoding.
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
		i = o.Hist.Find(s.Base, o.Changed())
	} else {
		i = o.Hist.Floor(r.context.AsOf, o.Changed())
	}
	if i < 0 {
		in.Fail(ErrBaseline)
		return
	}
	if s.Version < o.Changed() {
		in.Fail(ErrOrder)
		return
	}
	s.class, s.base = o.WireClass(), i
	r.reserve(in, r.ChangeSize(s.class))
	if s.values.Words = r.draft(in, o); in.Err() != nil {
		return
	}
	copy(s.values.Words, o.Hist.Words(i))
	s.values.Blobs = r.stageBlobs(s.class)
	copy(s.values.Blobs, o.Hist.BlobsOf(i))
	var t codec.Trend
	if x := &r.context; s.Base == 0 && x.TrendFrom < x.AsOf {
		if i = o.Hist.Floor(x.TrendFrom, o.Changed()); i >= 0 { // it existed at that tick
			t = codec.Trend{Older: codec.Values{Words: o.Hist.Words(i)}, Took: x.AsOf - x.TrendFrom, Ahead: s.Version - x.AsOf}
			if i = o.Hist.Floor(x.Origin().Oldest(), o.Changed()); x.Bent && i >= 0 {
				t.Bent, t.Oldest.Words = true, o.Hist.Words(i)
			}
		}
	}
	r.texts = s.class.Plan().TakeDelta(in, &s.values, t, r.texts)
	r.reserveBlobs(in, s.class, &s.values, o)
	s.class.CheckMask(in, &s.values, r.masks.of(s.Slot))
}

func (r *Replica) checkFull(in *wire.BitReader, s *stagedRecord) {
	if s.class = r.table.Class(s.Class); s.class == nil {
		in.Fail(ErrClass)
		return
	}
	switch o := s.object; {
	case o == nil:
	case s.Life < o.Life:
		in.Fail(ErrOrder)
		return
	case s.Life > o.Life: // the client missed the despawn
		s.object = nil
	case s.class != o.WireClass() || state.MakeID(s.Slot, s.Gen) != o.ID():
		in.Fail(packet.ErrRecord)
		return
	case s.Version < o.Changed():
		in.Fail(ErrOrder)
		return
	}
	r.reserve(in, r.ChangeSize(s.class))
	if s.object != nil {
		s.values.Words = r.draft(in, s.object)
	} else {
		s.values.Words = r.stage(in, s.class)
	}
	s.values.Blobs = r.stageBlobs(s.class)
	if s.Masked {
		s.mask = r.takeMask(in, s.class)
	}
	copy(s.values.Words, s.class.Zero.Words)
	copy(s.values.Blobs, s.class.Zero.Blobs)
	r.texts = s.class.Plan().TakeDelta(in, &s.values, codec.Trend{}, r.texts)
	r.reserveBlobs(in, s.class, &s.values, s.object)
	s.class.CheckMask(in, &s.values, s.mask)
}

// stage reserves memory for a new object of the class and returns scratch for its words, which the
// caller must fill completely.
func (r *Replica) stage(in *wire.BitReader, c *state.Class) []uint64 {
	r.reserve(in, newSize(c))
	r.words = lengthen(r.words, c.Words())
	return last(r.words, c.Words())
}

func (r *Replica) stageBlobs(c *state.Class) [][]byte {
	r.blobs = lengthen(r.blobs, c.Plan().Blobs())
	return last(r.blobs, c.Plan().Blobs())
}

func (r *Replica) apply(s *stagedRecord) {
	if r.inspector != nil {
		r.inspect(s)
	}
	if r.touched != nil {
		r.touched.Add(s.Slot)
	}
	switch {
	case s.Kind == packet.Despawn:
		if s.object != nil {
			r.despawn(s.object, r.context.Tick)
		}
	case s.object == nil:
		r.spawn(s)
	default:
		r.update(s)
	}
}

// despawn ends an object as of a tick.
func (r *Replica) despawn(o *state.Object, tick uint64) {
	r.objects.End(o)
	r.objects.Slots[o.Slot()] = nil
	r.masks.set(o.Slot(), nil)
	if !r.linger(o, tick) {
		r.release(o, !o.WireClass().Unknown)
	}
	if !o.WireClass().Unknown {
		r.events.add(Event{Kind: Despawn, Object: o, Old: o.Live()})
	}
}

func (r *Replica) spawn(s *stagedRecord) {
	if old := r.objects.At(s.Slot); old != nil {
		r.despawn(old, s.Life) // the old object existed at most until then
	}
	c := s.class
	o := state.NewObject(state.MakeID(s.Slot, s.Gen), c, newValue(c), c.Owner(&s.values))
	o.Life, o.Born, o.EventGen = s.Life, s.Life, r.eventGen
	r.stored += newSize(c)
	r.restore(o, &s.values, nil)
	r.masks.set(s.Slot, s.mask)
	r.stored += o.Hist.Push(s.Version, &s.values)
	o.SetChanged(s.Version)
	r.objects.Add(o)
	if !o.WireClass().Unknown {
		r.events.add(Event{Kind: Spawn, Object: o})
	}
}

// update stores the version of s in o. The live value is written only if it differs.
func (r *Replica) update(s *stagedRecord) {
	o, now := s.object, &r.now // filled in place, as staged records are
	if s.Kind == packet.Full {
		if !bytes.Equal(r.masks.of(s.Slot), s.mask) {
			o.Remasked = s.Version
		}
		r.masks.set(s.Slot, s.mask)
	}
	now.Words, now.Blobs = o.Hist.Words(o.Hist.Len()-1), o.Hist.BlobsOf(o.Hist.Len()-1)
	if quiet := r.quiet[o.WireClass().Index()]; quiet || !o.WireClass().Equal(&s.values, now) {
		if o.EventGen != r.eventGen && !quiet && (o.WireClass().Declared() == o.WireClass() || o.WireClass().Shows(&s.values, now)) {
			o.EventGen = r.eventGen
			r.events.add(Event{Kind: Change, Object: o, Old: r.events.old(o)})
		}
		r.restore(o, &s.values, now)
	}
	if r.drawing.keeps[o.WireClass().Index()] && o.Plan().Teleports(now, &s.values) {
		r.stats.Teleports++
	}
	if s.Version == o.Changed() {
		// Two values of one version differ only after a fault, which RequestFull repairs.
		r.stored += o.Hist.ReplaceNewest(&s.values)
		o.Hashed = 0
	} else {
		r.stored += o.Hist.Commit(s.Version, s.values.Blobs)
	}
	o.SetChanged(s.Version)
	if owner := o.WireClass().Owner(&s.values); owner != o.Owner() {
		r.objects.SetOwner(o, owner)
	}
	if s.Kind == packet.Delta && s.Base == 0 {
		r.dropVersions(o)
	}
}
