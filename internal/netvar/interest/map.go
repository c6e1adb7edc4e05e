package interest

import (
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Map decides which viewers see which objects.
type Map struct {
	objects  *state.Set
	table    *state.Table
	stats    *Stats
	tick     uint64 // of the newest capture
	previous uint64 // tick of the capture before it
	viewers  []*Viewer

	audiences []Audience      // by slot; nil or missing: all clients
	guarded   bitset.Set      // slots of living objects with an audience
	rechecks  []*state.Object // the next Update checks them for all viewers
	entering  []*state.Object // in a space, published by the running capture
	listed    []*Viewer       // viewers with rechecks
	fresh     []*Viewer       // viewers that have joined since the last capture

	spaces    []*Space
	positions []position // by class

	readers []Readers    // by class
	changed []bitset.Set // by rule: see Changed
	scratch bitset.Set   // of Readable
}

// Stats are counters of a Map.
type Stats struct {
	Judged       uint64 // checks of an object and a client, after the object was published
	BadPositions uint64 // positions in a space that are too far out, infinite or not a number

	Shown  uint64 // objects that a check made visible to a client
	Hidden uint64 // objects that a check hid from a client

	Masked uint64 // changes of the readable fields of an object for a client
}

// Client receives the decisions about one viewer.
type Client interface {
	// Begin starts the lifetime of the object in a slot. later is set if neither the object nor the
	// client is new: the object became visible to the client.
	Begin(slot int, tick uint64, later bool)
	// End ends the lifetime of the object in a slot, and calls Viewer.End.
	End(slot int, tick uint64)
	// Remask is called before the readable fields of a visible object change.
	Remask(slot int)
	// Shown reports whether the lifetime of the object in a slot has begun and not ended.
	Shown(slot int) bool
}

// Viewer is the interest of one client.
type Viewer struct {
	Views
	Handle any        // the root package's handle of the client
	Hidden bitset.Set // slots of objects that the client may not see

	client    Client
	observers []*observer // by space
	rechecks  bitset.Set  // slots that the next Update checks: see RecheckFor
	listed    bool        // in Map.listed
	fresh     bool        // the client has joined, and audiences were not evaluated for it yet
	joined    uint64      // tick of the newest capture before the client joined
}

// NewMap makes a map of the objects of a set, which counts into stats.
func NewMap(objects *state.Set, table *state.Table, stats *Stats) *Map {
	return &Map{objects: objects, table: table, stats: stats, positions: make([]position, len(table.Classes()))}
}

// Join adds a viewer. The caller has begun the lifetimes of the objects that all clients see, and
// added all other objects to Hidden; with check, the next Update checks these hidden objects.
func (m *Map) Join(v *Viewer, c Client, check bool) {
	v.client, v.joined, v.fresh = c, m.tick, check
	m.viewers = append(m.viewers, v)
	if check {
		m.fresh = append(m.fresh, v)
	}
}

// Leave removes a viewer.
func (m *Map) Leave(v *Viewer) {
	for _, s := range m.spaces {
		s.close(v)
	}
	for _, list := range []*[]*Viewer{&m.viewers, &m.fresh, &m.listed} {
		if i := slices.Index(*list, v); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

// End removes the data of a slot at the end of its object's lifetime.
func (v *Viewer) End(slot int) {
	v.Hidden.Remove(slot)
	v.end(slot)
}

// Start begins a capture.
func (m *Map) Start(tick uint64) {
	m.previous, m.tick = m.tick, tick
	for _, slots := range m.changed {
		clear(slots)
	}
}

// Settled reports whether the next Update would have no effect.
func (m *Map) Settled() bool { return max(len(m.rechecks), len(m.listed), len(m.fresh)) == 0 }

// Despawn removes a despawned object.
func (m *Map) Despawn(o *state.Object) {
	m.setAudience(o.Slot(), nil)
	if s := m.spaceOf(o); s != nil {
		s.index.RemoveThing(o.Slot()) // viewpoints that follow it keep their position
	}
}

// Recheck makes the next capture evaluate the audience of o and the rules of its fields again. It
// has no effect before the object is published, because Publish evaluates them anyway.
func (m *Map) Recheck(o *state.Object) {
	if o.Recheck || !o.Alive() || !o.Published() {
		return
	}
	o.Recheck = true
	m.rechecks = append(m.rechecks, o)
}

// RecheckFor is Recheck for one client only.
func (m *Map) RecheckFor(o *state.Object, v *Viewer) {
	if o.Recheck || v.fresh || !o.Alive() || !o.Published() {
		return
	}
	v.rechecks.Add(o.Slot())
	if !v.listed {
		v.listed = true
		m.listed = append(m.listed, v)
	}
}

// Shows reports whether the client has the object, or will have it after the next capture.
func (m *Map) Shows(o *state.Object, v *Viewer) bool {
	switch {
	case !o.Alive():
		return false
	case !o.Published() || o.Recheck || v.fresh || v.rechecks.Has(o.Slot()):
		return m.visible(o, v)
	}
	return v.client.Shown(o.Slot())
}

// visible reports whether the space and the audience of o let a client see it. If the audience,
// while it is called, itself calls Shows for o, it gets the result of the last check.
func (m *Map) visible(o *state.Object, v *Viewer) bool {
	if s := m.spaceOf(o); s != nil && !s.visible(o, v) {
		return false
	}
	a := m.Audience(o)
	if a == nil {
		return true
	}
	if o.Asking {
		return v.client.Shown(o.Slot())
	}
	o.Asking = true
	ok := a.Includes(v)
	o.Asking = false
	return ok
}

// Restricts reports whether an audience or a space decides which clients have the object.
func (m *Map) Restricts(o *state.Object) bool {
	return m.Audience(o) != nil || m.InSpace(o.WireClass())
}

// Publish announces a new object to the clients that may see it. Objects in a space are checked
// later in the capture, after the viewpoints have moved, and only for the clients near them.
func (m *Map) Publish(o *state.Object) {
	slot := o.Slot()
	if m.InSpace(o.WireClass()) {
		o.Recheck = true
		m.entering = append(m.entering, o)
		for _, v := range m.viewers {
			v.Hidden.Add(slot)
		}
		return
	}
	m.askRules(o)
	for _, v := range m.viewers {
		if m.visible(o, v) {
			v.client.Begin(slot, m.tick, false)
			m.beginView(o, v)
		} else {
			v.Hidden.Add(slot)
		}
	}
}

// Update shows and hides objects as their audiences and spaces decide now. Publish has already
// checked new objects that are in no space.
func (m *Map) Update() {
	for _, s := range m.spaces {
		s.moveViewpoints()
	}
	for _, v := range m.fresh {
		for slot := v.Hidden.Next(0); slot >= 0; slot = v.Hidden.Next(slot + 1) {
			if o := m.objects.Slots[slot]; o.Published() && !o.Recheck {
				m.check(o, v)
			}
		}
		v.fresh = false
	}
	clear(m.fresh)
	m.fresh = m.fresh[:0]
	m.checkListed()
	for _, o := range m.entering {
		m.askRules(o)
		m.spaceOf(o).enter(o)
	}
	for _, o := range m.rechecks {
		if o.Recheck = false; !o.Alive() || !o.Published() {
			continue
		}
		m.askRules(o)
		for _, v := range m.viewers {
			m.check(o, v)
		}
	}
	clear(m.rechecks)
	m.rechecks = m.rechecks[:0]
	for _, s := range m.spaces {
		s.checkCandidates()
	}
	for _, o := range m.entering {
		o.Recheck = false
	}
	clear(m.entering)
	m.entering = m.entering[:0]
}

// checkListed checks the pairs of object and client that RecheckFor has stored.
func (m *Map) checkListed() {
	for _, v := range m.listed {
		for slot := v.rechecks.Next(0); slot >= 0; slot = v.rechecks.Next(slot + 1) {
			if o := m.objects.Slots[slot]; o != nil && o.Alive() && o.Published() && !o.Recheck {
				m.check(o, v)
			}
		}
		clear(v.rechecks)
		v.listed = false
	}
	clear(m.listed)
	m.listed = m.listed[:0]
}

// check shows or hides a published object for one client, or updates its readable fields.
func (m *Map) check(o *state.Object, v *Viewer) {
	m.stats.Judged++
	slot := o.Slot()
	switch may, has := m.visible(o, v), v.client.Shown(slot); {
	case may && !has:
		born := o.Hist.Len() == 1 && o.Changed() == m.tick
		v.Hidden.Remove(slot)
		v.client.Begin(slot, m.tick, !born && !v.fresh)
		if m.beginView(o, v); born {
			return
		}
		if m.Restricts(o) || v.joined != m.previous {
			// An older version would reveal the time of a change during which the object was
			// hidden.
			v.turn(slot, m.tick)
		}
		m.stats.Shown++
	case may:
		m.review(o, v)
	case !may && has:
		v.client.End(slot, m.tick)
		v.Hidden.Add(slot)
		m.stats.Hidden++
	case !may:
		v.Hidden.Add(slot)
	}
}
