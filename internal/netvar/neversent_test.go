package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// For an object with a derived baseline lastSent is the version of its newest change, or, if that
// is later than the last snapshot, the version sent before.
func TestLastSentOfADerivedBaseline(t *testing.T) {
	class := classOf[captain](t, "captain")
	w := NewWorld(state.NewTable(class))
	v := new(captain)
	o := w.Spawn(class, unsafe.Pointer(v), 0, 1)
	w.SetReaders(class, ownersRead{})
	p, tick := w.NewPeer(1), uint64(0)
	p.Handle = -1 // no client is owner -1, so it reads all fields of objects without an owner
	capture := func(by float32) {
		tick++
		w.Edit(o)
		v.X += by
		w.Capture(tick)
	}
	send := func() {
		_, first := snap(p, tick, wide)
		p.Ack([]Range{{first, first}})
	}
	for range 10 {
		capture(1)
		send()
	}
	for range 5 { // no changes and no records
		capture(0)
		send()
	}
	for _, by := range []float32{0, 1, 1} { // no snapshot is cut
		if capture(by); !p.derived.Has(0) {
			t.Fatal("the object is not steady")
		}
		e := p.peek(0)
		if e.sent != 10 || e.last != 10 {
			t.Errorf("of tick %d: sent was %d, in tick %d, want 10", tick, e.sent, e.last)
		}
	}
	if got := p.lastSent(0); got != 10 {
		t.Errorf("the last record was sent in tick %d, want 10", got)
	}
}

// The entries of closed clients are reused for new ones, the last first, if they are large enough.
// Their number is bounded, and they are cleared.
func TestEntriesOfClosedClientsAreReused(t *testing.T) {
	n := newNewcomers(t, 3, 0)
	var left []*entry
	for i := range maxSpareEntries + 2 {
		p := n.join()
		p.Handle = i
		left = append(left, &p.entries[0])
	}
	n.play(wide)
	n.play(wide)
	n.w.SetAudience(n.objects[1], clientSet(0)) // hidden from all clients
	n.tick++
	n.w.Capture(n.tick)
	details := len(n.w.details.spare)
	for i, p := range n.peers {
		p.detailed(0)
		n.w.ClosePeer(p)
		if kept := len(n.w.spareEntries); kept != min(i+1, maxSpareEntries) || p.entries != nil {
			t.Errorf("the entries of %d clients are kept after %d have left", kept, i+1)
		}
	}
	if got := len(n.w.details.spare) - details; got < len(n.peers) {
		t.Errorf("%d details come back of %d clients", got, len(n.peers))
	}
	come := func(want *entry) {
		t.Helper()
		kept := n.w.spareEntries
		p := n.w.NewPeer(n.tick + 1)
		if last := len(kept) - 1; last >= 0 && (len(n.w.spareEntries) != last || kept[last] != nil) {
			t.Errorf("entries of %d clients are kept of those of %d, the last of which are taken", len(n.w.spareEntries), len(kept))
		}
		if p.Handle = 0; len(p.entries) != len(n.w.objects.Slots) || want != nil && &p.entries[0] != want {
			t.Errorf("%d entries for %d slots, of one who has left: %v", len(p.entries), len(n.w.objects.Slots), want != nil)
		}
		for slot := range p.entries {
			e := &p.entries[slot]
			if slot == 1 && *e != (entry{}) || slot != 1 && (e.known || e.phase != shown || e.detail != &n.w.details.neverSent) {
				t.Errorf("slot %d begins as %+v", slot, e)
			}
		}
	}
	for i := maxSpareEntries - 1; i > 0; i-- {
		if i == 1 { // more than the reused entries have room for
			for range cap(n.w.spareEntries[1]) {
				n.spawnRock(n.w, rock{}, n.tick)
			}
			n.tick++
			n.w.Capture(n.tick)
			left[1] = nil
		}
		come(left[i])
	}
	n.w.spareEntries[0] = make([]entry, len(n.w.objects.Slots))
	come(&n.w.spareEntries[0][0])
	come(nil)
}
