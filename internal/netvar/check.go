package netvar

import (
	"bytes"
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Misuse is an error that World.Check finds in how a game uses its objects.
type Misuse uint8

// Unedited is a field that was changed without Edit, through a retained pointer or slice. Misfit is
// a value that its field cannot hold.
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

// check is the state of World.Check.
type check struct {
	tell   func(o *state.Object, field string, what Misuse)
	edits  bool
	values bool
	// By slot: the last captured value, before fields were held back or rejected.
	seen []codec.Values
}

// Check makes the world report misuse, at the cost of a capture and a copy of every object in each
// tick. With edits, an object is compared with its last capture when it is edited, and all other
// objects before each capture; clients get the same data. With values, a value that does not fit
// its field is rejected: the field keeps its last captured value, except in a new object.
func (w *World) Check(edits, values bool, tell func(o *state.Object, field string, what Misuse)) {
	w.check = &check{tell: tell, edits: edits, values: values}
}

// checkAll reports changes in objects that are not edited.
func (w *World) checkAll() {
	if !w.check.edits {
		return
	}
	for _, o := range w.objects.Slots {
		if o != nil && !o.Dirty { // the slots of dead objects are already nil
			w.checkEdit(o)
		}
	}
}

// checkEdit reports changes of an object that were made without Edit, and stores the value, so that
// each change is reported once.
func (w *World) checkEdit(o *state.Object) {
	if !w.check.edits || !o.Published() {
		return
	}
	now, was := w.draftOf(o), &w.check.seen[o.Slot()]
	o.Plan().Capture(o.Live(), now)
	if o.Plan().Equal(now, was) {
		return
	}
	for i := range o.Plan().Leaves() {
		if o.Plan().Differs(i, now, was) {
			w.check.tell(o, o.Plan().LeafName(i), Unedited)
		}
	}
	w.check.keep(o, now)
}

// draftOf returns scratch for a capture of o: the draft of its next version.
func (w *World) draftOf(o *state.Object) *codec.Values {
	now := &w.buf[o.WireClass().Index()]
	now.Words = o.Hist.Draft()
	return now
}

// checkCapture stores the captured value, and rejects values that do not fit.
func (w *World) checkCapture(o *state.Object, now *codec.Values, misfits int) {
	w.check.keep(o, now)
	if misfits == 0 || !w.check.values {
		return
	}
	var last *codec.Values
	if o.Published() {
		v := o.Hist.Newest()
		last = &v
	}
	for _, field := range o.Plan().Refuse(o.Live(), now, last) {
		w.check.tell(o, field, Misfit)
	}
}

func (c *check) keep(o *state.Object, now *codec.Values) {
	for len(c.seen) <= o.Slot() {
		c.seen = append(c.seen, codec.Values{})
	}
	v := &c.seen[o.Slot()]
	v.Words = append(v.Words[:0], now.Words...)
	v.Blobs = slices.Grow(v.Blobs[:0], len(now.Blobs))[:len(now.Blobs)]
	for i, b := range now.Blobs {
		v.Blobs[i] = bytes.Clone(b)
	}
}
