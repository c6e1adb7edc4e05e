package state

import (
	"iter"

	"github.com/netloop/netloop/internal/netvar/bitset"
)

// Store is the common interface of World and Replica.
type Store interface {
	// Get returns the living object of this id.
	Get(ID) (*Object, bool)
	// All iterates over the living objects of a class in id order. It skips objects that are
	// spawned or despawned meanwhile.
	All(*Class) iter.Seq[*Object]
	// Len returns the number of objects that All yields.
	Len(*Class) int
	// Owned iterates likewise over the living objects of an owner, which is not 0, of all classes.
	// If an object changes its owner meanwhile, the iteration uses its owner at the time when it
	// reaches the object.
	Owned(owner uint64) iter.Seq[*Object]
}

// Set holds objects by slot and the slots of the living ones by class and by owner.
type Set struct {
	Slots   []*Object
	classes []bitset.Set
	owners  owners
	serial  uint64
}

func NewSet(t *Table) Set {
	return Set{classes: make([]bitset.Set, len(t.classes)), owners: make(owners)}
}

func (s *Set) Add(o *Object) {
	slot := o.Slot()
	for len(s.Slots) <= slot {
		s.Slots = append(s.Slots, nil)
	}
	s.serial++
	o.serial, o.alive = s.serial, true
	s.Slots[slot] = o
	s.classes[o.class.index].Add(slot)
	s.owners.add(o.owner, slot)
}

// At returns the object in a slot, or nil.
func (s *Set) At(slot int) *Object {
	if slot >= len(s.Slots) {
		return nil
	}
	return s.Slots[slot]
}

// Count returns the number of living objects of a class.
func (s *Set) Count(c *Class) int { return s.classes[c.index].Count() }

// End removes the object from iterations. Its slot remains taken.
func (s *Set) End(o *Object) {
	o.alive = false
	s.classes[o.class.index].Remove(o.Slot())
	s.owners.remove(o.owner, o.Slot())
}

// SetOwner changes the owner of a living object.
func (s *Set) SetOwner(o *Object, owner uint64) {
	s.owners.remove(o.owner, o.Slot())
	s.owners.add(owner, o.Slot())
	o.owner = owner
}

// Get implements Store.
func (s *Set) Get(id ID) (*Object, bool) {
	slot := id >> 32
	if slot >= ID(len(s.Slots)) {
		return nil, false
	}
	o := s.Slots[slot]
	if o == nil || o.id != id || !o.alive {
		return nil, false
	}
	return o, true
}

// All implements Store.
func (s *Set) All(c *Class) iter.Seq[*Object] { return s.From(c, 0) }

// From is All, from a slot on.
func (s *Set) From(c *Class, slot int) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		if c.index < 0 || c.index >= len(s.classes) {
			return
		}
		last := s.serial
		for i := s.classes[c.index].Next(slot); i >= 0; i = s.classes[c.index].Next(i + 1) {
			if o := s.Slots[i]; o.class == c && o.serial <= last && !yield(o) {
				return
			}
		}
	}
}

// Owned implements Store.
func (s *Set) Owned(owner uint64) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		last := s.serial
		for i := s.owners.next(owner, 0); i >= 0; i = s.owners.next(owner, i+1) {
			if o := s.Slots[i]; o.serial <= last && !yield(o) {
				return
			}
		}
	}
}
