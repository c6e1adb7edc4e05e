package netvar

import (
	"testing"
	"unsafe"
)

// After the last number of a slot's lifetimes comes 1: with 0 the id of slot 0 would be no object.
func TestLifetimesOfASlotBeginAnewAtOne(t *testing.T) {
	class := classOf[rock](t, "rock")
	w := NewWorld(NewTable(class))
	for tick := uint64(1); tick <= 100; tick++ {
		slots := len(w.gens)
		for slot := range w.gens {
			w.gens[slot] = 1<<32 - 1
		}
		o := w.Spawn(class, unsafe.Pointer(new(rock)), 0, tick)
		if len(w.gens) == slots { // The slot was given before.
			for slot := range w.gens {
				if o.ID() == makeID(slot, 1) {
					return
				}
			}
			t.Fatalf("after the last lifetime comes %v", o.ID())
		}
		w.Despawn(o)
		w.Capture(tick)
	}
	t.Fatal("no slot was given again")
}
