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
	tick     uint64 // of the newest capture
	previous uint64 // of the capture before it
	cut      uint64 // of the newest snapshot of any peer
	ids      slots
	dirty    []*Object
	gone     []*Object // despawned since the last capture; their slots are still theirs
	moved    bitset    // slots with a new version in the running capture
	changes  changeLog // and in those before it
	peers    []*Peer

	audiences []Audience // by slot; nil and what is beyond the last: everybody
	guarded   bitset     // slots of living objects with an audience
	open      bitset     // slots of published objects that NewPeer need not look at: see opens
	unjudged  []*Object  // whose audience the next capture asks
	newborn   []*Object  // in a space, published by this capture
	doubtful  []*Peer    // with a pair that the next capture asks about
	fresh     []*Peer    // that have joined since the last capture
	reading   reading

	arena        []byte         // residuals of this tick
	bits         wire.BitWriter // that writes them
	runs         []*blockRuns   // by 64 slots
	runBits      wire.BitWriter // that puts them together
	buf          []codec.Values // capture scratch by class
	bytes        []byte         // hash scratch
	hashing      uint64         // up to where digests have taken turns: see reserve
	kinds        []kind         // by class
	shed         uint64         // see Shed
	large        bool           // a class has values that may not fit a packet
	spent        spent
	dice         dice           // draws which variants go: see share.go
	farBehind    int            // from how many blank objects on a client follows a plan
	lanes        [2]catchUpLane // in which clients catch up: see lane.go
	spareEntries [][]entry      // of peers that have left
	unshared     []*run         // those that serve one client: see unsharedRun
	unsharedUsed int            // how many of them the snapshot that is being cut uses
	details      details
	stats        Stats

	spaces    []*Space
	positions []position // by class

	holds   holds
	check   *check // nil: none
	mirrors bool   // a Mirror fills it, which says which slots its objects have

	tellClamp func(class, field string)
	clamps    []clamps // by class
}

// NewWorld makes an empty world with these classes.
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

// Stats returns the counters; they are the world's own and go on counting.
func (w *World) Stats() *Stats { return &w.stats }

// Spawn adds an object. live points to an S of the class and belongs to the world from now on.
// It panics when the world is full or the class is not in its table: the game must bound what
// it spawns.
func (w *World) Spawn(c *Class, live unsafe.Pointer, owner uint64, tick uint64) *Object {
	return w.SpawnFor(c, live, nil, owner, tick)
}

// SpawnFor adds an object that an audience alone has; nil is everybody. To other clients the ids
// that they see do not tell of it: see slots.go.
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

// put adds an object with an id whose slot is free.
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

// Slots returns how many places for objects there are, which a peer knows of each.
func (w *World) Slots() int { return len(w.slots) }

// Full reports whether Spawn would find no place.
func (w *World) Full() bool { return w.ids.full() }

// Seed makes the ids of objects that clients may not see unpredictable to whoever does not know the
// seed, and the same in a world with the same seed. It belongs before the first object.
func (w *World) Seed(seed uint64) { w.ids.seed(seed) }

// Edit notes that the live value of o may change before the next capture. For a despawned
// object it does nothing.
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

// SetOwner makes owner (0: nobody) the owner of o.
func (w *World) SetOwner(o *Object, owner uint64) {
	if o.alive {
		w.own(o, owner)
		w.Edit(o)
		if w.Audience(o) != nil || w.inSpace(o.class) || w.restricted(o) {
			w.Judge(o)
		}
	}
}

// Despawn ends the life of o. Its slot is free after the next capture, so clients see at most
// one object per slot and tick. Despawning twice does nothing.
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

// Capture makes a version of each edited object that has really changed, in wire precision, and
// tells the peers what they are owed. Objects that were not edited are not looked at. Ticks start
// at 1, must grow, and must be later than those of all snapshots: what a packet carries is known by
// its tick.
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

// retire frees the slots of what was despawned. What the peers never heard of they need not
// hear the end of.
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

// differs captures an object that has a version, and tells whether it is another one.
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

// captured counts and tells what did not fit.
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
