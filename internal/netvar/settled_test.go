package netvar

import "testing"

// A world is still as long as nothing at all waits for its next capture.
func TestAWorldIsStillWhileNothingWaitsForItsCapture(t *testing.T) {
	for what, disturb := range map[string]func(*World){
		"an edit":                    func(w *World) { w.dirty = []*Object{{}} },
		"a despawn":                  func(w *World) { w.gone = []*Object{{}} },
		"a change that is held back": func(w *World) { w.holds.late = []late{{}} },
		"an audience":                func(w *World) { w.unjudged = []*Object{{}} },
		"a doubted pair":             func(w *World) { w.doubtful = []*Peer{{}} },
		"a client that has joined":   func(w *World) { w.fresh = []*Peer{{}} },
	} {
		w := NewWorld(newSchema(t).table)
		if !w.Still() {
			t.Fatal("an empty world is not still")
		}
		if disturb(w); w.Still() {
			t.Errorf("the world is still although %s waits", what)
		}
	}
}

// A world is full when all slots are taken, and not when there are none yet.
func TestAWorldIsFullWhenNoSlotIsLeft(t *testing.T) {
	w := NewWorld(newSchema(t).table)
	for _, c := range []struct {
		made, free int
		want       bool
	}{{0, 0, false}, {5, 0, false}, {MaxSlots - 1, 0, false}, {MaxSlots, 1, false}, {MaxSlots, 0, true}} {
		w.gens, w.free = make([]uint32, c.made), make([]int, c.free)
		if got := w.Full(); got != c.want {
			t.Errorf("of %d slots %d are free: full is %v", c.made, c.free, got)
		}
	}
}
