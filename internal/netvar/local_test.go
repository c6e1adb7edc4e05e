package netvar

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Iterations by class and by owner yield local objects after the server's. Local objects have no
// id, and may be removed during an iteration.
func TestLocalObjectsComeBehindTheOthers(t *testing.T) {
	class, err := state.NewClass("local", reflect.TypeFor[roundState]())
	if err != nil {
		t.Fatal(err)
	}
	other, err := state.NewClass("other", reflect.TypeFor[roundState]())
	if err != nil {
		t.Fatal(err)
	}
	r := replica.New(state.NewTable(class, other))
	sent := state.NewObject(state.MakeID(3, 1), class, unsafe.Pointer(new(roundState)), 7)
	r.Objects().Add(sent)
	a := r.AddLocal(class, unsafe.Pointer(new(roundState)), 7)
	if got := slices.Collect(r.All(class)); !slices.Equal(got, []*state.Object{sent, a}) {
		t.Errorf("with a single local object there are %v", got)
	}
	b := r.AddLocal(class, unsafe.Pointer(new(roundState)), 8)
	c := r.AddLocal(other, unsafe.Pointer(new(roundState)), 7)
	check := func(of string, got []*state.Object, want ...*state.Object) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", of, got, want)
		}
	}
	check("a class", slices.Collect(r.All(class)), sent, a, b)
	check("another", slices.Collect(r.All(other)), c)
	check("an owner", slices.Collect(r.Owned(7)), sent, a, c)
	check("an owner, as the server says", slices.Collect(r.OwnedHere(7)), sent)
	if r.Len(class) != 3 || r.Len(other) != 1 || a.ID() != 0 || a.Owner() != 7 || !a.Alive() {
		t.Errorf("%d and %d, %v of %d, alive %v", r.Len(class), r.Len(other), a.ID(), a.Owner(), a.Alive())
	}
	var walked []*state.Object
	for o := range r.All(class) {
		walked = append(walked, o)
		if o == sent {
			r.RemoveLocal(a)
			r.AddLocal(class, unsafe.Pointer(new(roundState)), 7)
		}
	}
	check("one that goes meanwhile, and one that comes", walked, sent, b)
	for o := range r.All(class) {
		if o != sent {
			t.Errorf("%v after the end", o)
		}
		break
	}
	for o := range r.All(class) {
		if o == b {
			break // before the last one
		}
	}
	if a.Alive() || r.Len(class) != 3 {
		t.Errorf("alive %v, %d are left", a.Alive(), r.Len(class))
	}
}
