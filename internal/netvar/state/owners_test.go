package state

import (
	"iter"
	"reflect"
	"testing"
)

// The list of an owner is dropped with its last object, and with the last change of owner.
func TestNoOwnersAreKeptOfAnEmptySet(t *testing.T) {
	c, err := NewClass("c", reflect.TypeFor[struct{ X int32 }]())
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet(NewTable(c))
	var all []*Object
	for slot := range 20 {
		o := NewObject(MakeID(slot, 1), c, nil, uint64(slot%4))
		s.Add(o)
		s.SetOwner(o, uint64(slot%3))
		all = append(all, o)
	}
	if len(s.owners) != 2 {
		t.Errorf("%d owners, want 2", len(s.owners))
	}
	for _, o := range all {
		s.End(o)
	}
	if len(s.owners) != 0 {
		t.Errorf("%d owners are kept", len(s.owners))
	}
}

// A class of another table has no objects in a set.
func TestASetHasNoObjectsOfAnUnknownClass(t *testing.T) {
	class := func(name string) *Class {
		c, err := NewClass(name, reflect.TypeFor[struct{ X int32 }]())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	known, later := class("known"), class("later")
	s := NewSet(NewTable(known))
	s.Add(NewObject(MakeID(0, 1), known, nil, 0))
	NewTable(class("a"), later)
	for _, c := range []*Class{class("unbound"), later} {
		for o := range s.All(c) {
			t.Errorf("object %v is of class %s", o.ID(), c.Name())
		}
	}
}

// The iterations of a set may end early.
func TestIterationsEndEarly(t *testing.T) {
	c, err := NewClass("c", reflect.TypeFor[struct{ X int32 }]())
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet(NewTable(c))
	for slot := range 3 {
		s.Add(NewObject(MakeID(slot, 1), c, nil, 7))
	}
	for _, all := range []iter.Seq[*Object]{s.All(c), s.Owned(7)} {
		n := 0
		for range all {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("%d objects, want 2", n)
		}
	}
}
