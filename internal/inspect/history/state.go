package history

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// errFrame is the error of bytes that no tracker writes: the temporary file was changed.
var errFrame = errors.New("history: frame is damaged")

// State is all objects as of a tick. Only one goroutine may use it.
type State struct {
	Tick    uint64
	classes []*state.Class
	slots   []*Object // by slot; nil where there is none
	mask    []byte    // scratch
	body    []byte    // scratch
}

// Object is an object of a State.
type Object struct {
	ID     state.ID
	Class  *state.Class
	Values codec.Values
}

// Owner returns the client that owns the object, or 0.
func (o *Object) Owner() uint64 { return o.Class.Owner(&o.Values) }

// at returns the object in a slot, or nil.
func (s *State) at(slot int) *Object {
	if slot < 0 || slot >= len(s.slots) {
		return nil
	}
	return s.slots[slot]
}

// apply applies a frame. The state then refers to its bytes.
func (s *State) apply(frame []byte) error { return s.applyOnly(frame, nil, nil) }

// fold applies a frame, and copies the bytes that the state keeps, so that the frame can be freed.
func (s *State) fold(frame []byte) error {
	return s.applyOnly(frame, nil, func(o *Object, _ []byte, _ bool) {
		for i, b := range o.Values.Blobs {
			o.Values.Blobs[i] = bytes.Clone(b)
		}
	})
}

// appendKeyframe appends all objects as added, as tracker.appendKeyframe does.
func (s *State) appendKeyframe(dst []byte) []byte {
	for i, c := range s.classes {
		n, last := 0, 0
		s.body = s.body[:0]
		for slot, o := range s.slots {
			if o == nil || o.Class != c {
				continue
			}
			s.body = wire.AppendUvarint(s.body, uint64(slot-last))
			s.body = wire.AppendUvarint(s.body, uint64(o.ID.Gen()))
			s.body = c.Plan().AppendValues(wire.AppendUvarint(s.body, o.Owner()), &o.Values)
			n, last = n+1, slot
		}
		if n > 0 {
			head := wire.AppendUvarint([]byte{0}, uint64(n)) // none is removed
			dst = wire.AppendUvarint(wire.AppendUvarint(dst, uint64(i)), uint64(len(head)+len(s.body)+1))
			dst = append(append(append(dst, head...), s.body...), 0) // none has changed
		}
	}
	return dst
}

// applyOnly applies the groups of one class, or of all if it is nil. It calls note, unless that is
// nil, for each added object with a nil mask, and for each changed one with the mask of the changed
// leaves; owner reports a new owner.
func (s *State) applyOnly(frame []byte, only *state.Class, note func(o *Object, mask []byte, owner bool)) error {
	r := wire.NewReader(frame)
	for r.Len() > 0 && r.Err() == nil {
		class, body := r.Uvarint(), r.Block(r.Len())
		if class >= uint64(len(s.classes)) {
			return errFrame
		}
		if c := s.classes[class]; only == nil || only == c {
			if err := s.group(c, body, note); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

func (s *State) group(c *state.Class, body []byte, note func(*Object, []byte, bool)) error {
	r := wire.NewReader(body)
	slot := 0
	for range r.Count(packet.MaxSlots, 1) {
		slot += int(r.Uvarint())
		switch o := s.at(slot); {
		case o == nil:
			return errFrame
		case o.Class == c: // Otherwise the slot has a new object of another class already.
			s.slots[slot] = nil
		}
	}
	slot = 0
	for range r.Count(packet.MaxSlots, 1) {
		slot += int(r.Uvarint())
		if slot < 0 || slot >= packet.MaxSlots || r.Err() != nil {
			return errFrame
		}
		o := s.add(c, slot, &r)
		if note != nil {
			note(o, nil, false)
		}
	}
	slot = 0
	for range r.Count(packet.MaxSlots, 1) {
		head := r.Uvarint()
		slot += int(head >> 1)
		o := s.at(slot)
		if o == nil || o.Class != c || r.Err() != nil {
			return errFrame
		}
		s.mask = append(s.mask[:0], r.Bytes(c.MaskBytes())...)
		if head&1 != 0 {
			o.Values.Words[c.Words()-1] = r.Uvarint()
		}
		if r.Err() != nil {
			return errFrame
		}
		c.Plan().ReadSome(&r, &o.Values, s.mask)
		if note != nil {
			note(o, s.mask, head&1 != 0)
		}
	}
	return r.Done()
}

// add reads an added object.
func (s *State) add(c *state.Class, slot int, r *wire.Reader) *Object {
	gen, owner := uint32(r.Uvarint()), r.Uvarint()
	o := &Object{ID: state.MakeID(slot, gen), Class: c, Values: codec.Values{
		Words: make([]uint64, c.Words()), Blobs: make([][]byte, c.Plan().Blobs()),
	}}
	o.Values.Words[c.Words()-1] = owner
	c.Plan().ReadSome(r, &o.Values, nil)
	for len(s.slots) <= slot {
		s.slots = append(s.slots, nil)
	}
	s.slots[slot] = o
	return o
}

// Diff is the difference of a state from an earlier or later one.
type Diff struct {
	Added, Removed []*Object
	Changed        []Changed
}

// Changed is an object with different values in two states.
type Changed struct {
	Now, Was *Object
	Fields   []int // as in state.Class.FieldName
}

// diff returns the difference of s from another state of the same history.
func (s *State) diff(from *State) (d Diff) {
	for slot := range max(len(s.slots), len(from.slots)) {
		now, was := s.at(slot), from.at(slot)
		if now != nil && was != nil && now.ID == was.ID {
			if fields := now.changedFrom(was); len(fields) > 0 {
				d.Changed = append(d.Changed, Changed{now, was, fields})
			}
			continue
		}
		if now != nil {
			d.Added = append(d.Added, now)
		}
		if was != nil {
			d.Removed = append(d.Removed, was)
		}
	}
	return d
}

// changedFrom returns the fields with different values.
func (o *Object) changedFrom(was *Object) (fields []int) {
	if o.Owner() != was.Owner() {
		fields = append(fields, 0)
	}
	for i := range o.Class.Leaves() {
		if o.Class.Plan().Differs(i, &o.Values, &was.Values) {
			fields = append(fields, 1+i)
		}
	}
	return fields
}

// appendField appends a field, numbered as in state.Class.FieldName, as JSON.
func (o *Object) appendField(dst []byte, field int) []byte {
	if field == 0 {
		return fmt.Append(dst, o.Owner())
	}
	return o.Class.Plan().AppendLeafJSON(dst, &o.Values, field-1)
}
