package netvar

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Why says what became of the last change of a field towards one client.
type Why uint8

// The reasons, of which World.Explain takes the first that holds.
const (
	WhyGone      Why = 1 + iota // the object is despawned
	WhyNew                      // it was spawned after the last capture
	WhyHidden                   // the client may not see it
	WhyWithheld                 // the client may not read the field
	WhyThreshold                // the change is below the field's threshold
	WhyInterval                 // the field's interval is not over
	WhyUnnoticed                // the value was changed without Edit
	WhyUnedited                 // nobody has changed the field since the client sees the object
	WhyUnchanged                // it was edited, and is the same
	WhyAcked                    // the client has acknowledged it
	WhySent                     // it is in the last snapshot
	// The object's last record fits no packet, and is on its way over the stream.
	WhyStream
	WhyInFlight   // it was sent, and is neither acknowledged nor lost
	WhyNoSnapshot // there was no snapshot for the client after the last capture
	WhyShed       // the world sheds
	WhyBudget     // the client's budget was used up
	// The packets of the snapshot were full, or others that catch up had their turns first: see
	// lane.go.
	WhyPackets
	WhyStreamFull // it fits no packet, and there was no room on the stream
	// It was on its way and is lost, or had to wait for what is: it goes with the next.
	WhyNext
)

// Explanation is the answer of World.Explain, with what it rests on. A tick of 0 is none.
type Explanation struct {
	Why      Why
	Tick     uint64 // of the capture that it is about
	Changed  uint64 // of the last capture that found the field changed
	Visible  uint64 // since when the client sees the object
	Baseline uint64 // newest version that it has acknowledged
	Sent     uint64 // of the last snapshot that had a record of the object
	Version  uint64 // that this record carried
	// Snapshots that carried that version, while one of them is under way: 2 at most.
	Copies  int
	Packets []uint64 // ids of those in flight that carry it
	Until   uint64   // of WhyInterval: the tick whose capture takes the change
}

// FieldsNamed returns the fields that a name means, in FieldName's numbers: one field, what lies in
// a struct or array, or, of an empty name, all.
func (c *Class) FieldsNamed(name string) (fields []int) {
	for i := range 1 + c.plan.Leaves() {
		rest, ok := strings.CutPrefix(c.FieldName(i), name)
		if ok && (name == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			fields = append(fields, i)
		}
	}
	return fields
}

// LastChanged returns the one of some fields that has changed last: the first of several, and the
// owner only if it is alone.
func (o *Object) LastChanged(fields []int) int {
	return slices.MaxFunc(fields, func(a, b int) int {
		return cmp.Or(cmp.Compare(o.fields[a], o.fields[b]), cmp.Compare(min(a, 1), min(b, 1)))
	})
}

// Explain says what became of the last change of a field, towards one client. It is worked out from
// what is there, and costs nothing otherwise: what was edited since the last capture has no part in
// it unless it would be held back, and what was acknowledged since has.
func (w *World) Explain(p *Peer, o *Object, field int) Explanation {
	x := Explanation{Tick: w.tick, Changed: o.fields[field]}
	switch {
	case !o.alive:
		x.Why = WhyGone
	case !o.published():
		x.Why, x.Changed = WhyNew, 0
	case !p.shows(o):
		x.Why = WhyHidden
	case o.class.ruled(field, p.view(o.id.slot()).withheld):
		x.Why = WhyWithheld
	default:
		slot := o.id.slot()
		own := p.peek(slot)
		e := &own
		x.Visible, x.Baseline = e.life, e.base
		if e.sent != 0 {
			x.Sent, x.Version = p.tick-e.age(p.tick), e.sent
			x.Packets = p.carrying(slot, e)
			x.Copies = p.copies(slot, x.Packets)
			if n := len(x.Packets); n > 0 {
				x.Sent = p.flight.packet(x.Packets[n-1]).tick
			}
		}
		if x.Why, x.Until = w.whyUncaptured(o, field); x.Why == 0 {
			x.Why = w.whyOwed(p, o, e, &x)
		}
	}
	return x
}

// ruled tells whether one of these rules says who reads the field.
func (c *Class) ruled(field int, rules Rules) bool {
	return field > 0 && c.reads.rule != nil && rules>>c.reads.rule[field-1]&1 != 0
}

// whyUncaptured tells why the value of a field is another one than the last capture has.
func (w *World) whyUncaptured(o *Object, field int) (why Why, until uint64) {
	if field == 0 {
		return 0, 0
	}
	switch held, until := w.Held(o, field-1); held {
	case BelowThreshold:
		return WhyThreshold, 0
	case WithinInterval:
		return WhyInterval, until
	case NotHeld:
	}
	if o.dirty { // somebody may be editing it just now
		return 0, 0
	}
	now := w.draftOf(o)
	last := o.hist.newest()
	o.class.plan.CaptureLeaf(field-1, o.live, now)
	if o.class.plan.Differs(field-1, now, &last) {
		return WhyUnnoticed, 0
	}
	return 0, 0
}

// whyOwed tells what became of a change that was captured.
func (w *World) whyOwed(p *Peer, o *Object, e *entry, x *Explanation) Why {
	slot, changed := o.id.slot(), x.Changed
	switch {
	case changed <= e.base && o.looked == w.tick:
		return WhyUnchanged
	case changed <= e.base && changed <= e.life:
		return WhyUnedited
	case changed <= e.base:
		return WhyAcked
	case e.sent >= changed && x.Sent == p.tick && p.tick >= w.tick:
		return WhySent
	case p.large.slots.has(slot):
		return WhyStream
	case e.sent >= changed && len(x.Packets) > 0:
		return WhyInFlight
	case p.tick < w.tick:
		return WhyNoSnapshot
	}
	return p.cut.why(o, e)
}

// why tells why an object that is owed is not in the last snapshot.
func (c *cutter) why(o *Object, e *entry) Why {
	for i := range c.list {
		if n := &c.list[i]; n.run == nil && int(n.slot) == o.id.slot() {
			return n.why
		}
	}
	if c.p.plan.why != 0 && c.p.blank.has(o.id.slot()) {
		return c.p.plan.why
	}
	if c.p.w.shed > 0 && c.sheds(o, e) {
		return WhyShed
	}
	return WhyNext
}

// carrying returns the ids of the packets in flight that carry what an entry was last sent.
func (p *Peer) carrying(slot int, e *entry) (ids []uint64) {
	f := &p.flight
	for id := f.oldest; id != f.next; id++ {
		s := f.packet(id)
		if !s.pending || s.tick < e.life {
			continue
		}
		if slices.ContainsFunc(s.records, func(r sentRecord) bool { return r.covers(slot) && p.carried(s, &r, slot) == e.sent }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// copies is in how many snapshots the version that was last sent of a slot is under way, in these
// packets or over the stream. Of what is owed the peer knows it; once the object has a later
// version, the packets tell.
func (p *Peer) copies(slot int, packets []uint64) int {
	switch {
	case p.sentTwice.has(slot):
		return 2
	case p.sentOnce.has(slot), p.large.slots.has(slot):
		return 1
	}
	return min(len(packets), 2) // one in each snapshot; a digest takes more of them
}

// ParseID reads what ID.String writes.
func ParseID(text string) (ID, bool) {
	before, after, ok := strings.Cut(text, ".")
	slot, err := strconv.ParseUint(before, 10, 16)
	gen, err2 := strconv.ParseUint(after, 10, 32)
	return makeID(int(slot), uint32(gen)), ok && err == nil && err2 == nil
}
