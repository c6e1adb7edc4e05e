package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
)

// A world is still as long as its next capture has no work.
func TestAWorldIsStillWhileNothingWaitsForItsCapture(t *testing.T) {
	for what, disturb := range map[string]func(*World){
		"an edit":                    func(w *World) { w.dirty = []*state.Object{{}} },
		"a despawn":                  func(w *World) { w.gone = []*state.Object{{}} },
		"a change that is held back": func(w *World) { w.holds.late = []late{{}} },
		"an audience":                func(w *World) { w.Recheck(published(t, w)) },
		"a pair":                     func(w *World) { w.RecheckFor(published(t, w), &w.NewPeer(1).Viewer) },
		"a client that has joined":   func(w *World) { w.Join(new(interest.Viewer), nil, true) },
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
func TestAClientIsSettledWithoutPendingChanges(t *testing.T) {
	for what, disturb := range map[string]func(*Peer){
		"a change":                    func(p *Peer) { p.pending.Add(70) },
		"a first record":              func(p *Peer) { p.neverSent.Add(70) },
		"a record on the stream":      func(p *Peer) { p.large.list = make([]largeRecord, 1) },
		"a digest":                    func(p *Peer) { p.digests = 1 },
		"one object of what it joins": func(p *Peer) { p.first.left = 1 },
		"the first snapshot":          func(p *Peer) { p.first.told = false },
	} {
		p := NewWorld(newSchema(t).table).NewPeer(1)
		p.pending, p.neverSent, p.first.told = make(bitset.Set, 2), make(bitset.Set, 2), true
		if !p.Settled() {
			t.Fatal("a client of an empty world is not settled")
		}
		if disturb(p); p.Settled() {
			t.Errorf("the client is settled although %s is missing", what)
		}
	}
}

// published returns a rock that is captured.
func published(t *testing.T, w *World) *state.Object {
	t.Helper()
	o := w.Spawn(w.table.Classes()[1], unsafe.Pointer(new(rock)), 0, 1)
	if w.Capture(1); !w.Still() {
		t.Fatal("the world has work after a capture")
	}
	return o
}
