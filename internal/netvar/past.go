package netvar

import (
	"bytes"
	"reflect"
	"slices"
	"unsafe"
)

// A server looks back at what a client saw when it did something: see Moment.

// Original reports whether the object is a server's.
func (o *Object) Original() bool { return o.fields != nil }

// At finds what o was at a moment. It reports false if o was not there then, and if the versions of
// that time are gone. The base of the drawing is nil for a class without strings, lists and
// messages, and stands for the zero struct. With them it allocates once for each change of one. The
// drawing is valid until the next capture.
//
// A client that shows the same moment sees the same, as far as what it was sent has arrived: what
// waits for its turn is old there.
func (o *Object) At(m Moment) (d Drawing, ok bool) {
	if !o.at(&m, &d.seen) || d.seen.lost {
		return Drawing{}, false
	}
	d.o, d.held, d.bare = o, d.seen.shown(), true
	if o.hist.nb > 0 {
		d.Base = o.decoded(d.held)
	}
	return d, true
}

// decoded returns a struct with the strings, lists and messages of version i.
func (o *Object) decoded(i int) unsafe.Pointer {
	v := o.hist.values(i)
	if o.past == nil || !slices.EqualFunc(o.past.blobs, v.Blobs, bytes.Equal) {
		value := reflect.New(o.class.plan.Type()).UnsafePointer()
		o.class.plan.Restore(value, &v, nil)
		o.past = &past{value: value, blobs: slices.Clone(v.Blobs)}
	}
	return o.past.value
}
