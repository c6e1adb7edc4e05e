package state

import (
	"bytes"
	"reflect"
	"slices"
	"unsafe"
)

// A server can look up the state that a client saw when it acted: see Moment.

// Original reports whether the object belongs to a server.
func (o *Object) Original() bool { return o.Fields != nil }

// At returns o at a moment. It reports false if o did not exist at the moment, or if the versions
// of that time were dropped. If the class has no strings, lists and messages, the base of the
// drawing is nil, which means the zero struct. Otherwise At allocates memory once for each change
// of such a value. The drawing is valid until the next capture.
//
// A client that shows the same moment sees the same state, if the records have arrived: an object
// with a delayed record is older on the client.
func (o *Object) At(m Moment) (d Drawing, ok bool) {
	if !o.at(&m, &d.seen) || d.seen.lost {
		return Drawing{}, false
	}
	d.o, d.held, d.bare = o, d.seen.shown(), true
	if o.Hist.nb > 0 {
		d.Base = o.decoded(d.held)
	}
	return d, true
}

// decoded returns a struct with the strings, lists and messages of version i.
func (o *Object) decoded(i int) unsafe.Pointer {
	v := o.Hist.Values(i)
	if o.Past == nil || !slices.EqualFunc(o.Past.blobs, v.Blobs, bytes.Equal) {
		value := reflect.New(o.Plan().Type()).UnsafePointer()
		o.Plan().Restore(value, &v, nil)
		o.Past = &Past{Value: value, blobs: slices.Clone(v.Blobs)}
	}
	return o.Past.Value
}
