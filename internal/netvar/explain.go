package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Explanation is the answer of World.Explain, with the data on which it is based. A tick of 0 means
// none.
type Explanation struct {
	Why      Why
	Tick     uint64 // tick of the last capture
	Changed  uint64 // tick of the last capture with a change of the field
	Visible  uint64 // tick from which the client sees the object
	Baseline uint64 // newest version that the client has acknowledged
	Sent     uint64 // tick of the last snapshot with a record of the object
	Version  uint64 // version in that record
	// Number of snapshots with that version, while one of them is in flight: at most 2.
	Copies  int
	Packets []uint64 // ids of the packets in flight with that version
	Until   uint64   // for WhyInterval: tick of the capture that will have the change
}

// Explain returns the state of the last change of a field for one client. It uses only data that
// the world needs anyway, so it has no cost while it is not called. Edits since the last capture
// are ignored, unless they would be held back. Acknowledgements since that capture are considered.
func (w *World) Explain(p *Peer, o *state.Object, field int) Explanation {
	x := Explanation{Tick: w.tick, Changed: o.Fields[field]}
	switch {
	case !o.Alive():
		x.Why = WhyGone
	case !o.Published():
		x.Why, x.Changed = WhyNew, 0
	case !(*lifetimes)(p).Shown(o.Slot()):
		x.Why = WhyHidden
	case o.WireClass().Withheld(field, p.View(o.Slot()).Withheld):
		x.Why = WhyWithheld
	default:
		slot := o.Slot()
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
			x.Why = w.whyPending(p, o, e, &x)
		}
	}
	return x
}

// Acknowledged returns the newest version of an object that the client has acknowledged, and its
// tick. ok is false if there is none, or if that version is no longer stored.
func (p *Peer) Acknowledged(o *state.Object) (v codec.Values, tick uint64, ok bool) {
	if !o.Published() || !(*lifetimes)(p).Shown(o.Slot()) {
		return v, 0, false
	}
	e := p.peek(o.Slot())
	i := -1
	if e.base > 0 {
		i = o.Floor(e.base, p.View(o.Slot()).Withheld)
	}
	if i < 0 {
		return v, e.base, false
	}
	return o.Hist.Values(i), e.base, true
}

// whyUncaptured returns the reason why the live value of a field differs from the last capture, or
// 0 if it does not differ; for WhyInterval also the tick of the capture that will have the change.
func (w *World) whyUncaptured(o *state.Object, field int) (why Why, until uint64) {
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
	if o.Dirty { // an edit may be in progress
		return 0, 0
	}
	now := w.draftOf(o)
	last := o.Hist.Newest()
	o.Plan().CaptureLeaf(field-1, o.Live(), now)
	if o.Plan().Differs(field-1, now, &last) {
		return WhyUnnoticed, 0
	}
	return 0, 0
}

// whyPending returns the state of a change that was captured.
func (w *World) whyPending(p *Peer, o *state.Object, e *entry, x *Explanation) Why {
	slot, changed := o.Slot(), x.Changed
	switch {
	case changed <= e.base && o.Compared == w.tick:
		return WhyUnchanged
	case changed <= e.base && changed <= e.life:
		return WhyUnedited
	case changed <= e.base:
		return WhyAcked
	case e.sent >= changed && x.Sent == p.tick && p.tick >= w.tick:
		return WhySent
	case p.large.slots.Has(slot):
		return WhyStream
	case e.sent >= changed && len(x.Packets) > 0:
		return WhyInFlight
	case p.tick < w.tick:
		return WhyNoSnapshot
	}
	return p.cut.why(o, e)
}

// why returns the reason why a pending object is not in the last snapshot.
func (c *cutter) why(o *state.Object, e *entry) Why {
	for i := range c.list {
		if n := &c.list[i]; n.run == nil && int(n.slot) == o.Slot() {
			return n.why
		}
	}
	if c.p.plan.why != 0 && c.p.neverSent.Has(o.Slot()) {
		return c.p.plan.why
	}
	if c.p.w.shed > 0 && c.sheds(o, e) {
		return WhyShed
	}
	return WhyNext
}

// carrying returns the ids of the packets in flight that carry the version last sent of a slot.
func (p *Peer) carrying(slot int, e *entry) (ids []uint64) {
	f := &p.flight
	for id := f.oldest; id != f.next; id++ {
		s := f.packet(id)
		if !s.inFlight || s.tick < e.life {
			continue
		}
		if slices.ContainsFunc(s.records, func(r sentRecord) bool { return r.covers(slot) && p.carried(s, &r, slot) == e.sent }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// copies returns the number of snapshots in flight that carry the version last sent of a slot, in
// these packets or on the stream. sentOnce, sentTwice and large have the number for a pending
// version. If none of them contains the slot, the packets are counted.
func (p *Peer) copies(slot int, packets []uint64) int {
	switch {
	case p.sentTwice.Has(slot):
		return 2
	case p.sentOnce.Has(slot), p.large.slots.Has(slot):
		return 1
	}
	return min(len(packets), 2) // the limit is 2 snapshots; only digests exceed it
}
