package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/slots"
)

// Objects with an audience, or in a space, have veiled ids; all others have open ones.
func TestWhichObjectsHaveVeiledIds(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	open := s.spawnRock(w, rock{}, 1)
	veiled := w.SpawnFor(s.rock, unsafe.Pointer(new(rock)), clientSet(0), 0, 1)
	if w.ids.IsVeiled(open.Slot()>>6) || !w.ids.IsVeiled(veiled.Slot()>>6) {
		t.Errorf("the object of all has id %v, that of an audience %v", open.ID(), veiled.ID())
	}
	if w.Audience(veiled) == nil || w.Audience(open) != nil {
		t.Error("an audience is lost, or made up")
	}
	w = NewWorld(s.table)
	shape, err := grid.NewShape(10, 30, 20)
	if err != nil {
		t.Fatal(err)
	}
	space, err := w.NewSpace(shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := space.Hold(s.rock, func(unsafe.Pointer) (x, y, z float64) { return 0, 0, 0 }); err != nil {
		t.Fatal(err)
	}
	near := s.spawnRock(w, rock{}, 1)
	if !w.ids.IsVeiled(near.Slot()>>6) || w.ids.IsVeiled(1) || !w.ids.IsVeiled(2) {
		t.Errorf("the object in a space has id %v", near.ID())
	}
}

// nth returns the index of an open slot among those of a world without spaces: it subtracts the
// veiled blocks below.
func nth(slot int) int {
	veiled := (slot>>6 + slots.BlocksPer - 2) / slots.BlocksPer
	return slot - veiled<<6
}
