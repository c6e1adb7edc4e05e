package netvar

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/slots"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// World is the server's side: all objects of a room, and a Peer for each client.
type World struct {
	*interest.Map // decides which clients see which objects: SetAudience, NewSpace, SetReaders

	objects state.Set
	table   *state.Table
	tick    uint64 // tick of the newest capture
	cut     uint64 // tick of the newest snapshot of any peer
	ids     slots.Allocator
	dirty   []*state.Object
	gone    []*state.Object // despawned since the last capture; their slots are still taken
	moved   bitset.Set      // slots with a new version in the running capture
	changes changeLog       // the same for earlier captures
	peers   []*Peer

	open bitset.Set // slots of objects, outside of spaces, that all may read in full: see opens

	encoded      []residuals     // by slot: encodings of the newest version
	masked       []maskedHashes  // by slot: hashes of the newest version
	mask         []byte          // scratch of digests
	permitted    [4]codec.Values // scratch of permit
	arena        []byte          // bits of this tick's residuals
	bits         wire.BitWriter  // writes into arena
	runs         []*blockRuns    // by block of 64 slots
	runBits      wire.BitWriter  // scratch for runs
	buf          []codec.Values  // capture scratch by class
	bytes        []byte          // scratch of hashes
	fieldDigests [][]uint16      // scratch of AppendChangeDigests, by class
	hashing      uint64          // end of the scheduled digests, in slots: see reserve
	kinds        []kind          // by class
	shed         uint64          // see Shed
	large        bool            // a class has values that may not fit a packet
	spent        spent
	costs        *costs          // nil: nobody asks for them
	rng          rng             // draws the entries to replace: see share.go
	farBehind    int             // least number of never-sent objects for a plan
	catchUp      [2]catchUpQueue // queues of clients with a plan: see catchup.go
	spareEntries [][]entry       // of closed peers
	unshared     []*run          // runs that serve one client: see unsharedRun
	unsharedUsed int             // number of them in use by the snapshot being cut
	details      details
	stats        Stats

	holds   holds
	check   *check // nil: no checks
	mirrors bool   // a Mirror fills the world, and chooses the slots

	tellClamp func(class, field string)
	clamps    []clamps // by class
}

// NewWorld makes an empty world with the classes of a table.
func NewWorld(t *state.Table) *World {
	w := &World{objects: state.NewSet(t), table: t, buf: make([]codec.Values, len(t.Classes())), kinds: make([]kind, len(t.Classes())), farBehind: farBehind, catchUp: newCatchUp(), spent: newSpent(t), holds: newHolds(t)}
	w.Map = interest.NewMap(&w.objects, t, &w.stats.Stats)
	w.Seed(0)
	for i, c := range t.Classes() {
		w.kinds[i].weight = state.WeightOne
		w.large = w.large || c.Large
		w.buf[i] = codec.Values{Words: make([]uint64, c.Words()), Blobs: make([][]byte, c.Plan().Blobs())}
	}
	return w
}

// Stats returns the live counters.
func (w *World) Stats() *Stats { return &w.stats }

// Spawn adds an object. live points to an S of the class and belongs to the world from now on.
// Spawn panics if the world is full or the class is not in its table: the game must bound its
// objects.
func (w *World) Spawn(c *state.Class, live unsafe.Pointer, owner uint64, tick uint64) *state.Object {
	return w.SpawnFor(c, live, nil, owner, tick)
}

// SpawnFor adds an object that is visible only to an audience; nil means all clients. The ids that
// other clients see do not reveal the object: see package slots.
func (w *World) SpawnFor(c *state.Class, live unsafe.Pointer, a interest.Audience, owner uint64, tick uint64) *state.Object {
	if !w.table.Has(c) || live == nil {
		panic("netvar: Spawn needs a class of this world's table and a value")
	}
	if w.Full() {
		panic(fmt.Sprintf("netvar: %d objects are the most that a world holds; despawn some before spawning a %s", packet.MaxSlots, c.Name()))
	}
	o := w.put(w.ids.Give(a != nil || w.InSpace(c), w.HasSpaces()), c, live, owner, tick)
	w.SetAudience(o, a)
	return o
}

// put adds an object with an id of a free slot.
func (w *World) put(id state.ID, c *state.Class, live unsafe.Pointer, owner uint64, tick uint64) *state.Object {
	o := state.NewObject(id, c, live, owner)
	o.SetChanged(tick)
	o.Weight, o.Fields = w.kinds[c.Index()].weight, make([]uint64, 1+c.Plan().Leaves())
	w.objects.Add(o)
	for len(w.encoded) < len(w.objects.Slots) {
		w.encoded, w.masked = append(w.encoded, residuals{}), append(w.masked, nil)
	}
	w.stats.Objects++
	w.Edit(o)
	return o
}

// Get implements Store.
func (w *World) Get(id state.ID) (*state.Object, bool) { return w.objects.Get(id) }

// All implements Store.
func (w *World) All(c *state.Class) iter.Seq[*state.Object] { return w.objects.All(c) }

// AllFrom is All, from a slot on.
func (w *World) AllFrom(c *state.Class, slot int) iter.Seq[*state.Object] {
	return w.objects.From(c, slot)
}

// Owned implements Store.
func (w *World) Owned(owner uint64) iter.Seq[*state.Object] { return w.objects.Owned(owner) }

// Len implements Store.
func (w *World) Len(c *state.Class) int {
	if !w.table.Has(c) {
		return 0
	}
	return w.objects.Count(c)
}

// Slots returns the length of the slot table. A peer has an entry for each slot.
func (w *World) Slots() int { return len(w.objects.Slots) }

