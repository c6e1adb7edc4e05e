package netvar

import (
	"fmt"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// World is the server's side: all objects of a room, and a Peer for each client.
type World struct {
	set
	table    *Table
	tick     uint64 // tick of the newest capture
	previous uint64 // tick of the capture before it
	cut      uint64 // tick of the newest snapshot of any peer
	ids      slots
	dirty    []*Object
	gone     []*Object // despawned since the last capture; their slots are still taken
	moved    bitset    // slots with a new version in the running capture
	changes  changeLog // the same for earlier captures
	peers    []*Peer

	audiences []Audience // by slot; nil or missing: all clients
	guarded   bitset     // slots of living objects with an audience
	open      bitset     // slots that NewPeer need not look at: see opens
	unjudged  []*Object  // their audiences are asked at the next capture
	newborn   []*Object  // in a space, published by this capture
	doubtful  []*Peer    // peers with objects to judge: see JudgeFor
	fresh     []*Peer    // peers that have joined since the last capture
	reading   reading

	arena        []byte         // bits of this tick's residuals
	bits         wire.BitWriter // writes into arena
	runs         []*blockRuns   // by block of 64 slots
	runBits      wire.BitWriter // scratch for runs
	buf          []codec.Values // capture scratch by class
	bytes        []byte         // hash scratch
	hashing      uint64         // end of the scheduled digests, in slots: see reserve
	kinds        []kind         // by class
	shed         uint64         // see Shed
	large        bool           // a class has values that may not fit a packet
	spent        spent
	dice         dice           // draws the entries to replace: see share.go
	farBehind    int            // least number of blank objects for a plan
	lanes        [2]catchUpLane // queues of clients with a plan: see lane.go
	spareEntries [][]entry      // of closed peers
	unshared     []*run         // runs that serve one client: see unsharedRun
	unsharedUsed int            // number of them in use by the snapshot being cut
	details      details
	stats        Stats

	spaces    []*Space
	positions []position // by class

	holds   holds
	check   *check // nil: no checks
	mirrors bool   // a Mirror fills the world, and chooses the slots

	tellClamp func(class, field string)
	clamps    []clamps // by class
}

// NewWorld makes an empty world with the classes of a table.
func NewWorld(t *Table) *World {
	w := &World{set: newSet(t), table: t, buf: make([]codec.Values, len(t.classes)), kinds: make([]kind, len(t.classes)), farBehind: farBehind, lanes: newLanes(), spent: newSpent(t), holds: newHolds(t), positions: make([]position, len(t.classes))}
	w.Seed(0)
	for i, c := range t.classes {
		w.kinds[i].weight = weightOne
		w.large = w.large || c.large
		w.buf[i] = codec.Values{Words: make([]uint64, c.words()), Blobs: make([][]byte, c.plan.Blobs())}
	}
	return w
}

// Stats returns the live counters.
func (w *World) Stats() *Stats { return &w.stats }

// Spawn adds an object. live points to an S of the class and belongs to the world from now on.
// Spawn panics if the world is full or the class is not in its table: the game must bound its
// objects.
func (w *World) Spawn(c *Class, live unsafe.Pointer, owner uint64, tick uint64) *Object {
	return w.SpawnFor(c, live, nil, owner, tick)
}

// SpawnFor adds an object that is visible to an audience only; nil means all clients. The ids that
// other clients see do not reveal it: see slots.go.
func (w *World) SpawnFor(c *Class, live unsafe.Pointer, a Audience, owner uint64, tick uint64) *Object {
	if !w.table.has(c) || live == nil {
		panic("netvar: Spawn needs a class of this world's table and a value")
	}
	if w.Full() {
		panic(fmt.Sprintf("netvar: %d objects are the most that a world holds; despawn some before spawning a %s", MaxSlots, c.name))
	}
	o := w.put(w.ids.give(a != nil || w.inSpace(c), len(w.spaces) > 0), c, live, owner, tick)
	w.SetAudience(o, a)
	return o
}

// put adds an object with an id of a free slot.
func (w *World) put(id ID, c *Class, live unsafe.Pointer, owner uint64, tick uint64) *Object {
	o := &Object{
		id: id, class: c, live: live, owner: owner, changed: tick,
		weight: w.kinds[c.index].weight, hist: newHistory(c), fields: make([]uint64, 1+c.plan.Leaves()),
	}
	w.add(o)
	w.stats.Objects++
	w.Edit(o)
	return o
}

// Len implements Store.
func (w *World) Len(c *Class) int {
	if !w.table.has(c) {
		return 0
	}
	return w.classes[c.index].count()
}

// Slots returns the length of the slot table. A peer has an entry for each slot.
func (w *World) Slots() int { return len(w.slots) }

// Full reports whether Spawn would panic because all slots are taken.
func (w *World) Full() bool { return w.ids.full() }

// Seed makes the ids of hidden objects unpredictable without the seed, and equal in worlds with the
// same seed. It must be called before the first object is spawned.
func (w *World) Seed(seed uint64) { w.ids.seed(seed) }

// Edit marks o for the next capture, because its live value may change. For a despawned object it
// has no effect.
func (w *World) Edit(o *Object) {
	if o.dirty || !o.alive {
		return
	}
	o.dirty = true
	w.dirty = append(w.dirty, o)
	if w.check != nil {
		w.checkEdit(o)
	}
}

// SetOwner changes the owner of o; 0 means no owner.
func (w *World) SetOwner(o *Object, owner uint64) {
	if o.alive {
		w.own(o, owner)
		w.Edit(o)
		if w.Audience(o) != nil || w.inSpace(o.class) || w.restricted(o) {
			w.Judge(o)
		}
	}
}

// Despawn ends an object. Its slot is free after the next capture, so clients see at most one
// object per slot and tick. A second call has no effect.
func (w *World) Despawn(o *Object) {
	if !o.alive {
		return
	}
	w.kill(o)
	w.setAudience(o.id.slot(), nil)
	if s := w.positions[o.class.index].space; s != nil {
		s.leave(o)
	}
	w.gone = append(w.gone, o)
	w.stats.Objects--
}

// Capture makes a version, in wire precision, of each edited object that has changed, and marks it
// as pending for the peers. Objects that were not edited are not compared. Ticks start at 1, must
// increase, and must be later than those of all snapshots, because the version in a packet is
// derived from its tick.
func (w *World) Capture(tick uint64) {
	if tick <= w.tick || tick <= w.cut {
		panic(fmt.Sprintf("netvar: Capture(%d) after Capture(%d) and AppendSnapshot(%d); ticks start at 1 and grow", tick, w.tick, w.cut))
	}
	w.previous, w.tick = w.tick, tick
	w.arena = w.arena[:0]
	w.retire()
	w.wake()
	if w.check != nil {
		w.checkAll()
	}
	clear(w.moved)
	for _, b := range w.reading.news {
		clear(b)
	}
	for _, o := range w.dirty {
		o.dirty = false
		if o.alive {
			w.capture(o)
		}
	}
	clear(w.dirty)
	w.dirty = w.dirty[:0]
	w.changes.add(tick, w.moved, w.reading.news)
	w.details.most = len(w.slots) + moreDetails
	w.judge()
	for _, p := range w.peers {
		p.owe(w.moved)
	}
}

// retire frees the slots of despawned objects. Peers are told only about published ones.
func (w *World) retire() {
	for _, o := range w.gone {
		slot := o.id.slot()
		if o.published() {
			for _, p := range w.peers {
				p.retire(slot, w.tick)
			}
		}
		w.slots[slot] = nil
		w.open.unset(slot)
		if !w.mirrors {
			w.ids.release(slot)
		}
	}
	clear(w.gone)
	w.gone = w.gone[:0]
}

func (w *World) capture(o *Object) {
	c := o.class
	now := w.draftOf(o)
	now.Words[c.plan.Words()] = o.owner
	w.stats.Captured++
	o.looked = w.tick
	if w.kinds[c.index].rounds {
		c.plan.Round(o.live)
	}
	if s := w.positions[c.index].space; s != nil {
		s.place(o)
	}
	switch {
	case !o.published():
		w.captured(o, now, c.plan.Capture(o.live, now))
		for i := range o.fields {
			o.fields[i] = w.tick
		}
		o.born = w.tick
		w.opens(o)
		w.publish(o)
	case w.differs(o, now):
		w.moved.set(o.id.slot())
		if w.restricted(o) {
			w.reading.note(o, w.tick)
		}
	default:
		return
	}
	if w.restricted(o) && o.hist.n > 0 && o.hist.oldest+Horizon < w.tick {
		o.noteDropped(w.tick)
	}
	o.hist.commit(w.tick, now.Blobs)
	if c.heavy {
		o.hist.fit(maxHistory)
	}
	o.changed = w.tick
	w.stats.Versions++
}

// differs captures a published object, and reports whether it has changed.
func (w *World) differs(o *Object, now *codec.Values) (changed bool) {
	c, last := o.class, o.hist.newest()
	if holds := w.holds.by[c.index] != nil; holds || w.check != nil {
		w.captured(o, now, c.plan.Capture(o.live, now))
		if holds {
			w.hold(o, now, &last)
		}
		changed = c.plan.Mark(o.fields[1:], w.tick, now, &last)
	} else {
		var misfits int
		if misfits, changed = c.plan.CaptureMark(o.live, now, &last, o.fields[1:], w.tick); misfits > 0 {
			w.captured(o, now, misfits)
		}
	}
	if c.owner(now) != c.owner(&last) {
		o.fields[0], changed = w.tick, true
	}
	return changed
}

// captured counts and reports values that did not fit.
func (w *World) captured(o *Object, now *codec.Values, misfits int) {
	if misfits > 0 {
		w.stats.Clamped += uint64(misfits)
		w.clamped(o)
	}
	if w.check != nil {
		w.checkCapture(o, now, misfits)
	}
	if misfits > 0 && w.kinds[o.class.index].rounds {
		o.class.plan.Clamp(o.live)
	}
}
