package replica

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Audit recomputes Size, and looks for references that remain after a packet or after old events.
// It is for tests.
func (r *Replica) Audit() error {
	want := r.events.bytes + r.handed.bytes
	for _, o := range slices.Concat(r.objects.Slots, r.drawing.gone) {
		if o == nil {
			continue
		}
		if o.Past != nil {
			want += o.Past.Bytes
		}
		want += objectSize(o.WireClass()) + historySize(o) + o.Hist.BlobBytes()
		for j, b := range o.Hist.Newest().Blobs {
			want += o.Plan().Heap(j, b)
		}
	}
	if got := r.Size(); got != want {
		return fmt.Errorf("%d bytes are counted, there are %d", got, want)
	}
	if r.awaited != 0 || int(unsafe.Sizeof([]byte(nil)))*cap(r.blobs) > maxScratch || 8*cap(r.words) > maxScratch {
		return fmt.Errorf("%d bytes are reserved after the packet, the scratch has room for %d blobs and %d words", r.awaited, cap(r.blobs), cap(r.words))
	}
	if slices.ContainsFunc(r.blobs[:cap(r.blobs)], func(b []byte) bool { return b != nil }) {
		return fmt.Errorf("the scratch holds a blob of an earlier packet")
	}
	for _, s := range r.staged[:cap(r.staged)] {
		if s.object != nil || s.values.Blobs != nil {
			return fmt.Errorf("a staged record holds an object, or its value")
		}
	}
	if err := r.events.audit(); err != nil {
		return err
	}
	return r.handed.audit()
}

// audit recomputes the bytes of the old values, used or not.
func (l *eventList) audit() error {
	kept, used := 0, len(l.list)
	for _, o := range l.olds {
		kept += len(o.values) * eventSize(o.class)
		used += o.used
		for _, v := range o.values[o.used:] {
			if o.class.Plan().Blobs() > 0 && !reflect.NewAt(o.class.Plan().Type(), v).Elem().IsZero() {
				return fmt.Errorf("an unused old value of class %s is not empty", o.class.Name())
			}
		}
	}
	if l.kept != kept || l.bytes < kept || used == 0 && l.bytes != kept {
		return fmt.Errorf("%d and %d bytes are counted of old values, there are %d, %d used", l.kept, l.bytes, kept, used)
	}
	if slices.ContainsFunc(l.list[len(l.list):cap(l.list)], func(e Event) bool { return e != Event{} }) {
		return fmt.Errorf("an earlier event holds its object")
	}
	return nil
}
