package netvar

import (
	"reflect"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// EventKind says what happened to an object.
type EventKind uint8

const (
	Spawn   EventKind = 1 + iota // it is here, with its first value
	Change                       // its value or owner is another
	Despawn                      // it is gone; Alive is false
)

// Event is one thing that the game wants to know. For one lifetime there is one Spawn, then any
// number of Changes, then one Despawn. A Change covers everything since the last call of
// Events, so values in between may be skipped, and so may a change right after the spawn.
type Event struct {
	Kind   EventKind
	Object *Object
	// *S: before a Change, a deep copy valid until the next call of Events; of a Despawn the last
	// value
	Old unsafe.Pointer
}

// Events returns what happened since the last call, in the order of arrival. The slice and the
// old values are valid until the next call.
func (r *Replica) Events() []Event {
	r.handed.reset()
	r.events, r.handed = r.handed, r.events
	r.eventGen++
	return r.handed.list
}

// TellChanges says whether Events shall tell of the changes of a class, as it does unless told
// otherwise: each costs a copy of the old value.
func (r *Replica) TellChanges(c *Class, tell bool) {
	if r.ours.has(c) {
		r.silent[c.index] = !tell
	}
	if c = r.served(c); c != nil {
		r.quiet[c.index] = !tell
	}
}

// eventList is a list of events with the memory of their old values, by class.
type eventList struct {
	list  []Event
	olds  []oldValues
	kept  int // bytes of all old values, used or not
	bytes int // and of what they have allocated, and of what else is kept alive
}

type oldValues struct {
	class  *Class
	values []unsafe.Pointer
	used   int
}

func newEventList(t *Table) eventList {
	l := eventList{olds: make([]oldValues, len(t.classes))}
	for i, c := range t.classes {
		l.olds[i].class = c
	}
	return l
}

func (l *eventList) add(e Event) { l.list = append(l.list, e) }

func (l *eventList) reset() {
	clear(l.list) // objects of the past must not be kept alive
	l.list = l.list[:0]
	l.bytes = l.kept
	for i := range l.olds {
		l.olds[i].reset()
	}
}

// reset makes the values free for others, and lets go of what they have allocated.
func (o *oldValues) reset() {
	if o.class.plan.Blobs() > 0 {
		for _, v := range o.values[:o.used] {
			reflect.NewAt(o.class.plan.Type(), v).Elem().SetZero()
		}
	}
	o.used = 0
}

// old returns a copy of the live value.
func (l *eventList) old(of *Object) unsafe.Pointer {
	o := &l.olds[of.class.index]
	if o.used == len(o.values) {
		o.values = append(o.values, newValue(of.class))
		size := of.class.eventSize()
		l.kept += size
		l.bytes += size
	}
	v := o.values[o.used]
	o.used++
	of.class.plan.Clone(v, of.live)
	l.bytes += of.heap
	return v
}

func newValue(c *Class) unsafe.Pointer { return reflect.New(c.plan.Type()).UnsafePointer() }

// eventSize is the bytes of an old value, without what it has allocated, and of the event that has
// it.
func (c *Class) eventSize() int {
	return codec.Allocated(int(c.plan.Type().Size())) + int(unsafe.Sizeof(Event{})+unsafe.Sizeof(unsafe.Pointer(nil)))
}
