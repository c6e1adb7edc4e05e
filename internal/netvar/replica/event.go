package replica

import (
	"reflect"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// EventKind is the kind of change that an Event reports.
type EventKind uint8

const (
	Spawn   EventKind = 1 + iota // the object was created, with its first value
	Change                       // its value or owner has changed
	Despawn                      // the object has ended; Alive is false
)

// Event is one change of an object. Each lifetime has one Spawn, then any number of Changes, then
// one Despawn. A Change covers all changes since the last call of Events, so values in between may
// be skipped, and so may a change right after the spawn.
type Event struct {
	Kind   EventKind
	Object *state.Object
	// *S. Change: a deep copy of the old value, valid until the next call of Events. Despawn: the
	// last value.
	Old unsafe.Pointer
}

// Events returns the events since the last call, in the order of arrival. The slice and the old
// values are valid until the next call.
func (r *Replica) Events() []Event {
	r.handed.reset()
	r.events, r.handed = r.handed, r.events
	r.eventGen++
	return r.handed.list
}

// TellChanges sets whether Events reports changes of a class. By default it does. Each change costs
// a copy of the old value.
func (r *Replica) TellChanges(c *state.Class, tell bool) {
	if r.ours.Has(c) {
		r.silent[c.Index()] = !tell
	}
	if c = r.served(c); c != nil {
		r.quiet[c.Index()] = !tell
	}
}

// eventList is a list of events with the memory of their old values, by class.
type eventList struct {
	list  []Event
	olds  []oldValues
	kept  int // bytes of all old values, used or not
	bytes int // kept, plus the bytes that old values have allocated and that events still reference
}

type oldValues struct {
	class  *state.Class
	values []unsafe.Pointer
	used   int
}

func newEventList(t *state.Table) eventList {
	l := eventList{olds: make([]oldValues, len(t.Classes()))}
	for i, c := range t.Classes() {
		l.olds[i].class = c
	}
	return l
}

func (l *eventList) add(e Event) { l.list = append(l.list, e) }

func (l *eventList) reset() {
	clear(l.list) // drop the references to ended objects
	l.list = l.list[:0]
	l.bytes = l.kept
	for i := range l.olds {
		l.olds[i].reset()
	}
}

// reset marks all values as unused and drops their allocations.
func (o *oldValues) reset() {
	if o.class.Plan().Blobs() > 0 {
		for _, v := range o.values[:o.used] {
			reflect.NewAt(o.class.Plan().Type(), v).Elem().SetZero()
		}
	}
	o.used = 0
}

// old returns a deep copy of the live value.
func (l *eventList) old(of *state.Object) unsafe.Pointer {
	o := &l.olds[of.WireClass().Index()]
	if o.used == len(o.values) {
		o.values = append(o.values, newValue(of.WireClass()))
		size := eventSize(of.WireClass())
		l.kept += size
		l.bytes += size
	}
	v := o.values[o.used]
	o.used++
	of.Plan().Clone(v, of.Live())
	l.bytes += of.Heap
	return v
}

func newValue(c *state.Class) unsafe.Pointer { return reflect.New(c.Plan().Type()).UnsafePointer() }

// eventSize returns the bytes of an event and its old value, without the value's own allocations.
func eventSize(c *state.Class) int {
	return codec.Allocated(int(c.Plan().Type().Size())) + int(unsafe.Sizeof(Event{})+unsafe.Sizeof(unsafe.Pointer(nil)))
}
