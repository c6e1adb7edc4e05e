package netvar

import "testing"

// A world is still as long as its next capture has no work.
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

// A client is settled once no change is pending, no request is open, and no record is in flight on
// the stream.
func TestAClientIsSettledWhileNothingIsOwed(t *testing.T) {
	for what, disturb := range map[string]func(*Peer){
		"a change":                    func(p *Peer) { p.owed.set(70) },
		"a first record":              func(p *Peer) { p.blank.set(70) },
		"a record on the stream":      func(p *Peer) { p.large.list = make([]largeRecord, 1) },
		"a digest":                    func(p *Peer) { p.digests = 1 },
		"one object of what it joins": func(p *Peer) { p.first.left = 1 },
	} {
		p := NewWorld(newSchema(t).table).NewPeer(1)
		p.owed, p.blank = make(bitset, 2), make(bitset, 2)
		if !p.Settled() {
			t.Fatal("a client of an empty world is not settled")
		}
		if disturb(p); p.Settled() {
			t.Errorf("the client is settled although %s is missing", what)
		}
	}
}

// A world is full when all slots are taken, and not when it has none yet.
func TestAWorldIsFullWhenNoSlotIsLeft(t *testing.T) {
	w := NewWorld(newSchema(t).table)
	for _, c := range []struct {
		made, free int
		want       bool
	}{{0, 0, false}, {5, 0, false}, {MaxSlots - 1, 0, false}, {MaxSlots, 1, false}, {MaxSlots, 0, true}} {
		w.ids.used = c.made - c.free
		if got := w.Full(); got != c.want {
			t.Errorf("of %d slots %d are free: full is %v", c.made, c.free, got)
		}
	}
}
