package netvar

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

type roundState struct {
	X float32 `net:"quant=1/4,range=0:10"`
	N string  `net:"max=2"`
}

func roundWorld(t *testing.T) (w *World, rounded, other *state.Class) {
	t.Helper()
	rounded, err := state.NewClass("rounded", reflect.TypeFor[roundState]())
	if err != nil {
		t.Fatal(err)
	}
	if other, err = state.NewClass("other", reflect.TypeFor[roundState]()); err != nil {
		t.Fatal(err)
	}
	w = NewWorld(state.NewTable(rounded, other))
	if w.Rounds() {
		t.Error("a class is rounded that nobody has named")
	}
	w.SetRounded(rounded)
	return w, rounded, other
}

// Round rounds edited living objects of the rounded classes; a capture rounds later edits.
func TestLiveValuesOfARoundedClassMatchTheWire(t *testing.T) {
	w, rounded, other := roundWorld(t)
	if !w.Rounds() {
		t.Error("no class is rounded")
	}
	edited, idle, plain, gone := &roundState{X: 1.2}, &roundState{X: 1.2}, &roundState{X: 1.2}, &roundState{X: 1.2}
	a := w.Spawn(rounded, unsafe.Pointer(edited), 0, 1)
	w.Spawn(other, unsafe.Pointer(plain), 0, 1)
	w.Spawn(rounded, unsafe.Pointer(idle), 0, 1)
	w.Capture(1)
	if edited.X != 1.25 || plain.X != 1.2 {
		t.Errorf("captured: %v, and %v of a class that is not rounded", edited.X, plain.X)
	}
	w.Edit(a)
	w.Despawn(w.Spawn(rounded, unsafe.Pointer(gone), 0, 1))
	edited.X, idle.X = 3.3, 3.3
	if w.Round(); edited.X != 3.25 || idle.X != 3.3 || gone.X != 1.2 {
		t.Errorf("rounded: %v, %v that was not edited, %v that is gone", edited.X, idle.X, gone.X)
	}
}

// One misfit field is enough for a clamp.
func TestASingleMisfitIsClamped(t *testing.T) {
	w, rounded, _ := roundWorld(t)
	s := &roundState{X: 11, N: "ok"}
	w.Spawn(rounded, unsafe.Pointer(s), 0, 1)
	if w.Capture(1); *s != (roundState{10, "ok"}) || w.Stats().Clamped != 1 {
		t.Errorf("%+v, %d clamped", *s, w.Stats().Clamped)
	}
}

// A misfit is counted once, by its capture, and is cut or clamped afterwards.
func TestAMisfitOfARoundedClassIsCountedAndThenClamped(t *testing.T) {
	w, rounded, _ := roundWorld(t)
	s := &roundState{X: 11, N: "long"}
	o := w.Spawn(rounded, unsafe.Pointer(s), 0, 1)
	if w.Round(); s.X != 11 {
		t.Errorf("%v before the capture", s.X)
	}
	if w.Capture(1); *s != (roundState{10, "lo"}) || w.Stats().Clamped != 2 {
		t.Errorf("%+v, %d clamped", *s, w.Stats().Clamped)
	}
	w.Edit(o)
	if w.Capture(2); w.Stats().Clamped != 2 {
		t.Errorf("%d clamped", w.Stats().Clamped)
	}
}
