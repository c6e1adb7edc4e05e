package netvar

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/codec"
)

// Misuse is what a check finds that a game does with its objects.
type Misuse uint8

// Unedited is a field that was changed without Edit, through a pointer or a slice that was kept.
// Misfit is a value that its field cannot hold.
const (
	Unedited Misuse = iota
	Misfit
)

func (m Misuse) String() string {
	if m == Unedited {
		return "unedited"
	}
	return "misfit"
}

// check is what a world that is checked remembers: see World.Check.
type check struct {
	tell   func(o *Object, field string, what Misuse)
	edits  bool
	values bool
	// By slot: what was last found there, before anything was held back or refused.
	seen []codec.Values
}

// Check makes the world look for misuse, at the cost of a capture and a copy of every object in
// each tick, and tell of each that it finds. With edits it compares objects with their last capture
// when they are edited and, all others, before each capture; that changes nothing for clients. With
// values a value that does not fit its field is refused: the field keeps what was captured last,
// except in an object that is new.
func (w *World) Check(edits, values bool, tell func(o *Object, field string, what Misuse)) {
	w.check = &check{tell: tell, edits: edits, values: values}
}

// checkAll looks for changes in objects that are not edited.
func (w *World) checkAll() {
	if !w.check.edits {
		return
	}
	for _, o := range w.slots {
		if o != nil && !o.dirty { // It is alive: the slots of others are free by now.
			w.checkEdit(o)
		}
	}
}

// checkEdit compares an object that nobody had the right to change, and takes it as it is now: each
// change is told once.
func (w *World) checkEdit(o *Object) {
	if !w.check.edits || !o.published() {
		return
	}
	now, was := w.draftOf(o), &w.check.seen[o.id.slot()]
	o.class.plan.Capture(o.live, now)
	if o.class.plan.Equal(now, was) {
		return
	}
	for i := range o.class.plan.Leaves() {
		if o.class.plan.Differs(i, now, was) {
			w.check.tell(o, o.class.plan.LeafName(i), Unedited)
		}
	}
	w.check.keep(o, now)
}

// draftOf returns scratch for a capture of o: the next version of its history.
func (w *World) draftOf(o *Object) *codec.Values {
	now := &w.buf[o.class.index]
	now.Words = o.hist.draft()
	return now
}

// checkCapture takes what was captured, and refuses what does not fit.
func (w *World) checkCapture(o *Object, now *codec.Values, misfits int) {
	w.check.keep(o, now)
	if misfits == 0 || !w.check.values {
		return
	}
	var last *codec.Values
	if o.published() {
		v := o.hist.newest()
		last = &v
	}
	for _, field := range o.class.plan.Refuse(o.live, now, last) {
		w.check.tell(o, field, Misfit)
	}
}

func (c *check) keep(o *Object, now *codec.Values) {
	for len(c.seen) <= o.id.slot() {
		c.seen = append(c.seen, codec.Values{})
	}
	v := &c.seen[o.id.slot()]
	v.Words = append(v.Words[:0], now.Words...)
	v.Blobs = slices.Grow(v.Blobs[:0], len(now.Blobs))[:len(now.Blobs)]
	for i, b := range now.Blobs {
		v.Blobs[i] = bytes.Clone(b)
	}
}

// String names an object for people: its slot, and which object of that slot it is.
func (id ID) String() string { return fmt.Sprintf("%d.%d", id.slot(), id.gen()) }
