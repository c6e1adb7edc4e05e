package netvar

import "testing"

// The memory of a client that leaves serves one that comes, if it is large enough: that of so many
// clients at most, the last one first. Nothing of the one that has left is left in it.
func TestEntriesOfThoseWhoLeaveServeThoseWhoCome(t *testing.T) {
	n := newNewcomers(t, 3, 0)
	var left []*entry
	for i := range maxSpareEntries + 2 {
		p := n.join()
		p.Handle = i
		left = append(left, &p.entries[0])
	}
	n.play(wide)
	n.play(wide)
	n.w.SetAudience(n.objects[1], clientSet(0)) // nobody sees it any more
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
		if p.Handle = 0; len(p.entries) != len(n.w.slots) || want != nil && &p.entries[0] != want {
			t.Errorf("%d entries for %d slots, of one who has left: %v", len(p.entries), len(n.w.slots), want != nil)
		}
		for slot := range p.entries {
			e := &p.entries[slot]
			if slot == 1 && *e != (entry{}) || slot != 1 && (e.known || e.phase != shown || e.detail != &n.w.details.blank) {
				t.Errorf("slot %d begins as %+v", slot, e)
			}
		}
	}
	for i := maxSpareEntries - 1; i > 0; i-- {
		if i == 1 { // more than they have room for
			for range cap(n.w.spareEntries[1]) {
				n.spawnRock(n.w, rock{}, n.tick)
			}
			n.tick++
			n.w.Capture(n.tick)
			left[1] = nil
		}
		come(left[i])
	}
	n.w.spareEntries[0] = make([]entry, len(n.w.slots))
	come(&n.w.spareEntries[0][0])
	come(nil)
}