// Full reports whether Spawn would panic because all slots are taken.
func (w *World) Full() bool { return w.ids.Full() }

// Seed makes the ids of hidden objects unpredictable without the seed, and equal in worlds with the
// same seed. It must be called before the first object is spawned.
func (w *World) Seed(seed uint64) { w.ids.Seed(seed) }

// Edit marks o for the next capture, because its live value may change. It has no effect for a
// despawned object.
func (w *World) Edit(o *state.Object) {
	if o.Dirty || !o.Alive() {
		return
	}
	o.Dirty = true
	w.dirty = append(w.dirty, o)
	if w.check != nil {
		w.checkEdit(o)
	}
}

// SetOwner changes the owner of o; 0 means no owner.
func (w *World) SetOwner(o *state.Object, owner uint64) {
	if o.Alive() {
		w.objects.SetOwner(o, owner)
		w.Edit(o)
		if w.Restricts(o) || o.WireClass().Restricted() {
			w.Recheck(o)
		}
	}
}

// Despawn ends an object. Its slot is free after the next capture, so clients see at most one
// object per slot and tick. A second call has no effect.
func (w *World) Despawn(o *state.Object) {
	if !o.Alive() {
		return
	}
	w.objects.End(o)
	w.Map.Despawn(o)
	w.gone = append(w.gone, o)
	w.stats.Objects--
}

// Capture makes a version, in wire precision, of each edited object that has changed, and marks it
// as pending for the peers. Objects that were not edited are not compared. Ticks start at 1, must
// increase, and must be later than the ticks of all snapshots, because the version in a packet is
// derived from the packet's tick.
func (w *World) Capture(tick uint64) {
	if tick <= w.tick || tick <= w.cut {
		panic(fmt.Sprintf("netvar: Capture(%d) after Capture(%d) and AppendSnapshot(%d); ticks start at 1 and grow", tick, w.tick, w.cut))
	}
	w.tick = tick
	w.Start(tick)
	w.arena = w.arena[:0]
	w.retire()
	w.wake()
	w.countCosts()
	if w.check != nil {
		w.checkAll()
	}
	clear(w.moved)
	for _, o := range w.dirty {
		o.Dirty = false
		if o.Alive() {
			w.capture(o)
		}
	}
	clear(w.dirty)
	w.dirty = w.dirty[:0]
	w.changes.add(tick, w.moved, w.Changed())
	w.details.most = len(w.objects.Slots) + moreDetails
	w.Update()
	for _, p := range w.peers {
		p.addPending(w.Readable(&p.Viewer, w.moved))
	}
}

// retire frees the slots of despawned objects. Only the end of published objects is announced to
// peers.
func (w *World) retire() {
	for _, o := range w.gone {
		slot := o.Slot()
		if o.Published() {
			for _, p := range w.peers {
				p.retire(slot, w.tick)
			}
		}
		w.objects.Slots[slot] = nil
		w.costs.forget(slot)
		w.open.Remove(slot)
		if !w.mirrors {
			w.ids.Release(slot)
		}
	}
	clear(w.gone)
	w.gone = w.gone[:0]
}

func (w *World) capture(o *state.Object) {
	c := o.WireClass()
	now := w.draftOf(o)
	now.Words[c.Plan().Words()] = o.Owner()
	w.stats.Captured++
	o.Compared = w.tick
	if w.kinds[c.Index()].rounds {
		c.Plan().Round(o.Live())
	}
	if w.InSpace(c) {
		w.Place(o)
	}
	switch {
	case !o.Published():
		w.captured(o, now, c.Plan().Capture(o.Live(), now))
		for i := range o.Fields {
			o.Fields[i] = w.tick
		}
		o.Born = w.tick
		w.opens(o)
		w.Publish(o)
	case w.differs(o, now):
		w.moved.Add(o.Slot())
		if c.Restricted() {
			w.Note(o)
		}
	default:
		return
	}
	if c.Restricted() {
		o.NoteDropped(w.tick)
	}
	o.Hist.Commit(w.tick, now.Blobs)
	if c.Heavy {
		o.Hist.Fit(state.MaxHistory)
	}
	o.SetChanged(w.tick)
	w.stats.Versions++
}

// differs captures a published object, and reports whether it has changed.
func (w *World) differs(o *state.Object, now *codec.Values) (changed bool) {
	c, last := o.WireClass(), o.Hist.Newest()
	if holds := w.holds.by[c.Index()] != nil; holds || w.check != nil {
		w.captured(o, now, c.Plan().Capture(o.Live(), now))
		if holds {
			w.hold(o, now, &last)
		}
		changed = c.Plan().Mark(o.Fields[1:], w.tick, now, &last)
	} else {
		var misfits int
		if misfits, changed = c.Plan().CaptureMark(o.Live(), now, &last, o.Fields[1:], w.tick); misfits > 0 {
			w.captured(o, now, misfits)
		}
	}
	if c.Owner(now) != c.Owner(&last) {
		o.Fields[0], changed = w.tick, true
	}
	return changed
}

// captured counts and reports the values of a capture that did not fit their fields, and clamps
// them in the live value if the class is rounded.
func (w *World) captured(o *state.Object, now *codec.Values, misfits int) {
	if misfits > 0 {
		w.stats.Clamped += uint64(misfits)
		w.clamped(o)
	}
	if w.check != nil {
		w.checkCapture(o, now, misfits)
	}
	if misfits > 0 && w.kinds[o.WireClass().Index()].rounds {
		o.Plan().Clamp(o.Live())
	}
}
